package authz

import (
	"bytes"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/authz/directory"
	"sluice/authz/limit"
	"sluice/authz/memo"
	"sluice/policies"
)

// bound is a policy made ready for decisions. It is built completely before
// anybody sees it, and never changes.
type bound struct {
	policy     *policies.Compiled
	since      time.Time // when it was put in force
	sources    []source
	directory  *directory.Directory        // of tenants that are not in the policy; nil: there is none
	admitted   *memo.Table[*admitted]      // of those, by id or key
	found      *memo.Table[*foundMeter]    // of those: the engine's
	room       int                         // for the limits of a plan
	faults     *[tokenFaults]atomic.Uint64 // the engine's count of bad tokens
	challenge  string                      // of WWW-Authenticate
	plans      [][]rule
	tenants    []boundTenant
	routes     []boundRoute
	top        []rule   // for every request
	meters     []meter  // of the tenants, by index
	planLabels []uint32 // their names in metrics
	timed      bool     // the time of day matters: to a dialect, a quota, a token
	country    string   // a limit that counts by country; empty: none does
	asn        string   // one that counts by autonomous system
	retries    bool     // a limit counts retries
	notifies   bool     // somebody is told when a quota comes near its end
	settles    bool     // a limit is settled when requests end
}

type boundTenant struct {
	id    []byte // encoded for keys
	rules []rule
	keys  []boundKey
	meter *meter
}

type boundKey struct {
	id    []byte // encoded for keys
	rules []rule
}

type boundRoute struct {
	*policies.Route
	id    []byte // encoded for keys
	label uint32 // its name in metrics
	rules []rule
	// siblings are the routes that share the match, itself among them, in the
	// order of the file.
	siblings []*policies.Route
}

// source is a place of credentials.
type source struct {
	*policies.Source
	field  []byte  // the header that brings it
	tokens *tokens // that judges it, for signed tokens
}

// bind makes a policy ready. It refuses what this release cannot enforce:
// nothing a policy says is quietly left out.
func bind(c *policies.Compiled) (*bound, error) {
	b := &bound{policy: c}
	if c.Identity != nil {
		for i := range c.Identity.Sources {
			b.sources = append(b.sources, bindSource(&c.Identity.Sources[i]))
			b.timed = b.timed || c.Identity.Sources[i].Kind == policies.SourceJWT
		}
	}
	binder := binder{done: map[*policies.Limit][]rule{}, sources: b.sources}
	b.challenge = challenges(b.sources)
	for i := range c.Plans {
		b.plans = append(b.plans, binder.rules(c.Plans[i].Limits))
	}
	for i := range c.Tenants {
		b.tenants = append(b.tenants, binder.tenant(&c.Tenants[i]))
	}
	for i := range c.Routes {
		b.routes = append(b.routes, binder.route(c, &c.Routes[i]))
	}
	b.top = binder.rules(c.Limits)
	b.timed = b.timed || binder.quota || b.simulates() || slices.Contains(c.Responses.Dialects, policies.DialectXRateLimit)
	b.notifies = binder.notifies && len(c.Webhooks) > 0
	b.retries, b.settles = binder.retries, c.Settles() || c.Reports() > 0
	b.country, b.asn = binder.country, binder.asn
	if binder.err != nil {
		return nil, binder.err
	}
	return b, b.checkSize()
}

// checkSize refuses policies that put more limits on a request than a store
// takes in one step.
func (b *bound) checkSize() error {
	plan := 0
	for _, rules := range b.plans {
		plan = max(plan, len(rules))
	}
	for i := range b.tenants {
		plan = max(plan, len(b.tenants[i].rules))
		for j := range b.tenants[i].keys {
			plan = max(plan, len(b.tenants[i].keys[j].rules))
		}
	}
	for i := range b.routes {
		if n := plan + len(b.routes[i].rules) + len(b.top); n > limit.MaxOps {
			return fmt.Errorf("cannot enforce %d limits on one request to route %q; want at most %d", n, b.routes[i].Name, limit.MaxOps)
		}
	}
	return nil
}

