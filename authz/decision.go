package authz

import (
	"net/netip"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

// Verdict is what a decision comes to.
type Verdict uint8

// The verdicts.
const (
	Allow    Verdict = iota
	Deny             // the request is refused
	Degraded         // allowed because nothing could be decided: the fail mode is open
	verdicts         // how many there are
)

// String is the verdict's word in logs and metrics.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	case Degraded:
		return "degraded"
	}
	return "unknown"
}

// Reason says why a request was refused, or would have been.
type Reason uint8

// The reasons of this release. ReasonNone goes with an ordinary allow, and with
// a fail mode that decided because the route or the policy was unknown.
const (
	ReasonNone        Reason = iota
	ReasonRate               // a rate has no room now
	ReasonWindow             // a window has no room now
	ReasonQuota              // a period's quota is used up
	ReasonConcurrency        // too many requests at a time
	ReasonRetries            // the retry budget is used up
	ReasonTooLarge           // the cost is more than a limit can ever hold
	ReasonPlan               // the plan may not use this route
	ReasonCredential         // none, or one that is not good
	ReasonAddress            // the credential does not count from here
	ReasonDisabled           // the tenant or the key is switched off
	ReasonShadow             // refused by a policy that only watches: allowed
	ReasonStoreDown          // the store gave no answer
	ReasonOverload           // it would have to wait, and too many wait already
	ReasonSimulate           // the key is there for trying, and always meets a limit
	ReasonAccess             // an access rule, for proxies that are no NGINX
	ReasonEdgeRate           // an edge limit has no room now, for the same
	reasons                  // how many there are
)

// String is the reason's word in headers, logs and metrics; empty for ReasonNone.
func (r Reason) String() string {
	switch r {
	case ReasonRate:
		return "rate"
	case ReasonWindow:
		return "window"
	case ReasonQuota:
		return "quota"
	case ReasonConcurrency:
		return "concurrency"
	case ReasonRetries:
		return "retries"
	case ReasonTooLarge:
		return "too_large"
	case ReasonPlan:
		return "plan"
	case ReasonCredential:
		return "credential"
	case ReasonAddress:
		return "address"
	case ReasonDisabled:
		return "disabled"
	case ReasonShadow:
		return "shadow"
	case ReasonStoreDown:
		return "store_down"
	case ReasonOverload:
		return "overload"
	case ReasonSimulate:
		return "simulate"
	case ReasonAccess:
		return "access"
	case ReasonEdgeRate:
		return "edge_rate"
	}
	return ""
}

// remembered tells whether a denial may be kept for a moment by those who ask:
// what frees a lease is not the clock.
func (r Reason) remembered() bool {
	return r == ReasonRate || r == ReasonWindow || r == ReasonQuota || r == ReasonRetries
}

// Decision is the answer to one Request. It is made to be used again: its
// buffers grow to what the policy needs and stay. The zero value is ready.
type Decision struct {
	Verdict Verdict
	Reason  Reason
	// Status is what the client is to see of a denial, 401 to 503; 0 when allowed.
	Status int

	// Route, Tenant, Key and Plan are names of the policy, empty where there is none.
	Route, Tenant, Key, Plan string
	Priority                 policies.Priority
	// Client is the address that counts, masked; invalid when there is none.
	Client netip.Prefix

	// Limit is the limit that refused, and Left what it still holds, in whole units.
	Limit string
	Left  int64
	// Cost is what the request weighs, in units: the route's cost.
	Cost int64
	// Wait is the time until a refused request fits: 0 when there was no limit to
	// wait for, limit.Never when waiting cannot help.
	Wait time.Duration
	// Delay is how long an allowed request is to be held, for tokens that it took
	// ahead: see policies.Limit.Wait.
	Delay time.Duration
	// FailMode tells that no limit was asked and the fail mode decided.
	FailMode bool
	// Err is why the store gave no answer.
	Err error

	bound     *bound
	challenge bool    // 401 carries WWW-Authenticate
	strange   bool    // the name in the path is no route of this policy
	local     bool    // this instance decided alone: the store is away
	recalled  bool    // the answer was given before: only the state of told is known
	refused   Reason  // of a shadowed refusal
	rules     []*rule // one for each op
	ops       []limit.Op
	states    []limit.State
	terms     *terms // what operators changed for the tenant; nil: nothing
	told      int    // the op that single-valued headers tell of; -1: none
	names     []byte
	scratch   []byte
	path      []byte
	writer    writer
	now       time.Time
	jitter    float64

	// For metrics: see metrics.count.
	began                 time.Duration
	routeLabel, planLabel uint32
	meter                 *meter // of a tenant of the policy
}

// reset makes d ready for another request and keeps its buffers.
func (d *Decision) reset(b *bound) {
	*d = Decision{
		bound: b, told: -1,
		rules: d.rules[:0], ops: d.ops[:0], states: d.states[:0],
		names: d.names[:0], scratch: d.scratch[:0], path: d.path[:0],
		writer: writer{key: d.writer.key, value: d.writer.value},
	}
}

// deny makes d a refusal that no limit has to do with.
func (d *Decision) deny(reason Reason, status int) {
	d.Verdict, d.Reason, d.Status = Deny, reason, status
}

// fail lets a fail mode decide. Only FailClosed refuses: FailLocal is a matter of
// the store, and when even that cannot answer, it is open, as it is in NGINX.
func (d *Decision) fail(mode policies.FailMode, reason Reason) {
	d.FailMode = true
	d.Reason = reason
	if mode == policies.FailClosed {
		d.Verdict, d.Status, d.Wait = Deny, 503, time.Second
		return
	}
	d.Verdict, d.Status = Degraded, 0
}

// soften turns a refusal into what a policy in shadow does: it lets pass, and
// says so.
func (d *Decision) soften() {
	d.refused = d.Reason
	d.Verdict, d.Reason, d.Status, d.challenge = Allow, ReasonShadow, 0, false
}

// Refused is the reason of a denial, or of what would have been one under
// `mode: enforce`.
func (d *Decision) Refused() Reason {
	switch {
	case d.Reason == ReasonShadow:
		return d.refused
	case d.Verdict == Deny:
		return d.Reason
	}
	return ReasonNone
}

// Charge is what one limit said of a request.
type Charge struct {
	Limit *policies.Limit
	Key   string // the name of its counter
	Cost  int64  // in what the limit counts: units or requests
	State limit.State
}

// Charges appends what every limit said, in the order of enforcement: the
// plan's, the route's, those for every request. It is for people and tests; it
// allocates. There are none when nothing was asked of the store, and of an answer
// that was given before only the one that headers tell of.
func (d *Decision) Charges(dst []Charge) []Charge {
	for i, r := range d.rules {
		if d.recalled && i != d.told {
			continue
		}
		dst = append(dst, Charge{Limit: r.limit, Key: string(d.ops[i].Key), Cost: d.ops[i].Cost, State: d.states[i]})
	}
	return dst
}
