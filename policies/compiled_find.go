package policies

import (
	"iter"
	"slices"
	"time"
)

// RouteNamed finds a route by the name that the subrequest carries, without allocating.
func (c *Compiled) RouteNamed(name []byte) *Route {
	if i, ok := c.byName[string(name)]; ok {
		return &c.Routes[i]
	}
	return nil
}

// TenantByClaim finds the tenant that a login names, an index of Tenants,
// without allocating.
func (c *Compiled) TenantByClaim(claim []byte) (int, bool) {
	i, ok := c.byClaim[string(claim)]
	return i, ok
}

// TenantByCert finds the tenant whose certificate hashes to this, an index of
// Tenants, without allocating. The hash is that of the certificate in DER.
func (c *Compiled) TenantByCert(hash SHA256) (int, bool) {
	i, ok := c.certs[hash]
	return i, ok
}

// PlanNamed finds a plan, an index of Plans.
func (c *Compiled) PlanNamed(name string) (int, bool) {
	i := slices.IndexFunc(c.Plans, func(p Plan) bool { return p.Name == name })
	return i, i >= 0
}

// KeyByHash finds the key that an API key hashes to, without allocating.
func (c *Compiled) KeyByHash(hash SHA256) (KeyRef, bool) {
	ref, ok := c.keys[hash]
	return ref, ok
}

// Settles tells whether what this limit charged is looked at again when the
// request has ended: a lease is freed, and what its status does not count given
// back.
func (l *Limit) Settles() bool { return l.Kind == KindConcurrency || len(l.Statuses) > 0 }

// Counts tells whether a request with this status counts.
func (l *Limit) Counts(status int) bool {
	if len(l.Statuses) == 0 {
		return true
	}
	return slices.Contains(l.Statuses, status) || slices.Contains(l.Statuses, status/100)
}

// Settles tells whether any limit does, or a route has its cost from a header:
// then NGINX must tell when requests end.
func (c *Compiled) Settles() bool {
	for l := range c.limits() {
		if l.Settles() {
			return true
		}
	}
	return len(c.CostHeaders()) > 0
}

// CostHeaders are the headers that tell the cost of a request, each once, in the
// order of the routes.
func (c *Compiled) CostHeaders() []string {
	var names []string
	for i := range c.Routes {
		if r := &c.Routes[i]; r.Asked && r.CostHeader != "" && !slices.Contains(names, r.CostHeader) {
			names = append(names, r.CostHeader)
		}
	}
	return names
}

// Reports is the longest that an application may take to report a cost; 0 when no
// route wants it to.
func (c *Compiled) Reports() time.Duration {
	longest := time.Duration(0)
	for i := range c.Routes {
		longest = max(longest, c.Routes[i].CostReport)
	}
	return longest
}

// CountsRetries tells whether any limit does: then NGINX must tell of them.
func (c *Compiled) CountsRetries() bool {
	for l := range c.limits() {
		if l.Kind == KindRetries {
			return true
		}
	}
	return false
}

// LongestWait is the longest that any request may be held for tokens to come.
func (c *Compiled) LongestWait() time.Duration {
	longest := time.Duration(0)
	for l := range c.limits() {
		longest = max(longest, l.Wait)
	}
	return longest
}

// limits are all limits of the service, those of tenants with their numbers.
func (c *Compiled) limits() iter.Seq[*Limit] {
	return func(yield func(*Limit) bool) {
		each := func(limits []Limit) bool {
			for i := range limits {
				if !yield(&limits[i]) {
					return false
				}
			}
			return true
		}
		if !each(c.Limits) {
			return
		}
		for i := range c.Plans {
			if !each(c.Plans[i].Limits) {
				return
			}
		}
		for i := range c.Routes {
			if !each(c.Routes[i].Limits) {
				return
			}
		}
		for i := range c.Tenants {
			if !each(c.Tenants[i].Limits) {
				return
			}
		}
	}
}
