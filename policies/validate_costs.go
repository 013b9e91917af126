package policies

import (
	"cmp"
	"fmt"
	"slices"
)

// pricedRoute is a route that the service counts, and what a request costs.
type pricedRoute struct {
	index int
	cost  int64
}

// pricedRoutes are the counted routes, the dearest first.
func pricedRoutes(p *Policy) []pricedRoute {
	var priced []pricedRoute
	for i := range p.Routes {
		r := &p.Routes[i]
		if r.Exempt || r.Service != nil && !*r.Service {
			continue
		}
		cost := int64(1)
		if r.Cost != nil {
			cost = int64(*r.Cost)
		}
		priced = append(priced, pricedRoute{i, cost})
	}
	slices.SortStableFunc(priced, func(a, b pricedRoute) int { return cmp.Compare(b.cost, a.cost) })
	return priced
}

// letIn are the routes of a list that a plan may use: those open to every
// plan, and those that name it.
func letIn(p *Policy, priced []pricedRoute, plan Name) (open, named []pricedRoute) {
	for _, r := range priced {
		switch plans := p.Routes[r.index].Plans; {
		case plans == nil:
			open = append(open, r)
		case slices.Contains(plans, plan):
			named = append(named, r)
		}
	}
	return open, named
}

// room is the most units that a limit can ever give to one request, and in
// which words. False where the cost plays no part: a limit of 0 denies, and is
// meant to.
func room(l *LimitSpec, priority Priority) (int64, string, bool) {
	if l.Mode == LimitShadow || l.Count != nil && l.Count.Requests {
		return 0, "", false
	}
	switch l.Kind() {
	case KindRate:
		if l.Burst == nil || *l.Burst < 1 {
			return 0, "", false
		}
		return bucketRoom(l, priority)
	case KindWindow:
		return l.Window.Limit, fmt.Sprintf("%d in a window", l.Window.Limit), l.Window.Limit > 0
	case KindQuota:
		most := l.Quota.Limit
		if l.Overage != nil {
			most += int64(*l.Overage)
		}
		return most, fmt.Sprintf("%d in a %s", most, l.Quota.Period), !l.Quota.Unlimited && most > 0
	}
	return 0, "", false
}

// bucketRoom is what a bucket can hold for a priority: not what is reserved
// for higher ones, nor the 5 % that leased shares may hold.
func bucketRoom(l *LimitSpec, priority Priority) (int64, string, bool) {
	burst := int64(*l.Burst)
	held := fmt.Sprintf("a burst of %d", burst)
	most := burst
	if l.Sync == SyncLeased {
		most = burst - ceilDiv(burst, 20)
		held = fmt.Sprintf("a burst of %d, less 5%% for leased shares", burst)
	}
	kept := Percent(0)
	if r := l.Reserve; r != nil {
		if r.High != nil && priority != PriorityHigh {
			kept += *r.High
		}
		if r.Normal != nil && priority == PriorityLow {
			kept += *r.Normal
		}
	}
	if kept > 0 {
		most -= ceilDiv(burst*int64(kept), 100)
		held += fmt.Sprintf(", less %s in reserve", kept)
	}
	return most, held, true
}

// say reports a finding: as an error or as a warning.
type say func(path, rule, format string, args ...any)

// neverFits reports the routes that cost more than a limit can ever give.
func (f *findings) neverFits(report say, routes []pricedRoute, limit string, l *LimitSpec, priority Priority, want string) {
	most, held, counts := room(l, priority)
	for _, r := range routes {
		if !counts || r.cost <= most {
			return
		}
		path := elem("routes", r.index)
		if f.policy.Routes[r.index].Cost != nil {
			path = field(path, "cost")
		}
		report(path, ruleNeverFits, "a request costs %d and never fits %s (%s): it would always be refused; want a cost of at most %d, or %s",
			r.cost, f.at(limit), held, most, want)
	}
}

