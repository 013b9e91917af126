package trial

import (
	"fmt"
	"slices"

	"sluice/authz/limit"
	"sluice/policies"
)

// Effective are the limits that hold for a plan, or for a tenant.
type Effective struct {
	Tenant   string  `json:"tenant,omitempty"`
	Plan     string  `json:"plan"`
	Priority string  `json:"priority"`
	Extends  string  `json:"extends,omitempty"`
	Disabled bool    `json:"disabled,omitempty"`
	Limits   []Limit `json:"limits"` // the plan's
	Keys     []KeyOf `json:"keys,omitempty"`
	Routes   []Limit `json:"route_limits"` // those of routes
	Every    []Limit `json:"every_request"`
	// Refused are the routes that the plan may not use.
	Refused []string `json:"refused_routes"`
	// Away tells what each asked route does when the store is away.
	Away []Away `json:"store_away"`
}

// Limit is one limit with its numbers and where each was said.
type Limit struct {
	Name   string  `json:"name"`
	Route  string  `json:"route,omitempty"`
	Text   string  `json:"text"` // what it allows
	Per    string  `json:"per"`
	Status int     `json:"status"`
	Shadow bool    `json:"shadow,omitempty"`
	Said   []Said  `json:"said,omitempty"`
	Grants []Grant `json:"grants,omitempty"`
	// Overshoot is how many units a soft quota may let pass beyond its end, with as
	// many instances as were asked about; nil: it is none.
	Overshoot *int64   `json:"overshoot,omitempty"`
	Notes     []string `json:"notes,omitempty"`
}

// Said is one key of a limit and where it was said.
type Said struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
	Where string `json:"where"` // file:line
}

// Grant is what a tenant has besides a quota, from one day to another.
type Grant struct {
	Add   int64  `json:"add"`
	From  string `json:"from"`
	Until string `json:"until"`
}

// KeyOf is a key of the tenant that has a plan of its own, or is switched off.
// Limits are those that it does not share with the tenant's other keys.
type KeyOf struct {
	ID       string  `json:"id"`
	Plan     string  `json:"plan"`
	Disabled bool    `json:"disabled,omitempty"`
	Limits   []Limit `json:"limits"`
}

// Away is what some routes do when the store is away.
type Away struct {
	Mode   string   `json:"on_store_down"`
	Routes []string `json:"routes"`
}

// EffectiveOf finds the limits of a tenant; when tenant is empty, those of a plan.
// Instances is how many services share the store.
func EffectiveOf(p *policies.Policy, c *policies.Compiled, tenant, plan string, instances int) (*Effective, error) {
	t := -1
	if tenant != "" {
		if t = slices.IndexFunc(c.Tenants, func(x policies.Tenant) bool { return x.ID == tenant }); t < 0 {
			return nil, fmt.Errorf("the policy has no tenant %q", tenant)
		}
		own := c.Plans[c.Tenants[t].Plan].Name
		if plan != "" && plan != own {
			return nil, fmt.Errorf("tenant %q has plan %q, not %q", tenant, own, plan)
		}
		plan = own
	}
	i := slices.IndexFunc(c.Plans, func(x policies.Plan) bool { return x.Name == plan })
	if i < 0 {
		return nil, fmt.Errorf("the policy has no plan %q", plan)
	}
	x := &effective{p: p, c: c, instances: instances}
	e := &Effective{
		Tenant: tenant, Plan: plan, Priority: string(c.Plans[i].Priority), Extends: string(p.Plans[policies.Name(plan)].Extends),
		Limits: x.limits(c.Plans[i].Limits, plan, -1), Every: x.limits(c.Limits, "", -1), Refused: []string{},
	}
	if t >= 0 {
		e.Disabled = c.Tenants[t].Disabled
		e.Limits = x.limits(c.Tenants[t].Limits, plan, t)
		e.Keys = x.keys(&c.Tenants[t])
	}
	e.Routes = []Limit{}
	for j := range c.Routes {
		r := &c.Routes[j]
		if r.Plans != nil && !r.Plans[i] {
			e.Refused = append(e.Refused, r.Name)
			continue
		}
		for _, l := range x.limits(r.Limits, "", -1) {
			l.Route = r.Name
			e.Routes = append(e.Routes, l)
		}
	}
	e.Away = x.away(i)
	return e, nil
}

