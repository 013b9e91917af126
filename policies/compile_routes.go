package policies

import (
	"slices"
	"time"
)

// defaultRoute is the one route of a policy that names none.
const defaultRoute = "all"

func (c *Compiled) compileRoutes(p *Policy) {
	specs := p.Routes
	if specs == nil {
		specs = []RouteSpec{{Name: defaultRoute, Match: &MatchSpec{Prefix: "/"}}}
	}
	c.byName = make(map[string]int, len(specs))
	for i := range specs {
		c.Routes = append(c.Routes, c.compileRoute(i, &specs[i]))
		c.byName[c.Routes[i].Name] = i
	}
}

func (c *Compiled) compileRoute(i int, s *RouteSpec) Route {
	r := Route{
		Index:       i,
		Name:        string(s.Name),
		Hosts:       text(s.Match.Hosts),
		Methods:     text(s.Match.Methods),
		Exempt:      s.Exempt,
		Cost:        1,
		OnStoreDown: orDefault(s.OnStoreDown, FailOpen),
		Plans:       c.planSet(s.Plans),
		Limits:      compileLimits(s.Limits, false),
		// Whether any rule of the service concerns the route is seen in bindRoute.
		Asked: !s.Exempt && (s.Service == nil || *s.Service),
	}
	switch {
	case s.Match.Exact != "":
		r.Kind, r.Path = MatchExact, string(s.Match.Exact)
	case s.Match.Prefix != "":
		r.Kind, r.Path = MatchPrefix, string(s.Match.Prefix)
	default:
		r.Kind, r.Regex = MatchRegex, s.Match.Regex
	}
	if s.Cost != nil {
		r.Cost = int64(*s.Cost)
	}
	if from := s.CostFrom; from != nil {
		r.CostHeader, r.CostMax = string(from.ResponseHeader), int64(*from.Max)
		if from.Report != nil {
			r.CostReport = time.Duration(*from.Report)
		}
	}
	return r
}

// bindRoute finds what concerns a route, once everything else is compiled.
func (c *Compiled) bindRoute(r *Route) {
	r.Asked = r.Asked && c.Mode != ModeDisabled &&
		(c.Identity != nil || len(c.Limits) > 0 || len(r.Limits) > 0 || r.Plans != nil)
	if r.Exempt || c.Mode == ModeDisabled {
		return
	}
	for i := range c.Access {
		if concerns(c.Access[i].Routes, r) {
			r.Access = append(r.Access, i)
		}
	}
	for i := range c.Edge {
		if concerns(c.Edge[i].Routes, r) {
			r.Edge = append(r.Edge, i)
		}
	}
}

// concerns tells whether a rule for these routes, nil being all, is for r.
func concerns(routes []int, r *Route) bool {
	return routes == nil || slices.Contains(routes, r.Index)
}

// routeIndexes finds routes by name; nil stays nil.
func (c *Compiled) routeIndexes(names []Name) []int {
	if names == nil {
		return nil
	}
	indexes := make([]int, 0, len(names))
	for _, name := range names {
		i, ok := c.byName[string(name)]
		if !ok {
			panic("BUG: no route " + name)
		}
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	return slices.Compact(indexes)
}