// checkCosts finds requests that some limit could never let pass.
func checkCosts(p *Policy, f *findings) {
	priced := pricedRoutes(p)
	for _, plan := range sortedKeys(p.Plans) {
		open, named := letIn(p, priced, plan)
		report := say(f.errorf)
		if strangersOnly(p, plan) {
			report = f.warnf
		}
		want := "a larger limit, or plans without " + string(plan) + " on the route"
		for name, l := range planLimits(p, plan) {
			path, priority := limitPath(p, plan, name), planPriority(p, plan)
			f.neverFits(report, open, path, &l, priority, want)
			f.neverFits(f.errorf, named, path, &l, priority, want)
		}
	}
	least := lowest(p, nil)
	for _, r := range priced {
		route, priority := &p.Routes[r.index], least
		if route.Plans != nil {
			priority = lowest(p, route.Plans)
		}
		one := []pricedRoute{r}
		for name, l := range p.Limits {
			f.neverFits(f.errorf, one, field("limits", string(name)), &l, priority, "a larger limit")
		}
		for name, l := range route.Limits {
			f.neverFits(f.errorf, one, field(field(elem("routes", r.index), "limits"), string(name)), &l, priority, "a larger limit")
		}
	}
}

// strangersOnly tells of a plan for whoever shows no good credential. Many a
// site gives it less than its dearest route costs, to keep that for its
// customers: a warning, unless the route names the plan.
func strangersOnly(p *Policy, plan Name) bool {
	id := p.Identity
	if id == nil || len(p.Plans) == 1 {
		return false
	}
	is := func(b *Fallback) bool { return b != nil && b.Plan == plan }
	return (is(id.Missing) || is(id.Invalid)) && !is(id.Unlisted) &&
		!slices.ContainsFunc(p.Tenants, func(t TenantSpec) bool { return t.Plan == plan })
}

// limitPath is where a plan's limit is said: in the plan, or in the nearest that it extends.
func limitPath(p *Policy, plan, limit Name) string {
	for _, name := range lineage(p, plan) {
		if _, ok := p.Plans[name].Limits[limit]; ok {
			plan = name
			break
		}
	}
	return field(field(field("plans", string(plan)), "limits"), string(limit))
}

// lowest is the lowest priority among the plans that a route lets in, nil
// being all of them and whoever has no plan.
func lowest(p *Policy, plans []Name) Priority {
	least := PriorityHigh
	if plans == nil {
		least = PriorityNormal
		plans = sortedKeys(p.Plans)
	}
	for _, plan := range plans {
		switch planPriority(p, plan) {
		case PriorityLow:
			return PriorityLow
		case PriorityNormal:
			least = PriorityNormal
		}
	}
	return least
}

// checkTenantCosts finds tenants whose own numbers leave no room for a route
// that their plan has room for.
func checkTenantCosts(p *Policy, f *findings) {
	priced := pricedRoutes(p)
	plans, dear := effectivePlans(p), map[Name]pricedRoute{}
	for i := range p.Tenants {
		t := &p.Tenants[i]
		if len(t.Overrides) == 0 {
			continue
		}
		if _, ok := dear[t.Plan]; !ok {
			dear[t.Plan] = dearestFor(p, priced, t.Plan)
		}
		dearest, priority := dear[t.Plan], planPriority(p, t.Plan)
		for _, name := range sortedKeys(t.Overrides) {
			spec, ok := plans[t.Plan][name]
			if !ok {
				continue
			}
			before, _, counts := room(&spec, priority)
			numbers := withNumbers(spec, t.Overrides[name])
			after, held, _ := room(&numbers, priority)
			if !counts || dearest.cost > before || dearest.cost <= after || after == 0 {
				continue
			}
			f.errorf(field(field(elem("tenants", i), "overrides"), string(name)), ruleNeverFits,
				"a request to %s costs %d and never fits %s (%s); want room for at least %d", f.at(elem("routes", dearest.index)), dearest.cost, name, held, dearest.cost)
		}
	}
}

// dearestFor is the dearest route that a plan may use; one that costs nothing
// when there is none.
func dearestFor(p *Policy, priced []pricedRoute, plan Name) pricedRoute {
	for _, r := range priced {
		if plans := p.Routes[r.index].Plans; plans == nil || slices.Contains(plans, plan) {
			return r
		}
	}
	return pricedRoute{}
}

// withNumbers is a limit with a tenant's numbers.
func withNumbers(l LimitSpec, o OverrideSpec) LimitSpec {
	return overlay(l, LimitSpec{Rate: o.Rate, Burst: o.Burst, Wait: o.Wait, Window: o.Window, Quota: o.Quota,
		Overage: o.Overage, Concurrency: o.Concurrency, Retries: o.Retries})
}
