package authz

import (
	"bytes"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
	"sluice/policies"
)

// bound is a policy made ready for decisions. It is built completely before
// anybody sees it, and never changes.
type bound struct {
	policy    *policies.Compiled
	sources   []source
	challenge string // of WWW-Authenticate
	plans     [][]rule
	tenants   []boundTenant
	routes    []boundRoute
	top       []rule // for every request
	epoch     bool   // a dialect tells the time of day
}

type boundTenant struct {
	id    []byte // encoded for keys
	rules []rule
	keys  []boundKey
}

type boundKey struct {
	id    []byte // encoded for keys
	rules []rule
}

type boundRoute struct {
	*policies.Route
	id    []byte // encoded for keys
	rules []rule
	// siblings are the routes that share the match, itself among them, in the
	// order of the file.
	siblings []*policies.Route
}

// rule is a limit made ready.
type rule struct {
	limit  *policies.Limit
	id     []byte // LIMIT in keys
	refill limit.Refill
	owned  bool // counters belong to tenants, or to addresses without one
	dims   []dim
	name   string // as a structured-field string
	item   string // of RateLimit-Policy: name, quota and window
}

// source is a place of credentials.
type source struct {
	*policies.Source
	field []byte // the header that brings it
}

// bind makes a policy ready. It refuses what this release cannot enforce:
// nothing a policy says is quietly left out.
func bind(c *policies.Compiled) (*bound, error) {
	b := &bound{policy: c}
	if c.Identity != nil {
		for i := range c.Identity.Sources {
			b.sources = append(b.sources, bindSource(&c.Identity.Sources[i]))
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
	for _, d := range c.Responses.Dialects {
		b.epoch = b.epoch || d == policies.DialectXRateLimit
	}
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
	done    map[*policies.Limit][]rule
	sources []source
	err     error // the first
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
		rules = append(rules, r)
	}
	b.done[&limits[0]] = rules
	return rules
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

func newRule(l *policies.Limit, sources []source) (rule, error) {
	if l.Kind != policies.KindRate {
		return rule{}, fmt.Errorf("cannot enforce limit %q: kind %q is not known; want %q", l.Name, l.Kind, policies.KindRate)
	}
	r := rule{
		limit: l, id: []byte(l.ID), refill: limit.NewRefill(l.Rate.Micro, l.Rate.Per),
		owned: l.InPlan, name: quoted(l.Name),
	}
	for _, d := range l.Per {
		part, known := newDim(d, sources)
		if !known {
			return rule{}, fmt.Errorf("cannot enforce limit %q: dimension %q is not known to the service", l.Name, d.Kind)
		}
		switch d.Kind {
		case policies.DimTenant:
			r.owned = true // TAG says it
		case policies.DimGlobal:
		case policies.DimKey, policies.DimUser, policies.DimScope:
			r.owned = true
			r.dims = append(r.dims, part)
		default:
			r.dims = append(r.dims, part)
		}
	}
	r.item = policyItem(l)
	return r, nil
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
	case policies.DimIP, policies.DimRoute, policies.DimGlobal, policies.DimTenant,
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
	switch s.Carrier {
	case policies.CarrierQuery:
		return source{s, fieldName(policies.HeaderQueryPrefix, s.Name)}
	case policies.CarrierCookie:
		return source{s, fieldName(policies.HeaderCookiePrefix, s.Name)}
	}
	return source{s, fieldName("", s.Name)}
}

// fieldName is a header's name as fasthttp has it when it arrives.
func fieldName(prefix, name string) []byte {
	return fasthttp.AppendNormalizedHeaderKey(nil, prefix+name)
}

// policyItem is the limit in RateLimit-Policy: "speed";q=200;w=4. The window is
// how long an empty bucket takes to fill, in seconds, rounded up; a bucket that
// holds nothing has none.
func policyItem(l *policies.Limit) string {
	item := quoted(l.Name) + ";q=" + strconv.FormatInt(l.Burst, 10)
	if l.Burst > 0 {
		item += ";w=" + strconv.FormatInt(fillSeconds(l), 10)
	}
	return item
}

// fillSeconds is burst / rate, rounded up, at most what a structured field holds.
func fillSeconds(l *policies.Limit) int64 {
	const most = 999_999_999_999_999
	micro := new(big.Int).Mul(big.NewInt(l.Burst), big.NewInt(limit.Unit))
	nanos := micro.Mul(micro, big.NewInt(int64(l.Rate.Per)))
	perSecond := new(big.Int).Mul(big.NewInt(l.Rate.Micro), big.NewInt(int64(time.Second)))
	seconds, rest := nanos.QuoRem(nanos, perSecond, new(big.Int))
	if rest.Sign() > 0 {
		seconds.Add(seconds, big.NewInt(1))
	}
	if !seconds.IsInt64() || seconds.Int64() > most {
		return most
	}
	return seconds.Int64()
}

// quoted is a name as a structured-field string.
func quoted(name string) string {
	out := []byte{'"'}
	for i := range len(name) {
		if name[i] == '"' || name[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, name[i])
	}
	return string(append(out, '"'))
}
