package authz

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"time"

	"sluice/authz/directory"
	"sluice/authz/limit"
	"sluice/authz/memo"
	"sluice/policies"
)

// DefaultDeadline is how long a decision may wait for a store on the network.
const DefaultDeadline = 20 * time.Millisecond

// Options are the choices of an Engine; the zero value is good.
type Options struct {
	// Deadline is how long a decision may wait for the store, waiting for a
	// connection included. 0 sets none: for stores that never wait. For others
	// DefaultDeadline is meant.
	Deadline time.Duration
	// WaitsForQuotas tells that the store waits for hard quotas alone, as the
	// embedded one does for its disk: other decisions then need no deadline.
	WaitsForQuotas bool
	// Directory knows tenants that are not in the policy; nil: nobody does. Who made
	// it closes it.
	Directory *directory.Directory
	// Places say where clients are, until Locate.
	Places Places
	// Breaker is the one before the store, to tell how it is; nil: there is none.
	Breaker *limit.Breaker
	// Local stands in for the store on routes that go on without it; nil: they are
	// open then.
	Local *limit.Local
	// Shared tells that other instances use the same store: it then has to know the
	// requests that hard quotas were charged for.
	Shared bool
	// Log gets what nobody asked for: a panic, once. nil: slog.Default.
	Log *slog.Logger
	// Now is the clock of X-RateLimit-Reset, of grants, and of how long an
	// idempotency key is remembered; nil: time.Now.
	Now func() time.Time
	// Jitter gives numbers from 0 up to, not including, 1 for Retry-After; nil:
	// random ones.
	Jitter func() float64
	// Ledger is what operators change at run time; nil: nothing.
	Ledger *Ledger
	// Notifier tells webhooks of what tenants come to; nil: nobody is told.
	Notifier *Notifier
}

// Engine decides. Its methods are safe for concurrent use.
type Engine struct {
	store        limit.Store
	deadline     time.Duration
	shared       bool
	quotasWait   bool // and nothing else does
	breaker      *limit.Breaker
	local        *limit.Local
	log          *slog.Logger
	now          func() time.Time
	jitter       func() float64
	state        atomic.Pointer[bound]
	places       atomic.Pointer[Places]
	directory    *directory.Directory
	seen         seenKeys
	visits       *recall // the answers of requests
	refusals     *recall // refusals of limits
	ledger       *Ledger
	notifier     *Notifier
	pendings     pendings
	gate         gate // for proxies that are no NGINX
	counters     counters
	skew         skew
	metrics      *metrics
	storeTrouble trouble
}

// New makes an engine that has no policy yet: until the first Swap the mode in
// each question's path decides.
func New(store limit.Store, o Options) *Engine {
	e := &Engine{
		store: store, deadline: o.Deadline, quotasWait: o.WaitsForQuotas, breaker: o.Breaker, local: o.Local, shared: o.Shared,
		directory: o.Directory, log: o.Log, now: o.Now, jitter: o.Jitter, metrics: newMetrics(),
	}
	if e.directory != nil {
		e.metrics.accounts.found = memo.New[*foundMeter]()
	}
	e.places.Store(&o.Places)
	if e.log == nil {
		e.log = slog.Default()
	}
	if e.now == nil {
		e.now = time.Now
	}
	born := e.now()
	e.visits, e.refusals = newRecall(maxVisits, born), newRecall(maxRefusals, born)
	e.notifier = o.Notifier
	if e.ledger = o.Ledger; e.ledger != nil {
		e.ledger.changed = e.Forget
	}
	if e.jitter == nil {
		e.jitter = rand.Float64
	}
	return e
}

// Swap puts another policy in force, all at once; decisions under way finish by
// the old one. Counters live in the store and go on. A policy that says what
// cannot be enforced is refused, and the old one stays.
func (e *Engine) Swap(c *policies.Compiled) error {
	b, err := bind(c)
	if err != nil {
		return err
	}
	if err := e.places.Load().serve(b); err != nil {
		return err
	}
	b.directory, b.faults = e.directory, &e.counters.tokens
	if b.directory != nil {
		b.timed, b.admitted, b.room = true, memo.New[*admitted](), b.roomForPlans()
		b.found = e.metrics.accounts.found
	}
	if err := e.notifier.use(c); err != nil {
		return err
	}
	e.metrics.label(b)
	b.since = time.Now()
	e.pendings.keep(c.Reports())
	e.state.Store(b)
	e.Forget()
	return nil
}

