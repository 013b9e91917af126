package policies

import (
	"fmt"
	"maps"
	"slices"
)

// checkSharedLocations wants routes that NGINX has one location for to agree on
// all that NGINX does by itself there. Such routes differ in methods alone,
// which the service tells apart and NGINX does not.
func checkSharedLocations(p *Policy, f *findings) {
	var rules map[Name][]string
	at := locations(p)
	for j := range p.Routes {
		l, ok := p.Routes[j].location()
		if !ok || len(at[l]) < 2 {
			continue
		}
		if rules == nil {
			rules = edgeRules(p.Edge)
		}
		for _, i := range at[l] {
			if i == j {
				break
			}
			a, b := &p.Routes[i], &p.Routes[j]
			if !shareRequests(a.Match, b.Match) {
				continue
			}
			if what := disagreement(a, b, rules); what != "" {
				f.errorf(elem("routes", j), ruleLocation, "this route and %s are one location for NGINX, which does not tell methods apart, but %s; want the two alike, or matches that differ",
					f.at(elem("routes", i)), what)
				break
			}
		}
	}
}

// shareRequests tells whether a location of some host gets requests for both
// routes, a being the earlier.
func shareRequests(a, b *MatchSpec) bool {
	if len(a.Methods) == 0 || !hostsMeet(a, b) {
		return false // where they meet, a takes everything
	}
	return len(b.Methods) == 0 || slices.ContainsFunc(b.Methods, func(m Method) bool { return !a.takesMethod(m) })
}

// edgeRules are what NGINX does on some routes alone, by route.
func edgeRules(e *EdgeSpec) map[Name][]string {
	rules := map[Name][]string{}
	if e == nil {
		return rules
	}
	for i := range e.Access {
		for name := range maps.Keys(asSet(e.Access[i].Routes)) {
			rules[name] = append(rules[name], fmt.Sprintf("the access rule %s", e.Access[i].Name))
		}
	}
	for _, limit := range sortedKeys(e.Limits) {
		for name := range maps.Keys(asSet(e.Limits[limit].Routes)) {
			rules[name] = append(rules[name], fmt.Sprintf("the edge limit %s", limit))
		}
	}
	return rules
}

// disagreement says what NGINX would have to do for one route and not for the
// other; empty when there is nothing.
func disagreement(a, b *RouteSpec, rules map[Name][]string) string {
	asked := func(r *RouteSpec) bool { return r.Service == nil || *r.Service }
	only := func(x, y *RouteSpec, rule string) string {
		return fmt.Sprintf("%s concerns %s and not %s", rule, x.Name, y.Name)
	}
	switch {
	case a.Exempt && b.Exempt:
		return ""
	case a.Exempt != b.Exempt:
		return "one of them is exempt"
	case asked(a) != asked(b):
		return "the service is asked about one of them alone"
	case asked(a) && (a.OnStoreDown == FailClosed) != (b.OnStoreDown == FailClosed):
		return "one of them is closed when the service is away, the other open"
	}
	for _, rule := range rules[a.Name] {
		if !slices.Contains(rules[b.Name], rule) {
			return only(a, b, rule)
		}
	}
	for _, rule := range rules[b.Name] {
		if !slices.Contains(rules[a.Name], rule) {
			return only(b, a, rule)
		}
	}
	return ""
}
