package authz

import (
	"context"

	"sluice/authz/limit"
	"sluice/geo"
)

// Shown tells of each source of credentials, in the order of the policy, whether
// a question carries something for it. It is for people; it allocates.
func (e *Engine) Shown(req *Request) []bool {
	b := e.state.Load()
	if b == nil {
		return nil
	}
	out := make([]bool, len(b.sources))
	for i := range b.sources {
		out[i] = len(b.sources[i].credential(req)) > 0
	}
	return out
}

// Fresh is an engine that has decided nothing yet, with the policy in force of e:
// for who tries one policy many times. It shares with e what was made ready of the
// policy, which never changes, and the numbers of metrics.
func (e *Engine) Fresh(store limit.Store, o Options) *Engine {
	f := New(store, o)
	f.metrics = e.metrics
	f.state.Store(e.state.Load())
	return f
}

// Onlooker is an engine without a policy that decides as e would: it sees the same
// counters, at which it only looks, the same tenants, and what operators changed. It
// charges nothing, remembers nothing and tells nobody. Of o it takes the clock, the
// places, the jitter and the log.
func (e *Engine) Onlooker(o Options) *Engine {
	f := New(looking{e.store}, Options{
		Deadline: e.deadline, WaitsForQuotas: e.quotasWait, Directory: e.directory, Shared: e.shared,
		Places: o.Places, Log: o.Log, Now: o.Now, Jitter: o.Jitter,
	})
	f.ledger = e.ledger // which goes on telling e of changes
	return f
}

// Tables are the databases that say where clients are.
func (e *Engine) Tables() geo.Tables { return e.places.Load().tables }

// looking is a store at which decisions only look.
type looking struct{ limit.Store }

// Take looks, and answers as if it had charged: what is left is what would be left.
func (s looking) Take(ctx context.Context, ops []limit.Op, states []limit.State) (int, error) {
	if err := s.Peek(ctx, ops, states); err != nil {
		return -1, err
	}
	for i := range ops {
		if !states[i].Fits && !ops[i].Shadow {
			return i, nil
		}
	}
	for i := range ops {
		if s := &states[i]; s.Fits && s.Remaining != limit.Unlimited {
			s.Remaining = max(0, s.Remaining-ops[i].Cost)
		}
	}
	return -1, nil
}

// Settle settles nothing.
func (looking) Settle(context.Context, []byte, []limit.Op, []int64) error { return nil }

// Reset resets nothing.
func (looking) Reset(context.Context, []limit.Op) error { return nil }

// Close leaves the store to whoever opened it.
func (looking) Close() error { return nil }
