package policies

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// quota compares what quotas have of their own.
func (f *diffFields) quota(o, n *Limit, anew []Effect) {
	amount := func(q Quota) int64 {
		if q.Unlimited {
			return math.MaxInt64
		}
		return q.Limit
	}
	length := map[Period]time.Duration{PeriodHour: time.Hour, PeriodDay: 24 * time.Hour, PeriodWeek: 7 * 24 * time.Hour, PeriodMonth: 28 * 24 * time.Hour}
	f.perTime("quota", o.Quota.String(), n.Quota.String(), amount(o.Quota), amount(n.Quota), length[o.Quota.Period], length[n.Quota.Period],
		alsoIf(anew, o.Quota.Period != n.Quota.Period)...)
	f.number("overage", o.Overage, n.Overage, EffectLoosened, plainNumber)
	f.value("timezone", o.Zone.String(), n.Zone.String(), append([]Effect{EffectChanged}, anew...)...)
	f.value("anchor_day", strconv.Itoa(o.AnchorDay), strconv.Itoa(n.AnchorDay), append([]Effect{EffectChanged}, anew...)...)
	if o.Soft != n.Soft { // a soft quota overshoots
		f.word("accounting", accountingWord(o.Soft), accountingWord(n.Soft), EffectLoosened, string(AccountingHard), string(AccountingSoft))
	}
	f.value("notify", fmt.Sprint(o.Notify), fmt.Sprint(n.Notify), EffectChanged)
	f.entries("grants", grantWords(o.Grants), grantWords(n.Grants), "", EffectLoosened)
}

func accountingWord(soft bool) string {
	if soft {
		return string(AccountingSoft)
	}
	return string(AccountingHard)
}

// grantWords are grants as text; none is an empty list, for nil would be all.
func grantWords(grants []Grant) []string {
	out := []string{}
	for _, g := range grants {
		out = append(out, fmt.Sprintf("%d from %s until %s", g.Add, g.From, g.Until))
	}
	return out
}
