package policies

import (
	"maps"
	"reflect"
	"slices"
)

func (c *Compiled) compilePlans(p *Policy) {
	for i, name := range sortedKeys(p.Plans) {
		c.Plans = append(c.Plans, Plan{
			Index:    i,
			Name:     string(name),
			Priority: planPriority(p, name),
			Limits:   compileLimits(planLimits(p, name), true),
		})
	}
}

// planLimits are the limits of a plan with those of the plans it extends: what
// is said of one name is laid over the older, key by key. A plan that is not
// there has none; a circle of plans ends where it closes.
func planLimits(p *Policy, name Name) map[Name]LimitSpec {
	merged := map[Name]LimitSpec{}
	for _, plan := range slices.Backward(lineage(p, name)) {
		for limit, spec := range p.Plans[plan].Limits {
			merged[limit] = overlay(merged[limit], spec)
		}
	}
	return merged
}

// lineage is the plan and those it extends, nearest first.
func lineage(p *Policy, name Name) []Name {
	var line []Name
	for name != "" && !slices.Contains(line, name) {
		line = append(line, name)
		name = p.Plans[name].Extends
	}
	return line
}

func planPriority(p *Policy, name Name) Priority {
	for _, plan := range lineage(p, name) {
		if pr := p.Plans[plan].Priority; pr != "" {
			return pr
		}
	}
	return PriorityNormal
}

// overlay lays the keys that over says on those of base.
func overlay(base, over LimitSpec) LimitSpec {
	from, to := reflect.ValueOf(over), reflect.ValueOf(&base).Elem()
	for i := range from.NumField() {
		if f := from.Field(i); !f.IsZero() {
			to.Field(i).Set(f)
		}
	}
	return base
}

func (c *Compiled) compileTenants(p *Policy) {
	c.keys, c.certs, c.byClaim = map[SHA256]KeyRef{}, map[SHA256]int{}, map[string]int{}
	for i := range p.Tenants {
		s := &p.Tenants[i]
		t := c.compileTenant(s)
		c.byClaim[t.Claim] = i
		for _, hash := range s.CertSHA256 {
			c.certs[hash] = i
		}
		for j, k := range s.Keys {
			c.keys[k.SHA256] = KeyRef{Tenant: i, Key: j}
		}
		c.Tenants = append(c.Tenants, t)
	}
}

func (c *Compiled) compileTenant(s *TenantSpec) Tenant {
	plan := c.planIndex(s.Plan)
	t := Tenant{
		ID:       string(s.ID),
		Plan:     plan,
		Disabled: s.Disabled,
		Networks: Networks(s.CIDRs),
		Claim:    string(orDefault(s.Claim, Text(s.ID))),
		Certs:    s.CertSHA256,
		Limits:   tenantLimits(c.Plans[plan].Limits, s),
	}
	for _, k := range s.Keys {
		t.Keys = append(t.Keys, c.compileKey(&t, k))
	}
	return t
}

func (c *Compiled) compileKey(t *Tenant, s KeySpec) Key {
	k := Key{
		ID:       string(s.ID),
		Hash:     s.SHA256,
		Plan:     t.Plan,
		Disabled: s.Disabled,
		Networks: Networks(s.CIDRs),
		Simulate: string(s.Simulate),
		Limits:   t.Limits,
	}
	if s.Plan != "" {
		k.Plan = c.planIndex(s.Plan)
		k.Limits = splitPlans(c.Plans[k.Plan].Limits, t.Limits)
	}
	return k
}

// splitPlans are the limits of a key with a plan of its own: of that plan those
// that count by something narrower than a tenant, of the tenant's the others.
func splitPlans(own, tenant []Limit) []Limit {
	var limits []Limit
	for _, l := range own {
		if l.perKey() {
			limits = append(limits, l)
		}
	}
	for _, l := range tenant {
		if !l.perKey() {
			limits = append(limits, l)
		}
	}
	return limits
}

func (l *Limit) perKey() bool {
	return slices.ContainsFunc(l.Per, func(d Dim) bool {
		return d.Kind == DimKey || d.Kind == DimUser || d.Kind == DimScope || d.Kind == DimIP
	})
}

// planSet marks the named plans; nil when none is named.
func (c *Compiled) planSet(names []Name) []bool {
	if names == nil {
		return nil
	}
	set := make([]bool, len(c.Plans))
	for name := range maps.Keys(asSet(names)) {
		set[c.planIndex(name)] = true
	}
	return set
}

func asSet[T comparable](list []T) map[T]bool {
	set := make(map[T]bool, len(list))
	for _, v := range list {
		set[v] = true
	}
	return set
}
