package trial

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sluice/policies"
	"sluice/policies/edge"
)

func (x *explainer) client() {
	c, v := &x.trial.policy.Client, &x.tr.Visit
	if !v.Client.IsValid() {
		x.add("client", "", Told, "has no address: it came through a unix socket")
		return
	}
	how := "the peer itself; the policy trusts no proxy"
	switch {
	case v.Client != v.Peer.Unmap() && c.ProxyProtocol:
		how = fmt.Sprintf("named by the PROXY line of %s, a trusted proxy", v.Peer)
	case v.Client != v.Peer.Unmap():
		how = fmt.Sprintf("named in %s by %s, a trusted proxy", c.Header, v.Peer)
	case v.Trusted:
		how = fmt.Sprintf("the peer itself, a trusted proxy that names nobody in %s", c.Header)
	case c.Header != "":
		how = "the peer itself, which is no trusted proxy"
	}
	x.add("client", v.Client.String(), Told, "%s", how)
	if v.Counted != netip.PrefixFrom(v.Client, v.Client.BitLen()) {
		x.add("client", "", Told, "limits count %s as one client", strings.TrimSuffix(v.Counted.String(), "/32"))
	}
}

func (x *explainer) location() {
	v, o := &x.tr.Visit, x.o
	switch {
	case o.By == ByNGINX:
		x.add("location", "", Refuses, "NGINX cannot read the target and answers 400")
		return
	case o.Location == nil:
		x.add("location", "", Told, "no route of the policy is for %s: nothing of Sluice applies", x.tr.Edge.Path)
		return
	}
	x.add("location", o.Location.Name, Told, "%s takes %s%s", matchOf(o.Location), x.tr.Edge.Path, onHost(o.Location, v.Host))
	if o.Location.Exempt {
		x.add("location", "", Told, "the route is exempt: no rule, no limit, no question")
	}
}

// matchOf is a route's match in words.
func matchOf(r *policies.Route) string {
	switch r.Kind {
	case policies.MatchExact:
		return "exact " + r.Path
	case policies.MatchPrefix:
		return "prefix " + r.Path
	}
	return "regex " + r.Regex.Source
}

func onHost(r *policies.Route, host string) string {
	if len(r.Hosts) == 0 {
		return ""
	}
	return " on " + host
}

func (x *explainer) access() {
	c := x.trial.policy
	asked := map[string]bool{}
	decided := ""
	for i := range x.tr.Edge.Rules {
		r := &x.tr.Edge.Rules[i]
		asked[r.Name] = true
		switch {
		case r.Decides:
			mark := Passes
			if r.Verdict == policies.AccessDeny {
				mark = Refuses
			}
			if r.Shadow {
				mark = Would
			}
			x.add("access", r.Name, mark, "fits by %s: %s", r.By, verdictOf(r))
			decided = r.Name
		case !r.Fits() && r.By == "":
			x.add("access", r.Name, Skipped, "the client is not meant")
		case !r.Fits():
			x.add("access", r.Name, Skipped, "`when` does not hold: %s", r.Unmet)
		case decided != "":
			x.add("access", r.Name, Skipped, "would fit, but %s has decided", decided)
		default:
			x.add("access", r.Name, Would, "fits by %s: %s, in shadow", r.By, verdictOf(r))
		}
	}
	for i := range c.Access {
		if name := edge.RuleName(&c.Access[i]); !asked[name] && !x.o.Location.Exempt {
			x.add("access", name, Skipped, "is for other routes")
		}
	}
}

func verdictOf(r *edge.Rule) string {
	switch r.Verdict {
	case policies.AccessExempt:
		return "no limit counts the client"
	case policies.AccessAllow:
		return "allowed, and counted"
	}
	if r.Status == 444 {
		return "the connection is closed"
	}
	return "denied with " + strconv.Itoa(r.Status)
}

func (x *explainer) edge() {
	if x.o.By == ByAccess {
		if len(x.o.Location.Edge) > 0 {
			x.add("edge", "", Skipped, "edge limits do not count what an access rule refuses")
		}
		return
	}
	if x.trial.live && len(x.o.Location.Edge) > 0 {
		x.add("edge", "", Told, "each NGINX has counters of its own, which nobody else sees: here they are empty")
	}
	refused := false
	for i := range x.tr.Edge.Rates {
		x.rate(&x.tr.Edge.Rates[i], &refused)
	}
	for i := range x.tr.Edge.Conns {
		x.conn(&x.tr.Edge.Conns[i], &refused)
	}
	if d := x.o.EdgeDelay; d > 0 {
		x.add("edge", "", Told, "the request is held for %s", d)
	}
	c := x.trial.policy
	for i := range c.Edge {
		if !slices.Contains(x.o.Location.Edge, i) && !x.o.Location.Exempt {
			x.add("edge", c.Edge[i].Name, Skipped, "is for other routes")
		}
	}
}

func (x *explainer) rate(r *edge.Rate, refused *bool) {
	if r.Unused != "" {
		x.add("edge", r.Limit, Skipped, "%s", r.Unused)
		return
	}
	held := (r.Excess + 999) / 1000
	s := x.add("edge", r.Limit, Passes, "%s of %d at once, %s", strconv.FormatInt(min(held+1, r.Bucket.Burst+2), 10), r.Bucket.Burst+1, perTime(r.Bucket))
	s.Key = r.Key
	switch {
	case *refused:
		s.Mark, s.Text = Skipped, s.Text+"; another limit has refused"
	case r.Exceeded && r.Shadow:
		s.Mark, s.Text = Would, fmt.Sprintf("over %d at once, %s; in shadow", r.Bucket.Burst+1, perTime(r.Bucket))
	case r.Exceeded:
		*refused = true
		s.Mark, s.Text = Refuses, fmt.Sprintf("over %d at once, %s", r.Bucket.Burst+1, perTime(r.Bucket))
	case r.Delay > 0 && !r.Shadow:
		s.Text += fmt.Sprintf("; wants it held for %s", r.Delay)
	}
}

func perTime(b edge.Bucket) string {
	if b.Minute {
		return strconv.FormatInt(b.Requests, 10) + "/m"
	}
	return strconv.FormatInt(b.Requests, 10) + "/s"
}

func (x *explainer) conn(c *edge.Conn, refused *bool) {
	if c.Unused != "" {
		x.add("edge", c.Limit, Skipped, "%s", c.Unused)
		return
	}
	s := x.add("edge", c.Limit, Passes, "%d of %d under way", c.Open+1, c.Max)
	s.Key = c.Key
	switch {
	case *refused:
		s.Mark, s.Text = Skipped, "another limit has refused"
	case c.Exceeded:
		*refused = !c.Shadow
		s.Mark, s.Text = Refuses, fmt.Sprintf("%d are under way, which is all", c.Max)
		if c.Shadow {
			s.Mark, s.Text = Would, s.Text+"; in shadow"
		}
	}
}
