package authz

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

// charge asks the store about every limit of the request, in one step.
func (e *Engine) charge(req *Request, r *boundRoute, id *identity, c client, d *Decision) {
	s := subject{client: c, tenant: id.tenant, key: id.key, user: id.user, scope: id.scope, route: r.id, places: e.places.Load(), proof: id.proof, shared: e.shared, req: req}
	if len(id.rules)+len(r.rules)+len(d.bound.top) == 0 {
		return
	}
	if d.now.IsZero() {
		d.now = e.now()
	}
	if len(req.ID) == 0 {
		e.chargeOnce(req, r, id, &s, d)
		return
	}
	visit := e.visitKey(req, r, &s, d)
	answered, busy := e.visited(visit, req, r, id, &s, d)
	if answered {
		return
	}
	retry := e.chargeOnce(req, r, id, &s, d)
	switch {
	case busy: // the answer to tell others is still that of the one who came first
	case d.Err != nil && !d.local || d.Reason == ReasonOverload:
		e.visits.drop(visit, d.now)
	default:
		e.visits.put(visit, d.now, visitFor, d.tells(retry))
	}
}

// visited gives the answer that this visit got before, if it did. One that is just
// being made, for a question that NGINX has asked twice, is waited for; busy: for
// as long as this decision may wait for anything.
func (e *Engine) visited(visit [2]uint64, req *Request, r *boundRoute, id *identity, s *subject, d *Decision) (answered, busy bool) {
	before, age, known, busy := e.visits.claim(visit, d.now)
	for pause := visitPoll; busy && e.left(d, visitWait) > 0; pause = min(2*pause, visitPollMost) {
		time.Sleep(pause)
		before, age, known, busy = e.visits.claim(visit, d.now)
	}
	if !known {
		return false, busy
	}
	d.gather(r, id, s, before.retry)
	if d.again(before, age, req) {
		e.counters.visits.Add(1)
		return true, false
	}
	d.scatter()
	return false, false
}

// left is how much of its deadline a decision still has. One without a deadline has
// most.
func (e *Engine) left(d *Decision, most time.Duration) time.Duration {
	if e.deadline > 0 {
		most = e.deadline
	}
	return d.began + most - e.metrics.clock()
}

// chargeOnce asks the store, unless a refusal is still known. It tells whether the
// request counted as a retry.
func (e *Engine) chargeOnce(req *Request, r *boundRoute, id *identity, s *subject, d *Decision) (retry bool) {
	retry = d.bound.retries && e.isRetry(req, s)
	d.gather(r, id, s, retry)
	if len(d.ops) == 0 {
		return retry
	}
	known, refusable := [2]uint64{}, d.refusable()
	if refusable {
		known = e.refusalKey(r, d)
		if before, age, ok := e.refusals.get(known, d.now); ok && d.again(before, age, req) {
			e.counters.refusals.Add(1)
			return retry
		}
	}
	refused, err := e.takeOr(r, d)
	if err != nil {
		d.scatter()
		d.Err = err
		d.fail(r.OnStoreDown, ReasonStoreDown)
		return retry
	}
	e.countShadow(d)
	if d.bound.notifies {
		e.notifier.listening().look(d, refused)
	}
	if refused < 0 {
		d.told = d.tightest()
		d.Delay = d.longestDelay()
		if d.bound.settles {
			e.remember(req, r, d)
		}
		d.stoodIn()
		return retry
	}
	d.refuse(refused, req)
	if how := d.believed(); refusable && how > 0 && !d.local {
		e.refusals.put(known, d.now, how, d.tells(retry))
	}
	return retry
}

// gather adds the ops of all limits that the request meets.
func (d *Decision) gather(r *boundRoute, id *identity, s *subject, retry bool) {
	d.addOps(id.rules, s, retry)
	d.addOps(r.rules, s, retry)
	d.addOps(d.bound.top, s, retry)
}

// scatter takes them away again.
func (d *Decision) scatter() {
	d.rules, d.ops, d.states, d.names, d.recalled = d.rules[:0], d.ops[:0], d.states[:0], d.names[:0], false
}

// addOps adds an op for each rule. The names of counters share one buffer; when
// it grows, earlier ones stay where they were.
func (d *Decision) addOps(rules []rule, s *subject, retry bool) {
	for i := range rules {
		r := &rules[i]
		if r.op.Kind == limit.Retries && !retry {
			continue
		}
		op := r.op
		start := len(d.names)
		d.names, op.Tag = r.appendKey(d.names, s)
		op.Key = d.names[start:len(d.names):len(d.names)]
		d.fill(&op, r, s)
		d.rules = append(d.rules, r)
		d.states = append(d.states, limit.State{})
		d.ops = append(d.ops, op)
	}
}

