package authz

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"sluice/policies"
)

// identity is who asks, by credential.
type identity struct {
	tenant []byte // encoded for keys; empty: nobody known, the client's address stands for him
	key    []byte // encoded for keys
	user   []byte // the user's name, as it came
	scope  []byte // of a token
	plan   int    // -1: none
	rules  []rule // what his plan limits
	shown  bool   // a credential came, good or not
	// simulate is the limit that his key always meets; empty: none.
	simulate string
	proof    []byte // the field that brought a good one
}

// identify takes the first credential that is present. It returns false when d
// is already a refusal.
func (b *bound) identify(req *Request, c client, d *Decision) (identity, bool) {
	if b.policy.Identity == nil {
		return identity{plan: -1}, true
	}
	if req.app != nil && req.app.named() {
		return b.identifyApp(req.app, c, d)
	}
	for i := range b.sources {
		s := &b.sources[i]
		value := s.credential(req)
		if len(value) == 0 {
			continue
		}
		id, present, ok := b.judge(s, value, c, d)
		if !present {
			continue
		}
		if len(id.tenant) > 0 {
			id.proof = s.field
		}
		return id, ok
	}
	if b.policy.Identity.Login != nil && req.Login {
		return b.identifyLogin(req, c, d)
	}
	return b.outcome(b.policy.Identity.Missing, false, d)
}

// judge is who shows this credential. present is false when only a look inside
// tells that it is not for this source.
func (b *bound) judge(s *source, value []byte, c client, d *Decision) (id identity, present, ok bool) {
	switch s.Kind {
	case policies.SourceJWT:
		return b.identifyToken(s.tokens, value, c, d)
	case policies.SourceCert:
		id, ok = b.identifyCert(value, c, d)
	default:
		id, ok = b.identifyKey(value, c, d)
	}
	return id, true, ok
}

// credential is the credential in a question, empty when the client shows none
// that is ours. What NGINX found unfit is returned as it came: no credential.
func (s *source) credential(req *Request) []byte {
	value := req.value(s.field)
	if len(value) == 0 || string(value) == policies.InvalidCredential {
		return value
	}
	if n := len(s.Scheme); n > 0 {
		if len(value) <= n || value[n] != ' ' || !foldEqual(value[:n], s.Scheme) {
			return nil
		}
		value = bytes.TrimLeft(value[n:], " ")
	}
	if !bytes.HasPrefix(value, []byte(s.Prefix)) {
		return nil
	}
	return value
}

// foldEqual compares ASCII without regard to case.
func foldEqual(a []byte, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if lower(a[i]) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func (b *bound) identifyKey(value []byte, c client, d *Decision) (identity, bool) {
	ref, hash, ok := b.lookup(value)
	switch {
	case ok:
	case b.directory != nil && hash != policies.SHA256{}:
		return b.identifyFound(hash, c, d)
	default:
		return b.outcome(b.policy.Identity.Invalid, true, d)
	}
	t := &b.policy.Tenants[ref.Tenant]
	k := &t.Keys[ref.Key]
	d.Tenant, d.Key = t.ID, k.ID
	d.setPlan(k.Plan)
	switch {
	case t.Disabled || k.Disabled:
		d.deny(ReasonDisabled, 403)
		return identity{}, false
	case !c.within(t.Networks) || !c.within(k.Networks):
		d.deny(ReasonAddress, 403)
		return identity{}, false
	}
	tenant := &b.tenants[ref.Tenant]
	key := &tenant.keys[ref.Key]
	d.meter = tenant.meter
	return identity{tenant: tenant.id, key: key.id, plan: k.Plan, rules: key.rules, shown: true, simulate: k.Simulate}, true
}

// lookup finds an API key by its hash. How long the index takes tells something
// of a hash at most, which helps nobody to a key; the comparison that decides
// tells nothing. The hash of what cannot be a key is zero.
func (b *bound) lookup(value []byte) (ref policies.KeyRef, hash policies.SHA256, ok bool) {
	if len(value) > policies.MaxCredential || string(value) == policies.InvalidCredential {
		return policies.KeyRef{}, hash, false
	}
	hash = sha256.Sum256(value)
	if ref, ok = b.policy.KeyByHash(hash); !ok {
		return policies.KeyRef{}, hash, false
	}
	want := &b.policy.Tenants[ref.Tenant].Keys[ref.Key].Hash
	return ref, hash, subtle.ConstantTimeCompare(hash[:], want[:]) == 1
}

// outcome is what the policy has for those without a good credential: a plan,
// counted by address, or a refusal.
func (b *bound) outcome(o policies.Outcome, shown bool, d *Decision) (identity, bool) {
	if o.Plan < 0 {
		d.deny(ReasonCredential, o.Status)
		d.challenge = o.Status == 401
		return identity{}, false
	}
	d.setPlan(o.Plan)
	return identity{plan: o.Plan, rules: b.plans[o.Plan], shown: shown}, true
}

func (d *Decision) setPlan(i int) {
	p := &d.bound.policy.Plans[i]
	d.Plan, d.Priority, d.planLabel = p.Name, p.Priority, d.bound.planLabels[i]
}

// admits tells whether the plan may use the route; if not, d is the refusal.
// Who showed no credential is asked for one: it may bring a plan that may.
func (r *boundRoute) admits(id *identity, d *Decision) bool {
	if r.Plans == nil || id.plan >= 0 && r.Plans[id.plan] {
		return true
	}
	if id.shown {
		d.deny(ReasonPlan, 403)
	} else {
		d.deny(ReasonPlan, 401)
		d.challenge = true
	}
	return false
}

// challenges is WWW-Authenticate for the sources in their order, each scheme
// once. A key that comes without a scheme is asked for as ApiKey, a token
// anywhere as Bearer.
func challenges(sources []source) string {
	var list []string
	for i := range sources {
		s, scheme := &sources[i], "ApiKey"
		switch {
		case s.Kind == policies.SourceCert:
			continue // it is shown before there is a request
		case s.Kind == policies.SourceJWT:
			scheme = "Bearer"
		case s.Carrier == policies.CarrierHeader && s.Scheme != "":
			scheme = s.Scheme
		}
		list = append(list, scheme+` realm="sluice"`)
	}
	if len(list) == 0 {
		return `ApiKey realm="sluice"`
	}
	return strings.Join(compact(list), ", ")
}

// compact drops what is already there.
func compact(list []string) []string {
	seen := map[string]bool{}
	out := list[:0]
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