// Policy is the policy in force, nil before the first Swap.
func (e *Engine) Policy() *policies.Compiled {
	if b := e.state.Load(); b != nil {
		return b.policy
	}
	return nil
}

// Decide answers a question. Every failure is a Decision. d is overwritten and
// keeps nothing of req.
func (e *Engine) Decide(req *Request, d *Decision) {
	b := e.state.Load()
	d.reset(b)
	d.began = e.metrics.clock()
	defer e.finish(req, d)
	if b == nil {
		d.fail(req.Mode, ReasonNone)
		return
	}
	if b.timed {
		d.now = e.now()
	}
	e.decide(b, req, d)
	if d.Limit != "" && d.Wait > 0 && b.policy.Responses.Jitter > 0 {
		d.jitter = e.jitter()
	}
}

func (e *Engine) decide(b *bound, req *Request, d *Decision) {
	if b.policy.Mode == policies.ModeDisabled {
		return
	}
	r, known := b.route(req, d)
	if foreign(req, known, b.policy) {
		e.counters.skew.Add(1)
		e.skew.hear(req.Policy, time.Now())
	}
	if r == nil && !known {
		d.fail(req.Mode, ReasonNone)
	}
	if r == nil || !r.Asked {
		return
	}
	e.decideRoute(req, r, d)
	if d.Verdict == Deny && b.policy.Mode == policies.ModeShadow {
		d.soften()
	}
}

func (e *Engine) decideRoute(req *Request, r *boundRoute, d *Decision) {
	c := newClient(req.IP, d.bound.policy.Client.IPv6Prefix)
	d.Route, d.Client, d.Cost, d.routeLabel = r.Name, c.prefix, r.Cost, r.label
	id, ok := d.bound.identify(req, c, d)
	if req.app != nil && req.app.cost > 0 {
		d.Cost = req.app.cost
	}
	switch {
	case d.Err != nil:
		d.fail(r.OnStoreDown, ReasonStoreDown)
		return
	case !ok || e.blocks(&id, d) || !r.admits(&id, d):
		return
	case id.simulate != "":
		d.simulate(req, r, &id, c, e.places.Load())
		return
	case req.Exempt:
		return
	}
	e.charge(req, r, &id, c, d)
}

// blocks tells whether operators refuse the tenant everything; d is then the refusal.
// It takes note of what else they changed for him.
func (e *Engine) blocks(id *identity, d *Decision) bool {
	if d.terms = e.ledger.of(id.tenant); d.terms == nil {
		return false
	}
	if d.now.IsZero() {
		d.now = e.now()
	}
	if d.terms.blocked(d.now) {
		d.deny(ReasonDisabled, 403)
		return true
	}
	return false
}

// finish counts the decision. A panic on the way to it is a mistake of ours,
// which must not decide for anybody: the fail mode of the question does.
func (e *Engine) finish(req *Request, d *Decision) {
	began := d.began
	if p := recover(); p != nil {
		e.panicked(p, req.Mode, d)
	}
	e.counters.count(d)
	e.metrics.count(d, began)
	if d.Err != nil && d.Err != errPanic {
		e.storeTrouble.hear(d.Err, time.Now())
	}
}

// panicked makes d what the fail mode says. The first panic is logged, the
// others are counted: a storm of them must not become a storm of stacks.
func (e *Engine) panicked(p any, mode policies.FailMode, d *Decision) {
	// A panic may have left anything behind: the buffers are not used again.
	*d = Decision{told: -1, Err: errPanic}
	d.fail(mode, ReasonNone)
	if e.counters.panics.Add(1) == 1 {
		e.log.Error("a decision panicked: the fail mode decides; later ones are only counted",
			"panic", p, "stack", string(debug.Stack()))
	}
}

// errPanic stands in Decision.Err for a panic, whose text is in the log.
var errPanic = errors.New("the decision panicked")
