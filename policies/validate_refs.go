package policies

import (
	"slices"
	"strings"
)

// wantPlan wants a plan of that name; no name is nobody's mistake here.
func (f *findings) wantPlan(path string, name Name) bool {
	if _, ok := f.policy.Plans[name]; ok || name == "" {
		return true
	}
	f.errorf(path, rulePlan, "there is no plan %s%s", name, choice(name, sortedKeys(f.policy.Plans)))
	return false
}

// wantRoutes wants routes of these names, each once, that are not exempt.
func (f *findings) wantRoutes(path string, names []Name) {
	seen := map[Name]bool{}
	for i, name := range names {
		at := elem(path, i)
		r, ok := f.policy.route(name)
		switch {
		case !ok:
			f.errorf(at, ruleRoute, "there is no route %s%s", name, choice(name, f.policy.routeNames()))
		case r.Exempt:
			f.errorf(at, ruleNoEffect, "the route %s is exempt from every rule; want it left out, or the route without exempt", name)
		case seen[name]:
			f.warnf(at, ruleEntryTwice, "%s is here already; want each route once", name)
		}
		seen[name] = true
	}
}

// route finds a route by name. A policy without routes has one: all.
func (p *Policy) route(name Name) (RouteSpec, bool) {
	i := slices.IndexFunc(p.Routes, func(r RouteSpec) bool { return r.Name == name })
	if i < 0 {
		return RouteSpec{Name: name}, len(p.Routes) == 0 && name == defaultRoute
	}
	return p.Routes[i], true
}

func (p *Policy) routeNames() []Name {
	if len(p.Routes) == 0 {
		return []Name{defaultRoute}
	}
	names := make([]Name, len(p.Routes))
	for i := range p.Routes {
		names[i] = p.Routes[i].Name
	}
	return names
}

// choice ends a message about an unknown name: with the one that was meant, or
// with those there are, if they are few.
func choice(name Name, known []Name) string {
	const few = 12
	if hint := didYouMean(string(name), text(known)); hint != "" {
		return hint
	}
	switch {
	case len(known) == 0:
		return "; there are none"
	case len(known) > few:
		return "; want one that is defined"
	}
	return "; want one of " + strings.Join(text(known), ", ")
}
