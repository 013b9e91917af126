package replay

import (
	"sluice/cmd/trial"
	"sluice/gen/edge"
	"sluice/policies"
)

// unseen are the rules that no request has met yet.
type unseen struct {
	rules       map[string]bool // access
	limits      map[string]bool // edge
	conditions  map[string]bool // limits that do not count every request of their routes
	conditional int             // how many of those are left
}

func newUnseen(c *policies.Compiled) unseen {
	u := unseen{rules: map[string]bool{}, limits: map[string]bool{}, conditions: map[string]bool{}}
	for i := range c.Access {
		u.rules[edge.RuleName(&c.Access[i])] = true
	}
	for i := range c.Edge {
		l := &c.Edge[i]
		u.limits[l.Name] = true
		if l.Only != nil || l.Except != nil || l.When != nil {
			u.conditions[l.Name] = true
			u.conditional++
		}
	}
	return u
}

// see strikes out what the request met.
func (u *unseen) see(o *trial.Outcome, c *policies.Compiled, trace *trial.Trace) {
	if o.Rule != "" {
		delete(u.rules, o.Rule)
	}
	if o.Would == edge.Access.String() {
		delete(u.rules, o.WouldLimit)
	}
	if o.Location == nil || o.By == trial.ByAccess || o.By == trial.ByNGINX || o.Exempt || len(u.limits) == 0 {
		return
	}
	for _, i := range o.Location.Edge {
		name := c.Edge[i].Name
		if !u.conditions[name] {
			delete(u.limits, name)
		}
	}
	if trace == nil {
		return
	}
	for i := range trace.Edge.Rates {
		if r := &trace.Edge.Rates[i]; r.Unused == "" {
			u.met(r.Limit)
		}
	}
	for i := range trace.Edge.Conns {
		if r := &trace.Edge.Conns[i]; r.Unused == "" {
			u.met(r.Limit)
		}
	}
}

func (u *unseen) met(name string) {
	if u.conditions[name] && u.limits[name] {
		u.conditional--
	}
	delete(u.limits, name)
}
