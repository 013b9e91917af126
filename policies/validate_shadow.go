package policies

// checkEdgeShadow finds edge limits in shadow that meet enforced ones.
// limit_req_dry_run is one switch for a location: it would open the others.
func checkEdgeShadow(p *Policy, f *findings) {
	if p.Edge == nil {
		return
	}
	var shadow, enforced edgeReach
	for _, name := range sortedKeys(p.Edge.Limits) {
		l := p.Edge.Limits[name]
		mine, other := &enforced, &shadow
		if l.Mode == LimitShadow {
			mine, other = &shadow, &enforced
		}
		if rival, route, found := other.meets(l.Routes); found {
			on := "every route"
			if route != "" {
				on = "the route " + string(route)
			}
			path := field("edge.limits", string(name))
			f.errorf(path, ruleShadowMix, "%s meets %s on %s, and of the two only one is in shadow: NGINX can try out all limits of a location or none; want the same mode for both",
				name, f.at(field("edge.limits", string(rival))), on)
		}
		mine.add(name, l.Routes)
	}
}

// edgeReach is where limits of one mode are, each route with the first of them.
type edgeReach struct {
	everywhere Name
	some       Name // any limit, and the first of its routes
	route      Name
	routes     map[Name]Name
}

func (r *edgeReach) add(limit Name, routes []Name) {
	if r.routes == nil {
		r.routes = map[Name]Name{}
	}
	if routes == nil && r.everywhere == "" {
		r.everywhere = limit
	}
	for _, route := range routes {
		if _, ok := r.routes[route]; !ok {
			r.routes[route] = limit
		}
		if r.some == "" {
			r.some, r.route = limit, route
		}
	}
}

// meets finds a limit on one of these routes, nil being all.
func (r *edgeReach) meets(routes []Name) (limit, route Name, found bool) {
	switch {
	case r.everywhere != "" && routes == nil:
		return r.everywhere, "", true
	case r.everywhere != "" && len(routes) > 0:
		return r.everywhere, routes[0], true
	case routes == nil:
		return r.some, r.route, r.some != ""
	}
	for _, route := range routes {
		if limit, ok := r.routes[route]; ok {
			return limit, route, true
		}
	}
	return "", "", false
}
