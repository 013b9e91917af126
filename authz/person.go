package authz

import "sluice/policies"

// person is who somebody is by the word of somebody who is believed: the site's
// own authenticator, the issuer of a token, the authority behind a certificate.
type person struct {
	listed    int             // his tenant, an index of the policy's; -1: he is in none of those
	claim     []byte          // that names his tenant, as it came; empty: nothing does
	certified bool            // cert is all that is known of him
	cert      policies.SHA256 // of his certificate
	name      string          // of the tenant, when he is unlisted
	tag       []byte          // of an unlisted tenant, encoded for keys; empty: his address stands for him
	user      []byte          // as it came
	scope     []byte          // what the token is for, sorted
	plan      int             // that the token names, for who is unlisted; -1: none
}

// newPerson finds the tenant that is named by a claim, among those of the policy.
func (b *bound) newPerson(tenant, user []byte) person {
	p := person{listed: -1, claim: tenant, user: user, plan: -1}
	if i, ok := b.policy.TenantByClaim(tenant); ok && len(tenant) > 0 {
		p.listed = i
	}
	return p
}

// unlist says whose his counters are when no tenant is found for him. Without a
// tenant a user is on his own, wherever he comes from. It allocates.
func (p *person) unlist() {
	switch {
	case p.certified:
		p.tag = appendHash([]byte("cert"), p.cert[:])
	case len(p.claim) > 0:
		p.name, p.tag = string(p.claim), appendHash([]byte("unlisted"), p.claim)
	case len(p.user) > 0:
		p.tag = appendHash([]byte("user"), p.user)
	}
}

// identifyLogin is who the site's own authenticator says it is. It has let the
// request pass; what it says is believed, since a client's own words under those
// names never arrive.
func (b *bound) identifyLogin(req *Request, c client, d *Decision) (identity, bool) {
	p := b.newPerson(req.LoginTenant, req.LoginUser)
	return b.identifyPerson(&p, c, d)
}

// identifyPerson is the identity of a person: his tenant's when it is listed, in the
// policy or in the directory.
func (b *bound) identifyPerson(p *person, c client, d *Decision) (identity, bool) {
	if p.listed >= 0 {
		return b.listed(p, c, d)
	}
	if id, known, ok := b.foundPerson(p, c, d); known {
		return id, ok
	}
	o := b.policy.Identity.Unlisted
	if p.plan >= 0 && o.Plan >= 0 {
		o.Plan = p.plan
	}
	id, ok := b.outcome(o, true, d)
	if !ok {
		return id, false
	}
	if p.tag == nil {
		p.unlist()
	}
	d.Tenant = p.name
	id.tenant, id.user, id.scope = p.tag, p.user, p.scope
	return id, true
}

// listed is somebody of a tenant of this policy.
func (b *bound) listed(p *person, c client, d *Decision) (identity, bool) {
	t := &b.policy.Tenants[p.listed]
	d.Tenant = t.ID
	d.setPlan(t.Plan)
	tenant := &b.tenants[p.listed]
	d.meter = tenant.meter
	switch {
	case t.Disabled:
		d.deny(ReasonDisabled, 403)
		return identity{}, false
	case !c.within(t.Networks):
		d.deny(ReasonAddress, 403)
		return identity{}, false
	}
	return identity{tenant: tenant.id, user: p.user, scope: p.scope, plan: t.Plan, rules: tenant.rules, shown: true}, true
}

// appendPerson appends who a counter belongs to within a tenant. What counts by
// scope falls back to the key, the key to the user, the user to the key. Nothing
// when there is none of them: TAG says the tenant.
func appendPerson(dst []byte, s *subject, kind policies.DimKind) []byte {
	if len(s.scope) > 0 && kind == policies.DimScope {
		return appendHash(append(dst, "scope="...), s.scope)
	}
	if len(s.user) > 0 && (kind == policies.DimUser || len(s.key) == 0) {
		return appendHash(append(dst, "user="...), s.user)
	}
	if len(s.key) > 0 {
		return append(append(dst, "key="...), s.key...)
	}
	return dst
}