// binder shares the rules of limits that are shared: tenants without overrides
// have their plan's.
type binder struct {
	done     map[*policies.Limit][]rule
	sources  []source
	quota    bool   // one of the limits is a quota
	retries  bool   // one counts retries
	country  string // one that counts by country; empty: none does
	asn      string // one that counts by autonomous system
	err      error  // the first
	notifies bool   // one has steps at which somebody is told
}

func (b *binder) rules(limits []policies.Limit) []rule {
	if len(limits) == 0 {
		return nil
	}
	if rules, ok := b.done[&limits[0]]; ok && len(rules) == len(limits) {
		return rules
	}
	rules := make([]rule, 0, len(limits))
	for i := range limits {
		r, err := newRule(&limits[i], b.sources)
		if err != nil && b.err == nil {
			b.err = err
		}
		b.quota = b.quota || r.op.Kind == limit.Quota
		b.notifies = b.notifies || len(limits[i].Notify) > 0
		b.retries = b.retries || r.op.Kind == limit.Retries
		b.placed(&limits[i])
		rules = append(rules, r)
	}
	b.done[&limits[0]] = rules
	return rules
}

// placed notes what a limit must know of where clients are.
func (b *binder) placed(l *policies.Limit) {
	for _, d := range l.Per {
		switch d.Kind {
		case policies.DimCountry:
			b.country = l.Name
		case policies.DimASN:
			b.asn = l.Name
		}
	}
}

func (b *binder) tenant(t *policies.Tenant) boundTenant {
	out := boundTenant{id: appendName(nil, []byte(t.ID)), rules: b.rules(t.Limits)}
	for i := range t.Keys {
		k := &t.Keys[i]
		out.keys = append(out.keys, boundKey{id: appendName(nil, []byte(k.ID)), rules: b.rules(k.Limits)})
	}
	return out
}

func (b *binder) route(c *policies.Compiled, r *policies.Route) boundRoute {
	out := boundRoute{Route: r, id: appendName(nil, []byte(r.Name)), rules: b.rules(r.Limits)}
	for i := range c.Routes {
		if o := &c.Routes[i]; o == r || r.SameMatch(o) {
			out.siblings = append(out.siblings, o)
		}
	}
	return out
}

// newDim finds the header that brings a dimension's value, and whether the
// same value is also a credential.
func newDim(d policies.Dim, sources []source) (part dim, known bool) {
	part = dim{kind: d.Kind, capture: d.Capture}
	own := []byte(nil)
	switch d.Kind {
	case policies.DimHeader:
		part.field, own = fieldName(policies.HeaderValuePrefix, d.Name), fieldName("", d.Name)
	case policies.DimCookie:
		part.field = fieldName(policies.HeaderCookiePrefix, d.Name)
		own = part.field
	case policies.DimQuery:
		part.field = fieldName(policies.HeaderQueryPrefix, d.Name)
		own = part.field
	case policies.DimServer:
		part.field = fieldName(policies.HeaderServer, "")
	case policies.DimIP, policies.DimCountry, policies.DimASN, policies.DimRoute, policies.DimGlobal, policies.DimTenant,
		policies.DimKey, policies.DimUser, policies.DimScope:
	default:
		return dim{}, false
	}
	for i := range sources {
		if own != nil && bytes.Equal(sources[i].field, own) {
			part.proof = own
		}
	}
	return part, true
}

// bindSource finds the header in which NGINX sends a credential.
func bindSource(s *policies.Source) source {
	out := source{Source: s, field: fieldName("", s.Name)}
	switch {
	case s.Kind == policies.SourceCert:
		out.field = fieldName("", policies.HeaderCert)
	case s.Carrier == policies.CarrierQuery:
		out.field = fieldName(policies.HeaderQueryPrefix, s.Name)
	case s.Carrier == policies.CarrierCookie:
		out.field = fieldName(policies.HeaderCookiePrefix, s.Name)
	}
	if s.Kind == policies.SourceJWT {
		out.tokens = newTokens(s.Token)
	}
	return out
}

// fieldName is a header's name as fasthttp has it when it arrives.
func fieldName(prefix, name string) []byte {
	return fasthttp.AppendNormalizedHeaderKey(nil, prefix+name)
}
