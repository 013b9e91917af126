package authz

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"sluice/policies"
	"sluice/policies/denial"
	"sluice/policies/edge"
)

// gateKeys is how many clients each rate of the gate remembers at least.
const gateKeys = 100_000

// gate is what NGINX does at the edge, for proxies of another kind that ask at
// forwardPath: access rules, and rates in this instance's own memory, as each NGINX
// has them in its own. It is the same code that tries policies and replays logs.
// Limits on connections are not in it: nobody tells when a request ends.
type gate struct {
	// counting is the turn of whoever counts in the model's rates, or makes a new one.
	counting sync.Mutex
	state    atomic.Pointer[gateState]
}

// gateState is the gate of one policy and the databases of one moment.
type gateState struct {
	bound  *bound
	places *Places
	model  *edge.Model
	words  *denial.Writer // of what is refused
	lacks  []string       // of the policy
}

// gateOf is the gate's state for a policy. It is made when somebody asks: behind NGINX
// nobody does. What rates have counted lives on.
func (e *Engine) gateOf(b *bound, p *Places) *gateState {
	g := &e.gate
	if s := g.state.Load(); s != nil && s.bound == b && s.places == p {
		return s
	}
	g.counting.Lock()
	defer g.counting.Unlock()
	before := g.state.Load()
	if before != nil && before.bound == b && before.places == p {
		return before
	}
	s := &gateState{bound: b, places: p, model: edge.New(b.policy, p.tables), words: denial.NewWriter(&b.policy.Responses), lacks: p.lacks(b.policy)}
	s.model.Bound(gateKeys)
	if before != nil {
		s.model.Inherit(before.model)
	}
	g.state.Store(s)
	e.introduce(s, before)
	return s
}

// passage is a client's request on its way through the gate.
type passage struct {
	visit edge.Visit
	from  edge.Request
}

// enter takes a request through access rules and rates. It tells whether it may go
// on; d is the refusal if it may not.
func (h *handler) enter(s *gateState, p *passage, d *Decision) bool {
	v := &p.visit
	v.Request = &p.from
	if s.model.Arrive(v) {
		h.engine.meter(s, v)
	}
	if v.Would != "" {
		h.watched(s, v, ReasonAccess, "", d)
	}
	switch {
	case v.Verdict == edge.Access:
		h.engine.turnAway(s, v, ReasonAccess, accessStatus(v.Refused), d)
	case v.Verdict == edge.EdgeRate && !v.Shadow:
		h.engine.turnAway(s, v, ReasonEdgeRate, http.StatusTooManyRequests, d)
	case v.Verdict == edge.EdgeRate:
		h.watched(s, v, ReasonEdgeRate, v.Limit, d)
		return true
	default:
		return true
	}
	return false
}

// meter asks the rates.
func (e *Engine) meter(s *gateState, v *edge.Visit) {
	e.gate.counting.Lock()
	defer e.gate.counting.Unlock()
	s.model.Meter(v, e.now())
}

// accessStatus is the status of a denial by an access rule. No proxy closes a
// connection because somebody asks it to: 444 is 403 here.
func accessStatus(status int) int {
	if status == 444 {
		return http.StatusForbidden
	}
	return status
}

// turnAway makes d a refusal of the gate: of an access rule, of a rate, or for want
// of room to hold one more.
func (e *Engine) turnAway(s *gateState, v *edge.Visit, reason Reason, status int, d *Decision) {
	e.arrived(s, v, d)
	defer e.finish(&Request{Mode: policies.FailClosed}, d)
	d.deny(reason, status)
	switch reason {
	case ReasonEdgeRate:
		d.Limit, d.Wait, d.jitter = v.Limit, v.Wait, e.jitter()
		e.metrics.refuse(d, d.Limit, reason, false)
	case ReasonOverload:
		d.Wait = time.Second
	}
}

// watched counts and logs what a rule or a rate in shadow would have refused.
func (h *handler) watched(s *gateState, v *edge.Visit, reason Reason, limit string, d *Decision) {
	e := h.engine
	e.arrived(s, v, d)
	d.deny(reason, http.StatusForbidden)
	d.Limit = limit
	d.soften()
	e.counters.shadow.Add(1)
	if limit != "" {
		e.metrics.refuse(d, limit, reason, true)
	}
	h.denials.note(d)
}

// arrived makes d one about a visit.
func (e *Engine) arrived(s *gateState, v *edge.Visit, d *Decision) {
	d.reset(s.bound)
	d.began = e.metrics.clock()
	r := &s.bound.routes[v.Location.Index]
	d.Route, d.routeLabel, d.Client = r.Name, r.label, v.Counted
}
