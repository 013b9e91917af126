package gen

import (
	"fmt"
	"strings"

	"sluice/policies"
	"sluice/policies/edge"
)

// route is what the file of one route says.
func (b *builder) route(r *policies.Route, rules []link, anyAsked bool) routeView {
	v := routeView{From: mark(routePath(r)), Stamp: b.stamp, Name: comment(r.Name), Comments: commentLines(b.routeTitle(r))}
	c := b.chainOf(r, rules)
	set := func(to *Token, name string) {
		if name != "" {
			*to = word(name)
		}
	}
	set(&v.Refuse, c.refuse)
	set(&v.Exempt, c.exempt)
	set(&v.Would, c.would)
	set(&v.Rule, c.rule)
	v.Close = c.close
	b.routeLimits(&v, r)
	mode, asked := b.asks(r)
	if b.c.Mode == policies.ModeShadow {
		mode = policies.FailOpen
	}
	if asked {
		v.Ask = word(policies.AuthPath(mode, r.Name))
		v.Hide = b.hidden(r)
	}
	if anyAsked && !asked {
		v.Comments = append(v.Comments, commentLines([]string{
			"The service is not asked. NGINX hands an auth_request down: a location that asks and has this one in it asks for it too,",
			"unless you say `auth_request off;` here. It is not said for you, because the one that is inherited may be your own login."})...)
	}
	return v
}

// routeTitle says in words what the route is.
func (b *builder) routeTitle(r *policies.Route) []string {
	what := ""
	switch r.Kind {
	case policies.MatchExact:
		what = "exactly " + r.Path
	case policies.MatchPrefix:
		what = r.Path + " and all below"
	case policies.MatchRegex:
		what = "what fits " + r.Regex.Source
	}
	lines := []string{"It is for " + what + "."}
	if len(r.Hosts) > 0 {
		lines[0] = "It is for " + what + ", on " + strings.Join(r.Hosts, ", ") + "."
	}
	switch {
	case b.c.Mode == policies.ModeDisabled:
		lines = append(lines, "The policy is disabled: nothing is limited.")
	case r.Exempt:
		lines = append(lines, "It is exempt: no rule, no limit, no question.")
	}
	return lines
}

// asks tells whether the location that a route is in asks the service, and
// what it does without: routes that share a match share the location.
func (b *builder) asks(r *policies.Route) (policies.FailMode, bool) {
	return r.OnStoreDown, edge.Asks(b.c, r)
}

// routeLimits are the edge limits of a route.
func (b *builder) routeLimits(v *routeView, r *policies.Route) {
	shadow := 0
	for _, i := range r.Edge {
		e := &b.limits[i]
		if e.shadow {
			shadow++
		}
		l := routeLimit{From: mark(limitPath(b.c.Edge[i].Name)), Rate: e.number == 0, Zone: e.zone, Burst: e.burst, Delay: e.delay}
		if e.number > 0 {
			l.Connections = number(e.number)
			v.LimitsConn = true
		} else {
			v.LimitsRate = true
		}
		if e.route {
			v.Route = b.take(Quote(r.Name))
		}
		v.Limits = append(v.Limits, l)
	}
	v.Retry = number(edge.RouteRetry(b.c, r))
	if name := edge.OnlyLimit(b.c, r, false); name != "" {
		v.RateLimit = b.take(Quote(name))
	}
	if name := edge.OnlyLimit(b.c, r, true); name != "" {
		v.ConnLimit = b.take(Quote(name))
	}
	v.DryRun = shadow > 0
	if shadow > 0 && shadow < len(r.Edge) {
		b.take(Token{}, fmt.Errorf("cannot render route %q: of its edge limits some are in shadow and some are not; NGINX knows only all or none in a location", r.Name))
	}
}
