package authz

import "sluice/policies"

// identifyLogin is who the site's own authenticator says it is. It has let the
// request pass; what it says is believed, since a client's own words under those
// names never arrive.
func (b *bound) identifyLogin(req *Request, c client, d *Decision) (identity, bool) {
	if len(req.LoginTenant) > 0 {
		if i, ok := b.policy.TenantByClaim(req.LoginTenant); ok {
			return b.listed(i, req, c, d)
		}
	}
	id, ok := b.outcome(b.policy.Identity.Unlisted, true, d)
	if !ok {
		return id, false
	}
	id.user = req.LoginUser
	switch {
	case len(req.LoginTenant) > 0:
		id.tenant = appendHash([]byte("unlisted"), req.LoginTenant)
		d.Tenant = string(req.LoginTenant)
	case len(req.LoginUser) > 0:
		// Without a tenant a user is on his own, wherever he comes from.
		id.tenant = appendHash([]byte("user"), req.LoginUser)
	}
	return id, true
}

// listed is a login of a tenant of this policy.
func (b *bound) listed(i int, req *Request, c client, d *Decision) (identity, bool) {
	t := &b.policy.Tenants[i]
	d.Tenant = t.ID
	d.setPlan(t.Plan)
	d.meter = b.tenants[i].meter
	switch {
	case t.Disabled:
		d.deny(ReasonDisabled, 403)
		return identity{}, false
	case !c.within(t.Networks):
		d.deny(ReasonAddress, 403)
		return identity{}, false
	}
	return identity{tenant: b.tenants[i].id, user: req.LoginUser, plan: t.Plan, rules: b.tenants[i].rules, shown: true}, true
}

// appendPerson appends who a counter belongs to within a tenant: for a user the
// user, then the key; else the key, then the user. Nothing when there is
// neither: TAG says the tenant.
func appendPerson(dst []byte, s *subject, kind policies.DimKind) []byte {
	if len(s.user) > 0 && (kind == policies.DimUser || len(s.key) == 0) {
		return appendHash(append(dst, "user="...), s.user)
	}
	if len(s.key) > 0 {
		return append(append(dst, "key="...), s.key...)
	}
	return dst
}
