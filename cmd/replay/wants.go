package replay

import (
	"iter"
	"strconv"

	"sluice/policies"
	"sluice/policies/edge"
)

// carried is a value that a client sends.
type carried struct {
	from policies.Carrier
	name string
}

// lookedAt are the values that a policy looks at, each with the place of the
// policy that does; an empty place is NGINX's own.
func lookedAt(c *policies.Compiled) iter.Seq2[string, carried] {
	return func(yield func(string, carried) bool) {
		l := looker{yield: yield, more: true}
		l.header("", "Origin", "Access-Control-Request-Method")
		if c.Identity != nil {
			for i := range c.Identity.Sources {
				s := &c.Identity.Sources[i]
				l.see("identity.sources["+strconv.Itoa(i)+"]", carried{s.Carrier, s.Name})
			}
		}
		for i := range c.Access {
			a := &c.Access[i]
			where := "edge.access." + edge.RuleName(a)
			l.clients(where, &a.Clients)
			l.when(where, a.When)
		}
		for i := range c.Edge {
			e := &c.Edge[i]
			where := "edge.limits." + e.Name
			l.clients(where, e.Only)
			l.clients(where, e.Except)
			l.when(where, e.When)
			l.per(where, e.Per)
		}
		l.limits("limits.", c.Limits)
		for i := range c.Plans {
			l.limits("plans."+c.Plans[i].Name+".limits.", c.Plans[i].Limits)
		}
		for i := range c.Routes {
			l.limits("routes."+c.Routes[i].Name+".limits.", c.Routes[i].Limits)
		}
	}
}

type looker struct {
	yield func(string, carried) bool
	more  bool
}

func (l *looker) see(where string, c carried) {
	l.more = l.more && l.yield(where, c)
}

func (l *looker) header(where string, names ...string) {
	for _, name := range names {
		l.see(where, carried{policies.CarrierHeader, name})
	}
}

func (l *looker) clients(where string, s *policies.ClientSet) {
	if s != nil && len(s.UserAgents) > 0 {
		l.header(where, "User-Agent")
	}
}

func (l *looker) when(where string, w *policies.When) {
	if w == nil {
		return
	}
	for i := range w.Tests {
		l.see(where, carried{w.Tests[i].Carrier, w.Tests[i].Name})
	}
}

func (l *looker) per(where string, per []policies.Dim) {
	for _, d := range per {
		switch d.Kind {
		case policies.DimHeader:
			l.header(where, d.Name)
		case policies.DimCookie:
			l.see(where, carried{policies.CarrierCookie, d.Name})
		case policies.DimQuery:
			l.see(where, carried{policies.CarrierQuery, d.Name})
		}
	}
}

func (l *looker) limits(where string, limits []policies.Limit) {
	for i := range limits {
		l.per(where+limits[i].Name, limits[i].Per)
		if limits[i].Kind == policies.KindRetries {
			l.header(where+limits[i].Name, "X-Retry-Attempt", "Retry-Attempt", "X-Stainless-Retry-Count", "Idempotency-Key")
		}
	}
}
