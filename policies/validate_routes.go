package policies

import "strings"

// maxCost is the most that one request can cost.
const maxCost = 1_000_000

func checkRoutes(p *Policy, f *findings) {
	regexes := 0
	for i := range p.Routes {
		r, path := &p.Routes[i], elem("routes", i)
		f.need(path, key{"name", r.Name != ""}, key{"match", r.Match != nil})
		if r.Match != nil {
			f.match(field(path, "match"), r)
			if r.Match.Regex != nil {
				regexes++
			}
		}
		f.routeEffect(path, r)
		f.routeCost(path, r)
		for j, name := range r.Plans {
			f.wantPlan(elem(field(path, "plans"), j), name)
		}
	}
	if regexes > manyRegexes {
		f.warnf("routes", ruleManyRegexes, "%d routes match by regular expression, which NGINX tries one by one: 100 halve the requests a second it can serve, 1000 leave a tenth; want prefixes where they do", regexes)
	}
}

// manyRegexes is where regular expressions cost half of what NGINX can serve.
const manyRegexes = 100

func checkRouteNames(p *Policy, f *findings) {
	names := firsts[Name]{}
	for i := range p.Routes {
		path, name := field(elem("routes", i), "name"), p.Routes[i].Name
		if first, taken := names.taken(name, place{path: path}); taken && name != "" {
			f.errorf(path, ruleTwice, "the name %s is taken by %s; want another", name, f.where(first))
		}
	}
}

// match checks which requests a route takes.
func (f *findings) match(path string, r *RouteSpec) {
	m := r.Match
	f.one(path, key{"exact", m.Exact != ""}, key{"prefix", m.Prefix != ""}, key{"regex", m.Regex != nil})
	if ours(m.Exact) {
		f.errorf(field(path, "exact"), ruleReservedPath, "%s lies where Sluice's own locations are; want a path outside %s", m.Exact, AuthPrefix)
	}
	if ours(m.Prefix) {
		f.errorf(field(path, "prefix"), ruleReservedPath, "%s lies where Sluice's own locations are; want a path outside %s", m.Prefix, AuthPrefix)
	}
	if m.Regex != nil && strings.HasPrefix(m.Regex.Source, "^"+AuthPrefix) {
		f.errorf(field(path, "regex"), ruleReservedPath, "this lies where Sluice's own locations are; want paths outside %s", AuthPrefix)
	}
	alone := r.Exempt || r.Service != nil && !*r.Service
	if alone && m.Methods != nil {
		f.warnf(field(path, "methods"), ruleOtherMethods, "NGINX does not tell methods apart here: requests to this location with other methods are not asked about either; want methods left out, or a route that is asked about")
	}
	if r.Exempt && m.Prefix != "" && healthLike(m.Prefix) {
		f.warnf(field(path, "prefix"), ruleExemptPrefix, "all below %s is exempt too; want exact for a health check", m.Prefix)
	}
}

// ours tells of paths under the internal locations.
func ours(p Path) bool {
	return string(p) == strings.TrimSuffix(AuthPrefix, "/") || strings.HasPrefix(string(p), AuthPrefix)
}

// healthLike tells of paths that health checks ask for.
func healthLike(p Path) bool {
	switch strings.ToLower(string(p[strings.LastIndexByte(string(p), '/')+1:])) {
	case "health", "healthz", "livez", "readyz", "liveness", "readiness", "healthcheck", "health-check", "ping", "heartbeat":
		return true
	}
	return false
}

// routeEffect refuses keys for the service on a route it is not asked about.
func (f *findings) routeEffect(path string, r *RouteSpec) {
	why := ""
	switch {
	case r.Exempt:
		why = "the route is exempt from everything"
	case r.Service != nil && !*r.Service:
		why = "the service is not asked about this route"
	default:
		return
	}
	f.without(path, why, key{"cost", r.Cost != nil}, key{"cost_from", r.CostFrom != nil}, key{"on_store_down", r.OnStoreDown != ""},
		key{"plans", r.Plans != nil}, key{"limits", r.Limits != nil})
}

// routeCost checks what a request costs.
func (f *findings) routeCost(path string, r *RouteSpec) {
	cost := Count(1)
	if r.Cost != nil {
		cost = *r.Cost
		if cost < 1 || cost > maxCost {
			f.errorf(field(path, "cost"), ruleCost, "a request cannot cost %d; want 1 to %d, or service: false for what shall not be counted", cost, maxCost)
		}
	}
	c := r.CostFrom
	if c == nil {
		return
	}
	path = field(path, "cost_from")
	f.one(path, key{"response_header", c.ResponseHeader != ""}, key{"report", c.Report != nil})
	f.need(path, key{"max", c.Max != nil})
	f.freeHeader(field(path, "response_header"), c.ResponseHeader)
	switch {
	case c.Max == nil:
	case *c.Max < cost:
		f.errorf(field(path, "max"), ruleCost, "the most is %d, and %d are charged up front; want at least that", *c.Max, cost)
	case *c.Max > maxCost:
		f.errorf(field(path, "max"), ruleCost, "a request cannot cost %d; want at most %d", *c.Max, maxCost)
	}
}

// checkLimitNames wants one name for one counter among routes and the top level.
func checkLimitNames(p *Policy, f *findings) {
	names := firsts[Name]{}
	for _, name := range sortedKeys(p.Limits) {
		names.taken(name, place{path: field("limits", string(name))})
	}
	for i := range p.Routes {
		for _, name := range sortedKeys(p.Routes[i].Limits) {
			path := field(field(elem("routes", i), "limits"), string(name))
			if first, taken := names.taken(name, place{path: path}); taken {
				f.errorf(path, ruleLimitTwice, "the name %s is taken by %s, and counters of routes and of the top level go by name alone; want another", name, f.where(first))
			}
		}
	}
}
