package policies

import "time"

// checkTenantNumbers checks what tenants change of the limits of their plans.
func checkTenantNumbers(p *Policy, f *findings) {
	plans := effectivePlans(p)
	for i := range p.Tenants {
		f.tenantNumbers(elem("tenants", i), &p.Tenants[i], plans)
	}
}

// tenantNumbers checks what one tenant changes.
func (f *findings) tenantNumbers(path string, t *TenantSpec, plans map[Name]map[Name]LimitSpec) {
	limits, known := plans[t.Plan]
	if !known {
		return // said elsewhere
	}
	for _, name := range sortedKeys(t.Overrides) {
		at := field(field(path, "overrides"), string(name))
		if spec, ok := limits[name]; ok {
			o := t.Overrides[name]
			f.override(at, &spec, &o)
		} else {
			f.errorf(at, ruleLimit, "the plan %s has no limit %s%s", t.Plan, name, choice(name, sortedKeys(limits)))
		}
	}
	for j := range t.Grants {
		f.grant(elem(field(path, "grants"), j), t, limits, &t.Grants[j])
	}
	for j := range t.Keys {
		f.simulate(field(elem(field(path, "keys"), j), "simulate"), t.Keys[j].Simulate, limits, plans[t.Keys[j].Plan])
	}
}

// effectivePlans are the limits of every plan, with what it inherits.
func effectivePlans(p *Policy) map[Name]map[Name]LimitSpec {
	plans := make(map[Name]map[Name]LimitSpec, len(p.Plans))
	for name := range p.Plans {
		plans[name] = planLimits(p, name)
	}
	return plans
}

// simulate wants a limit that the key could meet: of its own plan, of its
// tenant's, or one for every request.
func (f *findings) simulate(path string, name Name, tenant, own map[Name]LimitSpec) {
	if name == "" {
		return
	}
	if own == nil {
		own = tenant
	}
	for _, limits := range []map[Name]LimitSpec{own, tenant, f.policy.Limits} {
		if _, ok := limits[name]; ok {
			return
		}
	}
	f.errorf(path, ruleLimit, "this key meets no limit %s%s", name, choice(name, append(sortedKeys(own), sortedKeys(f.policy.Limits)...)))
}

// override checks one tenant's numbers for one limit.
func (f *findings) override(path string, l *LimitSpec, o *OverrideSpec) {
	kind := l.Kind()
	groups := []struct {
		kind LimitKind
		keys []key
	}{
		{KindRate, []key{{"rate", o.Rate != nil}, {"burst", o.Burst != nil}, {"wait", o.Wait != nil}}},
		{KindWindow, []key{{"window", o.Window != nil}}},
		{KindQuota, []key{{"quota", o.Quota != nil}, {"overage", o.Overage != nil}}},
		{KindConcurrency, []key{{"concurrency", o.Concurrency != nil}}},
		{KindRetries, []key{{"retries", o.Retries != nil}}},
	}
	empty := true
	for _, g := range groups {
		for _, k := range g.keys {
			empty = empty && !k.set
			if k.set && g.kind != kind && kind != "" {
				f.errorf(field(path, k.name), ruleOverrideKind, "this is a limit of %s, and %s belongs to one of %s; want its own numbers alone", kind, k.name, g.kind)
			}
		}
	}
	if empty {
		f.errorf(path, ruleRequired, "the override changes nothing; want a number of this limit, or no override")
	}
	f.overrideNumbers(path, l, o)
}

// overrideNumbers checks numbers of the right kind.
func (f *findings) overrideNumbers(path string, l *LimitSpec, o *OverrideSpec) {
	if o.Burst != nil && *o.Burst < 1 && l.Rate != nil {
		f.errorf(field(path, "burst"), ruleBurst, "a bucket of %d holds nothing, so nothing would ever pass; want 1 or more, or disabled: true for the tenant", *o.Burst)
	}
	f.largestBurst(path, o.Burst)
	if l.Rate != nil {
		f.wait(path, o.Wait, l)
	}
	if w := o.Window; w != nil && l.Window != nil {
		switch {
		case w.Length != l.Window.Length:
			f.errorf(field(path, "window"), ruleOverrideKind, "the plan's window is %s long, and another length is another counter; want a number per %s",
				Duration(l.Window.Length), Duration(l.Window.Length))
		case l.Algorithm == AlgorithmLog && w.Limit > maxLog:
			f.errorf(field(path, "window"), ruleLog, "a log of %d entries for each counter is too long; want at most %d", w.Limit, maxLog)
		}
	}
	if l.Quota == nil {
		return
	}
	quota := l.Quota
	if o.Quota != nil {
		quota = o.Quota
		if quota.Period != l.Quota.Period {
			f.errorf(field(path, "quota"), ruleOverrideKind, "the plan's quota is by the %s, and another period is another counter; want a number per %s", l.Quota.Period, l.Quota.Period)
		}
	}
	if quota.Unlimited {
		f.without(path, "the quota has no end", key{"overage", o.Overage != nil})
	}
}

// grant checks units that a tenant gets for some days.
func (f *findings) grant(path string, t *TenantSpec, limits map[Name]LimitSpec, g *GrantSpec) {
	f.need(path, key{"limit", g.Limit != ""}, key{"add", g.Add != nil}, key{"from", g.From != Date{}}, key{"until", g.Until != Date{}})
	if g.Add != nil && *g.Add < 1 {
		f.errorf(field(path, "add"), ruleGrant, "a grant of %d adds nothing; want 1 or more", *g.Add)
	}
	if g.From != (Date{}) && g.Until != (Date{}) && g.Until.day().Before(g.From.day()) {
		f.errorf(field(path, "until"), ruleGrant, "%s is before %s, when the grant begins; want a day on or after it", g.Until, g.From)
	}
	spec, ok := limits[g.Limit]
	quota := spec.Quota
	if o := t.Overrides[g.Limit].Quota; o != nil {
		quota = o
	}
	switch at := field(path, "limit"); {
	case g.Limit == "":
	case !ok:
		f.errorf(at, ruleLimit, "the plan %s has no limit %s%s", t.Plan, g.Limit, choice(g.Limit, sortedKeys(limits)))
	case spec.Kind() == "":
	case spec.Quota == nil:
		f.errorf(at, ruleGrant, "%s is a limit of %s, and grants are for quotas; want a quota, or an override for the tenant", g.Limit, spec.Kind())
	case quota.Unlimited:
		f.errorf(at, ruleGrant, "%s has no end for this tenant, so nothing can be added to it; want the grant left out", g.Limit)
	}
}

// day is the first moment of a date.
func (d Date) day() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }
