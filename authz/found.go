package authz

import (
	"time"

	"sluice/authz/directory"
	"sluice/authz/memo"
	"sluice/policies"
)

// identifyFound is the tenant of a key that the policy does not know, if the
// directory does. When it cannot say, d.Err tells why.
func (b *bound) identifyFound(hash policies.SHA256, c client, d *Decision) (identity, bool) {
	key, tenant, err := b.directory.Find(memo.Key(hash), d.now)
	switch {
	case err != nil:
		d.Err = err
		return identity{}, false
	case key == nil:
		return b.outcome(b.policy.Identity.Invalid, true, d)
	case key.Broken:
		d.deny(ReasonCredential, 403)
		return identity{}, false
	}
	d.Key = key.ID
	id, ok := b.foundTenant(tenant, key, c, d)
	id.key = key.Tag
	return id, ok
}

// foundTenant is the identity of a tenant of the directory, by one of his keys if
// there is one.
func (b *bound) foundTenant(t *directory.Tenant, key *directory.Key, c client, d *Decision) (identity, bool) {
	d.Tenant = t.ID
	a := b.admit(t, key, d.now)
	if a.plan >= 0 {
		d.setPlan(a.plan)
	}
	if !a.refused {
		d.meter = b.meterOf(t, d.now)
	}
	switch {
	case a.refused:
		d.deny(ReasonCredential, 403)
	case t.Disabled || key != nil && key.Disabled:
		d.deny(ReasonDisabled, 403)
	case !c.within(t.Networks) || key != nil && !c.within(key.Networks):
		d.deny(ReasonAddress, 403)
	default:
		return identity{tenant: t.Tag, plan: a.plan, rules: a.rules, simulate: a.simulate, shown: true}, true
	}
	return identity{}, false
}

// foundPerson is somebody whose tenant the directory knows. known is false when it
// does not; when it cannot say, it is true and d.Err tells why.
func (b *bound) foundPerson(p *person, c client, d *Decision) (id identity, known, ok bool) {
	t, err := p.find(b.directory, d.now)
	switch {
	case err != nil:
		d.Err = err
		return identity{}, true, false
	case t == nil:
		return identity{}, false, false
	}
	id, ok = b.foundTenant(t, nil, c, d)
	id.user, id.scope = p.user, p.scope
	return id, true, ok
}

// find asks the directory for the tenant that a person's credential names.
func (p *person) find(dir *directory.Directory, now time.Time) (*directory.Tenant, error) {
	switch {
	case dir == nil:
		return nil, nil
	case p.certified:
		return dir.Certified(memo.Key(p.cert), now)
	}
	return dir.Claimed(p.claim, now)
}
