package policytest

import (
	"slices"
	"strings"

	"sluice/cmd/trial"
	"sluice/policies"
	"sluice/policies/edge"
)

// Coverage tells what of a policy the tests touch: a route that a request came
// to, a plan that one had, an access rule that decided, or would have, a limit
// that counted one. A limit counts as refusing when it refused one, or would have.
type Coverage struct {
	Routes   Part `json:"routes"`
	Plans    Part `json:"plans"`
	Access   Part `json:"access_rules"`
	Edge     Part `json:"edge_limits"`
	Limits   Part `json:"limits"`
	Refusals Part `json:"refusals"` // limits that a request reached, and that refused one
}

// Part is one kind of thing: how many there are, how many were touched, and the
// names of those that were not, in the order of the policy.
type Part struct {
	All     int      `json:"all"`
	Touched int      `json:"touched"`
	Missing []string `json:"missing"`
	names   []string
}

func (p *Part) fill(touched map[string]bool) {
	p.All, p.Missing = len(p.names), []string{}
	for _, n := range p.names {
		if touched[n] {
			p.Touched++
		} else {
			p.Missing = append(p.Missing, n)
		}
	}
}

func newCoverage(c *policies.Compiled) Coverage {
	var v Coverage
	for i := range c.Routes {
		v.Routes.names = append(v.Routes.names, c.Routes[i].Name)
	}
	for i := range c.Plans {
		v.Plans.names = append(v.Plans.names, c.Plans[i].Name)
	}
	for i := range c.Access {
		v.Access.names = append(v.Access.names, edge.RuleName(&c.Access[i]))
	}
	for i := range c.Edge {
		v.Edge.names = append(v.Edge.names, c.Edge[i].Name)
	}
	v.Limits.names = limitNames(c)
	v.Refusals.names = append(slices.Clone(v.Edge.names), v.Limits.names...)
	return v
}

// limitNames are the limits of the service: those of plans with the plan's name
// in front. Unlimited ones refuse nobody, and are none here.
func limitNames(c *policies.Compiled) []string {
	var out []string
	add := func(prefix string, limits []policies.Limit) {
		for i := range limits {
			if !limits[i].Quota.Unlimited {
				out = append(out, prefix+limits[i].Name)
			}
		}
	}
	for i := range c.Plans {
		add(c.Plans[i].Name+".", c.Plans[i].Limits)
	}
	for i := range c.Routes {
		add("", c.Routes[i].Limits)
	}
	add("", c.Limits)
	return out
}

func (v *Coverage) fill(c *cover) {
	v.Routes.fill(c.routes)
	v.Plans.fill(c.plans)
	v.Access.fill(c.access)
	v.Edge.fill(c.edge)
	v.Limits.fill(c.limits)
	v.Refusals.fill(c.refused)
}

// Lines tell all that was not touched, in words; none when there is nothing.
func (v *Coverage) Lines() []string {
	var out []string
	for _, p := range []struct {
		what string
		part *Part
	}{
		{"no request comes to routes", &v.Routes}, {"no request has plans", &v.Plans}, {"no request is decided by access rules", &v.Access},
		{"no request counts in edge limits", &v.Edge}, {"no request counts in limits", &v.Limits}, {"no request is refused by limits", &v.Refusals},
	} {
		if len(p.part.Missing) > 0 {
			out = append(out, p.what+": "+strings.Join(p.part.Missing, ", "))
		}
	}
	return out
}

// cover gathers what requests touch.
type cover struct {
	policy                                       *policies.Compiled
	planOf                                       map[string]bool // names of limits of plans
	routes, plans, access, edge, limits, refused map[string]bool
}

func newCover(c *policies.Compiled) *cover {
	v := &cover{c, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for i := range c.Plans {
		for j := range c.Plans[i].Limits {
			v.planOf[c.Plans[i].Limits[j].Name] = true
		}
	}
	return v
}

// note is told of every outcome. What the edge counted is known of those with a trace.
func (v *cover) note(o *trial.Outcome) {
	switch {
	case o.Route != "":
		v.routes[o.Route] = true
	case o.Location != nil:
		v.routes[o.Location.Name] = true
	}
	v.plans[o.Plan] = true
	if o.By == trial.ByService {
		v.refused[v.limitName(o.Limit, o.Plan)] = true
	} else {
		v.refused[o.Limit] = true
	}
	if o.Would != "" {
		v.refused[v.limitName(o.WouldLimit, o.Plan)], v.refused[o.WouldLimit] = true, true
	}
	v.access[o.Rule] = true
	if o.Would == edge.Access.String() {
		v.access[o.WouldLimit] = true
	}
	if tr := o.Request.Trace; tr != nil {
		v.traced(tr, o)
	}
}

func (v *cover) traced(tr *trial.Trace, o *trial.Outcome) {
	for i := range tr.Edge.Rates {
		v.edge[tr.Edge.Rates[i].Limit] = v.edge[tr.Edge.Rates[i].Limit] || tr.Edge.Rates[i].Unused == ""
	}
	for i := range tr.Edge.Conns {
		v.edge[tr.Edge.Conns[i].Limit] = v.edge[tr.Edge.Conns[i].Limit] || tr.Edge.Conns[i].Unused == ""
	}
	for i := range tr.Charges {
		v.limits[v.limitName(tr.Charges[i].Limit.Name, o.Plan)] = true
	}
}

// limitName is a limit with the plan that has it, if one does.
func (v *cover) limitName(name, plan string) string {
	if v.planOf[name] && plan != "" {
		return plan + "." + name
	}
	return name
}
