package authz

import (
	"log/slog"
	"sync/atomic"
)

// counters are what an Engine counts since it was made. They outlive policies.
type counters struct {
	requests [verdicts][reasons]atomic.Uint64
	tokens   [tokenFaults]atomic.Uint64
	skew     atomic.Uint64
	shadow   atomic.Uint64
	store    atomic.Uint64
	panics   atomic.Uint64
	visits   atomic.Uint64
	refusals atomic.Uint64
}

func (c *counters) count(d *Decision) {
	c.requests[d.Verdict][d.Reason].Add(1)
	if d.Reason == ReasonStoreDown || d.Reason == ReasonShadow && d.refused == ReasonStoreDown {
		c.store.Add(1)
	}
}

// countShadow counts the limits in shadow that would have refused a request that
// the enforced ones let pass, or refused as well.
func (e *Engine) countShadow(d *Decision) {
	for i := range d.ops {
		if d.ops[i].Shadow && !d.states[i].Fits {
			e.counters.shadow.Add(1)
		}
	}
}

// Count is how many requests came to one verdict for one reason.
type Count struct {
	Verdict Verdict
	Reason  Reason
	N       uint64
}

// Counters are the numbers of an Engine since it was made.
type Counters struct {
	// Requests has what happened at least once, by verdict and reason.
	Requests []Count
	// Skew is how many questions came from a configuration that was rendered from
	// another policy: another hash, or a route that is not known here.
	Skew uint64
	// WouldDeny is how often a limit in shadow had no room.
	WouldDeny uint64
	// StoreErrors is how many decisions the store left to the fail mode.
	StoreErrors uint64
	// Visits is how many questions about a request that had its answer got it again.
	Visits uint64
	// Refusals is how many requests were refused without asking the store.
	Refusals uint64
	// Panics is how many decisions a mistake in this program left to it.
	Panics uint64
}

// Counters reads the numbers. They are taken one after another, not in one step.
func (e *Engine) Counters() Counters {
	c := &e.counters
	out := Counters{Skew: c.skew.Load(), WouldDeny: c.shadow.Load(), StoreErrors: c.store.Load(), Panics: c.panics.Load(),
		Visits: c.visits.Load(), Refusals: c.refusals.Load()}
	for v := range c.requests {
		for r := range c.requests[v] {
			if n := c.requests[v][r].Load(); n > 0 {
				out.Requests = append(out.Requests, Count{Verdict(v), Reason(r), n})
			}
		}
	}
	return out
}

// Of is how many requests came to a verdict for a reason.
func (c Counters) Of(v Verdict, r Reason) uint64 {
	for _, n := range c.Requests {
		if n.Verdict == v && n.Reason == r {
			return n.N
		}
	}
	return 0
}

// LogValue is the numbers as a log line has them.
func (c Counters) LogValue() slog.Value {
	attrs := []slog.Attr{
		slog.Uint64("skew", c.Skew), slog.Uint64("would_deny", c.WouldDeny),
		slog.Uint64("store_errors", c.StoreErrors), slog.Uint64("panics", c.Panics),
		slog.Uint64("visits_again", c.Visits), slog.Uint64("refusals_again", c.Refusals),
	}
	for _, n := range c.Requests {
		name := n.Verdict.String()
		if n.Reason != ReasonNone {
			name += "_" + n.Reason.String()
		}
		attrs = append(attrs, slog.Uint64(name, n.N))
	}
	return slog.GroupValue(attrs...)
}
