package authz

import (
	"fmt"
	"time"

	"sluice/authz/directory"
	"sluice/authz/limit"
	"sluice/authz/memo"
	"sluice/policies"
)

// admitted is a tenant of the directory, or one of his keys, as the policy has him.
type admitted struct {
	tenant   *directory.Tenant
	key      *directory.Key // nil: the tenant himself
	plan     int            // -1: the policy has no such plan
	rules    []rule
	simulate string
	refused  bool // the policy cannot use his record: nobody gets in by it
}

// admittedFor is how long one is kept in a table that is full.
const admittedFor = time.Minute

// admit makes a tenant of the directory ready. Who changes nothing of his plan has
// its rules; for others they are made once, and kept with the policy: they allocate
// when a record was read, or a policy swapped in.
func (b *bound) admit(t *directory.Tenant, key *directory.Key, now time.Time) admitted {
	if t.Broken {
		return admitted{plan: -1, refused: true}
	}
	plain := len(t.Spec.Overrides)+len(t.Spec.Grants) == 0 && (key == nil || key.Spec.Plan == "" && key.Spec.Simulate == "")
	if plan, known := b.policy.PlanNamed(string(t.Spec.Plan)); known && plain {
		return admitted{plan: plan, rules: b.plans[plan]}
	}
	hash := t.Hash
	if key != nil {
		hash = memo.Key(key.Spec.SHA256)
	}
	if e := b.admitted.Find(&hash); e != nil && e.Value.tenant == t && e.Value.key == key {
		return *e.Value
	}
	a := b.newAdmitted(t, key)
	b.admitted.Add(&memo.Entry[*admitted]{Key: hash, Until: now.Add(admittedFor), Value: &a}, now)
	return a
}

// newAdmitted checks a record against the policy, and makes its rules.
func (b *bound) newAdmitted(t *directory.Tenant, key *directory.Key) admitted {
	a := admitted{tenant: t, key: key, plan: -1}
	if plan, known := b.policy.PlanNamed(string(t.Spec.Plan)); known {
		a.plan = plan
	}
	spec := *t.Spec
	if key != nil {
		spec.Keys = []policies.KeySpec{*key.Spec}
	}
	made, err := b.policy.Admit(&spec)
	if err == nil {
		limits := made.Limits
		if key != nil {
			a.plan, limits, a.simulate = made.Keys[0].Plan, made.Keys[0].Limits, made.Keys[0].Simulate
		}
		a.rules, err = b.rulesOf(limits)
	}
	if err == nil {
		return a
	}
	a.refused = true
	attrs := []any{"tenant", t.ID, "error", err.Error()}
	if key != nil {
		attrs = append(attrs, "key", key.ID)
	}
	b.directory.Refuse("tenant "+t.ID+": "+err.Error(), "the policy cannot use a record", attrs...)
	return a
}

// rulesOf makes limits ready, as binding the policy would have. Each is one of a plan,
// with other numbers.
func (b *bound) rulesOf(limits []policies.Limit) ([]rule, error) {
	if len(limits) > b.room {
		return nil, fmt.Errorf("%d limits are more than fit beside those of routes; want at most %d", len(limits), b.room)
	}
	rules := make([]rule, 0, len(limits))
	for i := range limits {
		r, err := newRule(&limits[i], b.sources)
		if err != nil {
			return nil, err
		}
		r.label = b.labelOf(limits[i].Name)
		rules = append(rules, r)
	}
	return rules, nil
}

// labelOf is the name in metrics of a limit of some plan.
func (b *bound) labelOf(limit string) uint32 {
	for _, rules := range b.plans {
		for i := range rules {
			if rules[i].limit.Name == limit {
				return rules[i].label
			}
		}
	}
	return labelOther
}

// roomForPlans is how many limits a plan may put on a request of any route.
func (b *bound) roomForPlans() int {
	most := 0
	for i := range b.routes {
		most = max(most, len(b.routes[i].rules))
	}
	return limit.MaxOps - most - len(b.top)
}
