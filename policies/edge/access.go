package edge

import (
	"strconv"

	"sluice/policies"
)

// Direct is the name of the rule in front of all others when only trusted
// proxies may connect.
const Direct = "direct"

// RuleName is an access rule as logs and people name it.
func RuleName(r *policies.AccessRule) string {
	if r.Name == "" {
		return "rule " + strconv.Itoa(r.Index+1)
	}
	return r.Name
}

// Rule is what one access rule said of a request.
type Rule struct {
	Name    string
	Verdict policies.AccessVerdict
	Status  int     // of a denial
	Shadow  bool    // told, never done
	By      Clients // the part of its clients that fits; empty: none does
	Unmet   string  // the condition of `when` that does not hold
	Decides bool
}

// Fits tells whether the rule is about this request.
func (r *Rule) Fits() bool { return r.By != "" && r.Unmet == "" }

// access asks the access rules of the location: the first that fits decides. A
// rule in shadow stands in nobody's way. With a trace all of them are asked.
func (m *Model) access(v *Visit) {
	loc := v.Location
	if loc.Exempt || m.c.Mode == policies.ModeDisabled {
		return
	}
	decided := false
	if m.c.Client.DenyDirect {
		r := Rule{Name: Direct, Verdict: policies.AccessDeny, Status: 403}
		if !v.Trusted {
			r.By = ByNetwork
		}
		decided = m.link(v, &r, false, decided)
	}
	for _, i := range loc.Access {
		if decided && v.Trace == nil {
			return
		}
		rule := &m.c.Access[i]
		r := Rule{Name: m.ruleNames[i], Verdict: rule.Verdict, Status: rule.Status}
		r.By = m.fits(v, m.accessSets[i])
		if r.By != "" || v.Trace != nil {
			r.Unmet = v.Request.Unmet(rule.When)
		}
		decided = m.link(v, &r, rule.Shadow, decided)
	}
}

// link is one rule in the chain. It tells whether the chain is decided after it.
func (m *Model) link(v *Visit, r *Rule, shadow, decided bool) bool {
	watched := shadow || m.c.Mode == policies.ModeShadow && r.Verdict == policies.AccessDeny
	r.Shadow = watched
	if r.Fits() && !decided {
		switch {
		case watched && r.Verdict == policies.AccessDeny && v.Would == "":
			v.Would = r.Name
		case watched:
		case r.Verdict == policies.AccessDeny:
			v.Rule, v.Refused = r.Name, r.Status
		default:
			v.Rule, v.Exempt = r.Name, r.Verdict == policies.AccessExempt
		}
		r.Decides = !shadow
		decided = !shadow
	}
	if v.Trace != nil {
		v.Trace.Rules = append(v.Trace.Rules, *r)
	}
	return decided
}