type effective struct {
	p         *policies.Policy
	c         *policies.Compiled
	instances int
}

func (x *effective) keys(t *policies.Tenant) []KeyOf {
	var out []KeyOf
	for i := range t.Keys {
		k := &t.Keys[i]
		if k.Plan == t.Plan && !k.Disabled {
			continue
		}
		own := x.c.Plans[k.Plan].Name
		out = append(out, KeyOf{ID: k.ID, Plan: own, Disabled: k.Disabled, Limits: x.keyLimits(k, t, own)})
	}
	return out
}

// keyLimits are the limits of a key that are its own plan's; the others are the
// tenant's.
func (x *effective) keyLimits(k *policies.Key, t *policies.Tenant, own string) []Limit {
	var limits []policies.Limit
	for i := range k.Limits {
		l := &k.Limits[i]
		if !slices.ContainsFunc(t.Limits, func(o policies.Limit) bool { return o.ID == l.ID && LimitText(&o) == LimitText(l) && o.Wait == l.Wait }) {
			limits = append(limits, *l)
		}
	}
	return x.limits(limits, own, -1)
}

func (x *effective) limits(limits []policies.Limit, plan string, tenant int) []Limit {
	out := make([]Limit, 0, len(limits))
	for i := range limits {
		out = append(out, x.limit(&limits[i], plan, tenant))
	}
	return out
}

// limit is one limit; plan is empty for those outside of plans, which say all
// about themselves.
func (x *effective) limit(l *policies.Limit, plan string, tenant int) Limit {
	out := Limit{Name: l.Name, Text: LimitText(l), Per: PerText(l.Per), Status: l.Status, Shadow: l.Shadow, Notes: notes(l)}
	if out.Status == 0 {
		out.Status = 429
	}
	for _, g := range l.Grants {
		out.Grants = append(out.Grants, Grant{g.Add, dateText(g.From), dateText(g.Until)})
	}
	if l.Soft {
		over := limit.Overshoot(&limit.Op{Kind: limit.Quota, Max: quotaMax(l), Overage: l.Overage}, x.instances)
		out.Overshoot = &over
	}
	if l.Leased {
		out.Notes = append(out.Notes, leasedNote(l, x.instances))
	}
	if plan == "" {
		return out
	}
	for _, o := range x.p.Origins(plan, l.Name, tenant) {
		from := "plan " + o.Plan
		switch {
		case o.Override:
			from = "override of " + x.c.Tenants[tenant].ID
		case o.Plan != plan:
			from += ", extended"
		}
		value := valueOf(l, o.Key)
		if value == "" {
			continue // no number of the limit
		}
		out.Said = append(out.Said, Said{Key: o.Key, Value: value, From: from, Where: fmt.Sprintf("%s:%d", o.Pos.File, o.Pos.Line)})
	}
	return out
}

// away tells what the routes of a plan do when the store is away, by fail mode.
func (x *effective) away(plan int) []Away {
	routes := map[policies.FailMode][]string{}
	for i := range x.c.Routes {
		if r := &x.c.Routes[i]; r.Asked && (r.Plans == nil || r.Plans[plan]) {
			routes[r.OnStoreDown] = append(routes[r.OnStoreDown], r.Name)
		}
	}
	var out []Away
	for _, mode := range []policies.FailMode{policies.FailOpen, policies.FailClosed, policies.FailLocal} {
		if len(routes[mode]) > 0 {
			out = append(out, Away{string(mode), routes[mode]})
		}
	}
	return out
}
