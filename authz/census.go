package authz

import (
	"slices"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

// TenantRef names a tenant: one of the policy by his id, or, Unlisted, one that only
// tokens and logins name, who has the plan of identity.unlisted.
type TenantRef struct {
	ID       string
	Unlisted bool
}

// boundRef is a tenant as operators mean him.
type boundRef struct {
	id       string
	tag      []byte // of his counters
	plan     int
	rules    []rule
	keys     []boundKey
	keyIDs   []string
	disabled bool
	keyless  bool // requests of his can come without an API key
	// elsewhere tells that he is in the directory, which keeps no list of his keys.
	elsewhere bool
}

// tenant finds a tenant, in the policy or else in the directory. Operators wait
// longer than a walk through all of them takes. The error is the directory's.
func (b *bound) tenant(ref TenantRef, now time.Time) (out boundRef, known bool, err error) {
	id := b.policy.Identity
	if ref.Unlisted {
		if id == nil || id.Unlisted.Plan < 0 || ref.ID == "" {
			return boundRef{}, false, nil
		}
		tag := appendHash([]byte("unlisted"), []byte(ref.ID))
		return boundRef{id: ref.ID, tag: tag, plan: id.Unlisted.Plan, rules: b.plans[id.Unlisted.Plan], keyless: true}, true, nil
	}
	i := slices.IndexFunc(b.policy.Tenants, func(t policies.Tenant) bool { return t.ID == ref.ID })
	if i < 0 {
		return b.tenantFound(ref.ID, now)
	}
	t := &b.policy.Tenants[i]
	out = boundRef{
		id: t.ID, tag: b.tenants[i].id, plan: t.Plan, rules: b.tenants[i].rules, keys: b.tenants[i].keys, disabled: t.Disabled,
		keyless: len(t.Keys) == 0 || len(t.Certs) > 0 || id != nil && id.Login != nil,
	}
	for j := range b.sources {
		out.keyless = out.keyless || b.sources[j].Kind == policies.SourceJWT
	}
	for j := range t.Keys {
		out.keyIDs = append(out.keyIDs, t.Keys[j].ID)
	}
	return out, true, nil
}

// tenantFound finds a tenant in the directory.
func (b *bound) tenantFound(id string, now time.Time) (boundRef, bool, error) {
	if b.directory == nil {
		return boundRef{}, false, nil
	}
	t, err := b.directory.Tenant(id, now)
	if t == nil || err != nil {
		return boundRef{}, false, err
	}
	a := b.admit(t, nil, now)
	if a.refused {
		return boundRef{}, false, nil
	}
	return boundRef{id: t.ID, tag: t.Tag, plan: a.plan, rules: a.rules, disabled: t.Disabled, elsewhere: true}, true, nil
}

// census makes the list of a tenant's counters: those that belong to him, and whose
// names can be told without a request.
type census struct {
	bound  *bound
	ref    *boundRef
	who    Who
	terms  *terms
	now    time.Time
	client client
	list   []Counter
	names  map[string]bool
	unseen []string
	more   bool
}

func (e *Engine) census(b *bound, ref *boundRef, who Who, now time.Time) *census {
	c := &census{
		bound: b, ref: ref, who: who, terms: e.ledger.of(ref.tag), now: now, list: []Counter{}, names: map[string]bool{},
		client: newClient([]byte(who.IP), b.policy.Client.IPv6Prefix),
	}
	if ref.elsewhere && who.Key != "" {
		ref.keys, ref.keyIDs = []boundKey{{id: appendName(nil, []byte(who.Key)), rules: ref.rules}}, []string{who.Key}
	}
	c.subject(ref.rules, -1)
	for i := range ref.keys {
		c.subject(ref.keys[i].rules, i)
	}
	return c
}

// subject goes through every limit that counts the tenant, or one of his keys.
func (c *census) subject(plan []rule, key int) {
	if c.who.Key != "" && (key < 0 || c.ref.keyIDs[key] != c.who.Key) {
		return
	}
	c.rules(plan, key, nil)
	for i := range c.bound.routes {
		if r := &c.bound.routes[i]; r.Plans == nil || r.Plans[c.ref.plan] {
			c.rules(r.rules, key, r)
		}
	}
	c.rules(c.bound.top, key, nil)
}

func (c *census) rules(rules []rule, key int, route *boundRoute) {
	for i := range rules {
		r := &rules[i]
		personal := r.counts(policies.DimKey, policies.DimUser, policies.DimScope)
		switch {
		case !r.owned || c.who.Limit != "" && c.who.Limit != r.limit.Name:
		case key < 0 && personal && !c.ref.keyless && !c.ref.elsewhere && c.who.User == "":
		case c.who.Key != "" && !personal:
		case r.counts(policies.DimIP) && !c.client.prefix.IsValid(),
			r.counts(policies.DimHeader, policies.DimCookie, policies.DimQuery, policies.DimServer, policies.DimCountry, policies.DimASN),
			key < 0 && personal && c.ref.elsewhere && c.who.User == "":
			if !slices.Contains(c.unseen, r.limit.Name) {
				c.unseen = append(c.unseen, r.limit.Name)
			}
		case route == nil && r.counts(policies.DimRoute):
			for j := range c.bound.routes {
				if c.bound.routes[j].Asked {
					c.add(r, key, &c.bound.routes[j])
				}
			}
		default:
			c.add(r, key, route)
		}
	}
}

// counts tells whether one of these tells the rule's counters apart.
func (r *rule) counts(kinds ...policies.DimKind) bool {
	return slices.ContainsFunc(r.dims, func(d dim) bool { return slices.Contains(kinds, d.kind) })
}

// add adds a counter, once.
func (c *census) add(r *rule, key int, route *boundRoute) {
	s := subject{client: c.client, tenant: c.ref.tag, user: []byte(c.who.User), req: new(Request)}
	out := Counter{Limit: r.limit.Name, Kind: r.limit.Kind, Shadow: r.limit.Shadow, Overage: r.limit.Overage, rule: r}
	if key >= 0 {
		s.key = c.ref.keys[key].id
	}
	if route != nil {
		s.route, out.Route = route.id, route.Name
	}
	name, tag := r.appendKey(nil, &s)
	if c.names[string(name)] {
		return
	}
	c.names[string(name)] = true
	if len(c.list) == maxCounters {
		c.more = true
		return
	}
	out.Name = string(name)
	c.describe(&out, r, key)
	out.op = r.op
	out.op.Tag, out.op.Key, out.op.Cost = tag, name, 1
	if out.op.Kind == limit.Concurrency {
		out.op.ID = []byte("usage")
	}
	if out.op.Kind == limit.Quota {
		out.op.Max = c.terms.max(r, c.now)
		if r.op.Max != limit.Unlimited {
			out.Granted = out.op.Max - r.op.Max
		}
	}
	c.list = append(c.list, out)
}

// describe says whom a counter counts.
func (c *census) describe(out *Counter, r *rule, key int) {
	user := c.who.User != "" && (r.counts(policies.DimUser) || key < 0 && r.counts(policies.DimKey, policies.DimScope))
	switch {
	case user:
		out.User = c.who.User
	case key >= 0 && r.counts(policies.DimKey, policies.DimUser, policies.DimScope):
		out.Key = c.ref.keyIDs[key]
	}
	if r.counts(policies.DimIP) {
		out.IP = c.client.String()
	}
}
