package authz

import (
	"context"

	"sluice/authz/limit"
	"sluice/policies"
)

// charge asks the store about every limit of the request, in one step.
func (e *Engine) charge(req *Request, r *boundRoute, id *identity, c client, d *Decision) {
	s := subject{client: c, route: r.id, proof: id.proof, req: req}
	if id.tenant != nil {
		s.tenant, s.key = id.tenant.id, id.key.id
	}
	d.addOps(id.rules, &s)
	d.addOps(r.rules, &s)
	d.addOps(d.bound.top, &s)
	if len(d.ops) == 0 {
		return
	}
	refused, err := e.take(d)
	if err != nil {
		d.rules, d.ops, d.states = d.rules[:0], d.ops[:0], d.states[:0]
		d.Err = err
		d.fail(r.OnStoreDown, ReasonStoreDown)
		return
	}
	e.countShadow(d)
	if refused < 0 {
		d.told = d.tightest()
		return
	}
	d.refuse(refused)
}

// addOps adds an op for each rule. The names of counters share one buffer; when
// it grows, earlier ones stay where they were.
func (d *Decision) addOps(rules []rule, s *subject) {
	for i := range rules {
		r := &rules[i]
		start := len(d.names)
		var tag []byte
		d.names, tag = r.appendKey(d.names, s)
		end := len(d.names)
		cost := d.Cost
		if r.limit.Requests {
			cost = 1
		}
		d.rules = append(d.rules, r)
		d.states = append(d.states, limit.State{})
		d.ops = append(d.ops, limit.Op{
			Tag: tag, Key: d.names[start:end:end],
			Refill: r.refill, Burst: r.limit.Burst, Cost: cost, Shadow: r.limit.Shadow,
		})
	}
}

// take calls the store, within the deadline when there is one. A store that
// never waits needs none, and is spared a timer.
func (e *Engine) take(d *Decision) (int, error) {
	if e.deadline <= 0 {
		return e.store.Take(context.Background(), d.ops, d.states)
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.deadline)
	defer cancel()
	return e.store.Take(ctx, d.ops, d.states)
}

// refuse makes d the refusal of one of its limits.
func (d *Decision) refuse(op int) {
	r, state := d.rules[op], &d.states[op]
	d.told = op
	d.Limit, d.Left, d.Wait = r.limit.Name, state.Remaining, state.Wait
	if state.Wait == limit.Never && r.limit.Burst > 0 {
		d.deny(ReasonTooLarge, 403)
		return
	}
	status := r.limit.Status
	if status == 0 {
		status = 429
	}
	d.deny(ReasonRate, status)
}

// tightest is the limit with the smallest share left, -1 when none is shown.
func (d *Decision) tightest() int {
	best := -1
	for i := range d.rules {
		if !d.shows(i) {
			continue
		}
		// Both factors are at most limit.MaxBurst, so the products are exact.
		if best < 0 || d.states[i].Remaining*d.ops[best].Burst < d.states[best].Remaining*d.ops[i].Burst {
			best = i
		}
	}
	return best
}

// shows tells whether a limit is in headers: one in shadow is not, unless the
// whole policy is.
func (d *Decision) shows(op int) bool {
	return !d.ops[op].Shadow || d.bound.policy.Mode == policies.ModeShadow
}
