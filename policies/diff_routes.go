package policies

import (
	"fmt"
	"strings"
)

// routes compares routes by name, with their limits.
func (d *differ) routes() {
	was := map[string]int{}
	for i := range d.from.Routes {
		was[d.from.Routes[i].Name] = i
	}
	moved := asSet(d.movedRoutes())
	for i := range d.to.Routes {
		n, path := &d.to.Routes[i], elem("routes", i)
		j, ok := was[n.Name]
		delete(was, n.Name)
		if !ok {
			var effects []Effect
			if n.Exempt {
				effects = append(effects, EffectLoosened)
			}
			d.routeWide(d.note(ScopeRoute, n.Name, "", path, diffFields{{Name: "match", New: describeMatch(n)}}, append(effects, EffectAdded)...), n.Plans)
			continue
		}
		o := &d.from.Routes[j]
		f := d.routeFields(o, n, specOf(d.old, j), specOf(d.new, i))
		if moved[n.Name] {
			f.add("order", "", "another", EffectMoved)
		}
		if len(f) > 0 {
			d.routeWide(d.note(ScopeRoute, n.Name, "", path, f), n.Plans)
		}
		d.limits(ScopeRoute, n.Name, field(path, "limits"), o.Limits, n.Limits, func(c *Change) { d.routeWide(c, n.Plans) })
	}
	for j := range d.from.Routes {
		o := &d.from.Routes[j]
		if _, gone := was[o.Name]; gone {
			var effects []Effect
			if o.Exempt {
				effects = append(effects, EffectTightened)
			}
			d.note(ScopeRoute, o.Name, "", elem("routes", j), diffFields{{Name: "match", Old: describeMatch(o)}}, append(effects, EffectRemoved)...).Everybody = true
		}
	}
}

// routeWide says whom a change of a route concerns: everybody, but for a route
// that is for some plans.
func (d *differ) routeWide(c *Change, plans []bool) {
	if plans == nil {
		c.Everybody = true
		return
	}
	if d.some[c] == nil {
		d.some[c] = make([]bool, len(plans))
	}
	for i, in := range plans {
		d.some[c][i] = d.some[c][i] || in
	}
}

// onPlans counts the tenants and keys of the plans that changes are for.
func (d *differ) onPlans() {
	tenants, keys := make([]int, len(d.to.Plans)), make([]int, len(d.to.Plans))
	for i := range d.to.Tenants {
		t := &d.to.Tenants[i]
		tenants[t.Plan]++
		for k := range t.Keys {
			keys[t.Keys[k].Plan]++
		}
	}
	anonymous := d.anonymous()
	for c, plans := range d.some {
		for i, in := range plans {
			if in && !c.Everybody {
				c.Tenants += tenants[i]
				c.Keys += keys[i]
				c.Anonymous = c.Anonymous || anonymous[d.to.Plans[i].Name]
			}
		}
	}
}

// specOf is a route as the file has it; one that no file names is as empty.
func specOf(p *Policy, i int) *RouteSpec {
	if i < len(p.Routes) {
		return &p.Routes[i]
	}
	return &RouteSpec{}
}

func describeMatch(r *Route) string {
	var s string
	switch r.Kind {
	case MatchExact:
		s = "exact " + r.Path
	case MatchPrefix:
		s = "prefix " + r.Path
	default:
		s = "regex " + r.Regex.Source
	}
	if len(r.Methods) > 0 {
		s += ", " + strings.Join(r.Methods, " ")
	}
	if len(r.Hosts) > 0 {
		s += ", on " + strings.Join(r.Hosts, " ")
	}
	return s
}

// routeFields are the values of a route that changed.
func (d *differ) routeFields(o, n *Route, before, after *RouteSpec) diffFields {
	var f diffFields
	bare := func(r *Route) string { return describeMatch(&Route{Kind: r.Kind, Path: r.Path, Regex: r.Regex}) }
	f.value("match", bare(o), bare(n), EffectChanged)
	f.entries("hosts", o.Hosts, n.Hosts, "every host", EffectChanged)
	f.entries("methods", o.Methods, n.Methods, "every method", EffectChanged)
	f.toggle("exempt", o.Exempt, n.Exempt, EffectLoosened)
	asks := func(s *RouteSpec) bool { return s.Service == nil || *s.Service }
	f.toggle("service", asks(before), asks(after), EffectTightened)
	f.number("cost", o.Cost, n.Cost, EffectTightened, plainNumber)
	f.costFrom(before.CostFrom, after.CostFrom)
	f.word("on_store_down", string(o.OnStoreDown), string(n.OnStoreDown), EffectTightened, string(FailOpen), string(FailLocal), string(FailClosed))
	f.entries("plans", d.planNames(d.from, o.Plans), d.planNames(d.to, n.Plans), "every plan", EffectLoosened)
	return f
}

// planNames are the plans of a route; nil is every plan.
func (d *differ) planNames(c *Compiled, set []bool) []string {
	if set == nil {
		return nil
	}
	out := []string{}
	for i, in := range set {
		if in {
			out = append(out, c.Plans[i].Name)
		}
	}
	return out
}

// costFrom compares how a cost is settled.
func (f *diffFields) costFrom(o, n *CostFromSpec) {
	word := func(s *CostFromSpec) (string, int64) {
		if s == nil {
			return "", 0
		}
		most := int64(0)
		if s.Max != nil {
			most = int64(*s.Max)
		}
		if s.Report != nil {
			return fmt.Sprintf("report within %s", *s.Report), most
		}
		return "response header " + string(s.ResponseHeader), most
	}
	old, oldMax := word(o)
	new, newMax := word(n)
	f.value("cost_from", old, new, EffectChanged)
	if o != nil && n != nil {
		f.number("cost_from.max", oldMax, newMax, EffectTightened, plainNumber)
	}
}

// movedRoutes are the routes that stand elsewhere where order decides: regular
// expressions are tried as they stand, and of several routes with one match the
// first that fits decides.
func (d *differ) movedRoutes() []string {
	groups := func(c *Compiled) map[string][]string {
		out := map[string][]string{}
		for i := range c.Routes {
			r := &c.Routes[i]
			key := "regex"
			if r.Kind != MatchRegex {
				key = fmt.Sprint(r.Kind, r.Path)
			}
			out[key] = append(out[key], r.Name)
		}
		return out
	}
	old := groups(d.from)
	var out []string
	for key, names := range groups(d.to) {
		out = append(out, displaced(old[key], names)...)
	}
	return out
}