// fill puts into an op what the request says.
func (d *Decision) fill(op *limit.Op, r *rule, s *subject) {
	op.Cost = d.Cost
	if r.limit.Requests {
		op.Cost = 1
	}
	op.Reserve = r.reserve.of(d.Priority)
	if s.req.NoRoom {
		op.MaxWait = 0
	}
	if op.Kind == limit.Quota {
		op.Max = d.terms.max(r, d.now)
	}
	// In one instance the memory of visits makes a charge once; only where several
	// share the store does it have to know the request.
	if r.named && (s.shared || op.Kind == limit.Concurrency) {
		start := len(d.names)
		d.names = appendID(d.names, s)
		op.ID = d.names[start:len(d.names):len(d.names)]
	}
}

// maxRequestID is the longest request id that stands in an ID as it is; NGINX's
// have 32 bytes.
const maxRequestID = 60

// appendID appends what names a charge: the request and the route, since another
// route in the same visit is another charge. A request without an id gets one
// that nobody else has; the name that a worker chose is one among those of whom he
// asks for.
func appendID(dst []byte, s *subject) []byte {
	switch id := s.req.ID; {
	case len(id) == 0:
		dst = append(dst, rand.Text()...)
	case s.req.app != nil:
		name := appendPart(nil, id)
		for _, part := range [][]byte{s.tenant, s.key, s.user} {
			name = appendPart(name, part)
		}
		if len(s.tenant) == 0 {
			name = appendClient(name, s)
		}
		dst = appendHash(dst, name)
	case len(id) > maxRequestID:
		dst = appendHash(dst, id)
	default:
		dst = append(dst, id...)
	}
	return append(append(dst, '/'), s.route...)
}

// sells tells whether a hard quota is asked.
func (d *Decision) sells() bool {
	return slices.ContainsFunc(d.ops, func(op limit.Op) bool { return op.Kind == limit.Quota && !op.Soft && !op.Shadow })
}

// errLate is why the store was not asked at all; it is not the store's fault.
var errLate = fmt.Errorf("%w: the deadline was over before it could be asked", limit.ErrUnavailable)

// take calls the store, within what is left of the decision's deadline when there
// is one: a tenant that had to be looked up has used some of it. A store that never
// waits needs none, and is spared a timer.
func (e *Engine) take(d *Decision) (int, error) {
	if e.deadline <= 0 || e.quotasWait && !d.sells() {
		return e.store.Take(context.Background(), d.ops, d.states)
	}
	left := e.left(d, e.deadline)
	if left <= 0 {
		return -1, errLate
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	return e.store.Take(ctx, d.ops, d.states)
}

// takeOr calls the store, or for a route that goes on without it what stands in for
// it: d.local then.
func (e *Engine) takeOr(r *boundRoute, d *Decision) (int, error) {
	refused, err := e.take(d)
	if e.local == nil || r.OnStoreDown != policies.FailLocal {
		return refused, err
	}
	if err == nil {
		e.local.Learn(d.ops, d.states)
		return refused, nil
	}
	refused, localErr := e.local.Take(d.ops, d.states)
	if localErr != nil {
		return refused, err
	}
	d.local, d.FailMode, d.Err = true, true, err
	return refused, nil
}

// stoodIn makes an allow of what stands in for the store a degraded one.
func (d *Decision) stoodIn() {
	if d.local {
		d.FailMode, d.Verdict, d.Reason = true, Degraded, ReasonStoreDown
	}
}

// refuse makes d the refusal of one of its limits.
func (d *Decision) refuse(op int, req *Request) {
	r, state := d.rules[op], &d.states[op]
	d.told = op
	d.Limit, d.Left, d.Wait = r.limit.Name, state.Remaining, state.Wait
	switch {
	case state.Wait == limit.Never && d.ops[op].Limit() > 0:
		d.deny(ReasonTooLarge, 403)
	case req.NoRoom && r.op.MaxWait > 0 && state.Wait <= r.op.MaxWait:
		d.deny(ReasonOverload, 503)
	case r.limit.Status == 0:
		d.deny(r.reason, 429)
	default:
		d.deny(r.reason, r.limit.Status)
	}
}

// longestDelay is how long the answer is to be held.
func (d *Decision) longestDelay() time.Duration {
	delay := time.Duration(0)
	for i := range d.states {
		delay = max(delay, d.states[i].Delay)
	}
	return delay
}

// tightest is the limit with the smallest share left, -1 when none is shown.
func (d *Decision) tightest() int {
	best := -1
	for i := range d.rules {
		if d.shows(i) && (best < 0 || d.tighter(i, best)) {
			best = i
		}
	}
	return best
}

// tighter tells whether op a has a smaller share left than b: exactly, by
// products of 128 bits.
func (d *Decision) tighter(a, b int) bool {
	ah, al := bits.Mul64(uint64(d.states[a].Remaining), uint64(d.ops[b].Limit()))
	bh, bl := bits.Mul64(uint64(d.states[b].Remaining), uint64(d.ops[a].Limit()))
	return ah < bh || ah == bh && al < bl
}

// shows tells whether a limit is in headers: an unlimited one is not, nor one in
// shadow, unless the whole policy is.
func (d *Decision) shows(op int) bool {
	return d.ops[op].Limit() != limit.Unlimited &&
		(!d.ops[op].Shadow || d.bound.policy.Mode == policies.ModeShadow)
}
