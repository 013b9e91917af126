package authz

import "sluice/authz/limit"

// simulate answers a key that is there for trying: as if its limit had just been
// reached and nobody had used the others. No store is asked, so nothing is
// charged, and whether the store is away makes no difference.
func (d *Decision) simulate(req *Request, r *boundRoute, id *identity, c client, places *Places) {
	s := subject{client: c, tenant: id.tenant, key: id.key, route: r.id, places: places, proof: id.proof, req: req}
	d.gather(r, id, &s, true)
	d.Limit = id.simulate
	status := 429
	for i, rule := range d.rules {
		op := &d.ops[i]
		reached := rule.limit.Name == id.simulate && d.told < 0
		d.states[i] = limit.Imagine(op, d.now, reached)
		if !reached {
			continue
		}
		op.Shadow = false
		d.Left, d.Wait = d.states[i].Remaining, d.states[i].Wait
		if op.Limit() != limit.Unlimited {
			d.told = i
		}
		if rule.limit.Status != 0 {
			status = rule.limit.Status
		}
	}
	d.deny(ReasonSimulate, status)
}

// simulates tells whether a key of the policy is there for trying.
func (b *bound) simulates() bool {
	for i := range b.policy.Tenants {
		for j := range b.policy.Tenants[i].Keys {
			if b.policy.Tenants[i].Keys[j].Simulate != "" {
				return true
			}
		}
	}
	return false
}
