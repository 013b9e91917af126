package authz

import (
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
	d.Tenant, d.Key = key.TenantID, key.ID
	plan, known := b.policy.PlanNamed(tenant.Plan)
	if known {
		d.setPlan(plan)
	}
	switch {
	case tenant.Broken || !known:
		d.deny(ReasonCredential, 403)
	case tenant.Disabled || key.Disabled:
		d.deny(ReasonDisabled, 403)
	case !c.within(tenant.Networks) || !c.within(key.Networks):
		d.deny(ReasonAddress, 403)
	default:
		return identity{tenant: tenant.Tag, key: key.Tag, plan: plan, rules: b.plans[plan], shown: true}, true
	}
	return identity{}, false
}
