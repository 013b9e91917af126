package policies

import "slices"

// location is how a route matches: what NGINX has one location for.
type location struct {
	kind MatchKind
	path string // or the expression
}

// location is where a route is; false when its match is not one.
func (r *RouteSpec) location() (location, bool) {
	switch m := r.Match; {
	case m == nil:
	case m.Exact != "":
		return location{MatchExact, string(m.Exact)}, true
	case m.Prefix != "":
		return location{MatchPrefix, string(m.Prefix)}, true
	case m.Regex != nil:
		return location{MatchRegex, m.Regex.Source}, true
	}
	return location{}, false
}

// locations are the routes by where they are, in the order of the file.
func locations(p *Policy) map[location][]int {
	at := map[location][]int{}
	for i := range p.Routes {
		if l, ok := p.Routes[i].location(); ok {
			at[l] = append(at[l], i)
		}
	}
	return at
}

// everything tells of expressions that fit every path.
func everything(l location) bool {
	return l.kind == MatchRegex && slices.Contains([]string{"^/", "/", ".*", "^.*", "^/.*", "^/.*$", "^.*$", ".*$", "^", ""}, l.path)
}

// checkRoutesReached finds routes to which no request is left.
func checkRoutesReached(p *Policy, f *findings) {
	at := locations(p)
	var greedy []int // expressions that fit every path
	for j := range p.Routes {
		l, ok := p.Routes[j].location()
		if !ok {
			continue
		}
		rivals := at[l][:slices.Index(at[l], j)]
		if i := taker(p, rivals, j); i >= 0 {
			f.errorf(field(elem("routes", j), "match"), ruleRouteHidden, "no request is left for this route: %s takes them all; want another match, or hosts or methods that tell the two apart", f.at(elem("routes", i)))
			continue
		}
		if l.kind == MatchRegex {
			if i := taker(p, greedy, j); i >= 0 {
				f.errorf(field(elem("routes", j), "match"), ruleRouteHidden, "no request is left for this route: %s fits every path, and expressions are tried in their order; want it before that one", f.at(elem("routes", i)))
			}
		}
		if everything(l) {
			greedy = append(greedy, j)
		}
	}
	for j := range p.Routes {
		l, ok := p.Routes[j].location()
		if !ok || l.kind != MatchPrefix || len(greedy) == 0 {
			continue
		}
		if i := taker(p, greedy, j); i >= 0 {
			f.errorf(field(elem("routes", j), "match"), ruleRouteHidden, "no request is left for this route: %s fits every path, and NGINX asks expressions before prefixes; want prefix: / there", f.at(elem("routes", i)))
		}
	}
}

// taker is a route among rivals that together take all that j could, -1 when
// something is left for it.
func taker(p *Policy, rivals []int, j int) int {
	m, last := p.Routes[j].Match, -1
	for _, host := range orAny(m.Hosts) {
		for _, method := range orAny(m.Methods) {
			i := slices.IndexFunc(rivals, func(i int) bool {
				return p.Routes[i].Match.takesHost(host) && p.Routes[i].Match.takesMethod(method)
			})
			if i < 0 {
				return -1
			}
			last = rivals[i]
		}
	}
	return last
}

// orAny is a list, or one empty value that stands for everything.
func orAny[T ~string](list []T) []T {
	if len(list) == 0 {
		return []T{""}
	}
	return list
}

// takesHost tells whether all hosts that a pattern stands for are taken; the
// empty pattern is every host.
func (m *MatchSpec) takesHost(pattern Host) bool {
	return len(m.Hosts) == 0 || slices.ContainsFunc(m.Hosts, func(h Host) bool { return HostCovers(string(h), string(pattern)) })
}

func (m *MatchSpec) takesMethod(method Method) bool {
	return len(m.Methods) == 0 || slices.Contains(m.Methods, method)
}

// checkCatchAll warns when some host has no prefix / for what no other route takes.
func checkCatchAll(p *Policy, f *findings) {
	if len(p.Routes) == 0 {
		return
	}
	var last []int // routes for every path and method
	hosts := map[Host]bool{}
	for i := range p.Routes {
		l, ok := p.Routes[i].location()
		if !ok {
			return
		}
		for _, h := range orAny(p.Routes[i].Match.Hosts) {
			hosts[h] = true
		}
		if (l == location{MatchPrefix, "/"} || everything(l)) && p.Routes[i].Match.Methods == nil {
			last = append(last, i)
		}
	}
	for _, host := range sortedKeys(hosts) {
		if slices.ContainsFunc(last, func(i int) bool { return p.Routes[i].Match.takesHost(host) }) {
			continue
		}
		on := ""
		if host != "" {
			on = " on " + string(host)
		}
		f.warnf("routes", ruleNoCatchAll, "requests%s that fit no route pass without any rule; want a last route with match: {prefix: /}", on)
		return
	}
}

// hostsMeet tells whether two routes have a host in common.
func hostsMeet(a, b *MatchSpec) bool {
	return slices.ContainsFunc(orAny(a.Hosts), func(h Host) bool { return hostMeets(h, b.Hosts) })
}

func hostMeets(h Host, hosts []Host) bool {
	return h == "" || len(hosts) == 0 || slices.ContainsFunc(hosts, func(o Host) bool {
		return HostCovers(string(h), string(o)) || HostCovers(string(o), string(h))
	})
}
