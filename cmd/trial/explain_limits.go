package trial

import (
	"fmt"
	"strconv"
	"time"

	"sluice/authz"
	"sluice/authz/limit"
	"sluice/policies"
)

func (x *explainer) limits() {
	o := x.o
	switch {
	case o.Err != nil:
		x.add("limit", "", Told, "the store gave no answer: %s", o.Err)
		return
	case o.Exempt:
		x.add("limit", "", Skipped, "access rule %s exempts the client", o.Rule)
		return
	case len(x.tr.Charges) == 0 && o.Reason == "":
		x.add("limit", "", Skipped, "no limit of the service concerns the request")
	}
	for i := range x.tr.Charges {
		x.charge(&x.tr.Charges[i])
	}
	if o.Hold > 0 {
		x.add("limit", "", Told, "the answer is held for %s, until tokens come", o.Hold)
	}
}

func (x *explainer) charge(c *authz.Charge) {
	o, s := x.o, &c.State
	step := x.add("limit", c.Limit.Name, Passes, "%s: takes %s, %s left", LimitText(c.Limit), amount(c), left(s.Remaining))
	step.Key, step.Cost = c.Key, c.Cost
	if s.Remaining != limit.Unlimited {
		step.Remaining = &s.Remaining
	}
	switch {
	case c.Limit.Shadow && !s.Fits:
		step.Mark, step.Text = Would, fmt.Sprintf("%s: has no room for %s; in shadow", LimitText(c.Limit), amount(c))
	case !s.Fits && (o.Limit == c.Limit.Name || o.WouldLimit == c.Limit.Name):
		step.Mark = Refuses
		step.Text = fmt.Sprintf("%s: has no room for %s, %s left%s", LimitText(c.Limit), amount(c), left(s.Remaining), waitText(s.Wait))
		if !o.Denied {
			step.Mark, step.Text = Would, step.Text+"; in shadow"
		}
	case !s.Fits:
		step.Mark = Refuses
		step.Text = fmt.Sprintf("%s: has no room either, %s left", LimitText(c.Limit), left(s.Remaining))
	case o.Denied && c.Limit.Kind != policies.KindRetries:
		step.Mark = Skipped
		step.Text = fmt.Sprintf("%s: has room, %s left, and is not charged", LimitText(c.Limit), left(s.Remaining))
	}
}

func amount(c *authz.Charge) string {
	if c.Limit.Requests || c.Limit.Kind == policies.KindConcurrency || c.Limit.Kind == policies.KindRetries {
		return plural(c.Cost, "request")
	}
	return plural(c.Cost, "unit")
}

func left(n int64) string {
	if n == limit.Unlimited {
		return "no end"
	}
	return strconv.FormatInt(n, 10)
}

func waitText(d time.Duration) string {
	switch {
	case d == limit.Never:
		return "; it can never hold so much"
	case d > 0:
		return "; fits in " + d.Round(time.Millisecond).String()
	}
	return ""
}

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}
