package policytest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"sluice/authz/limit"
	"sluice/cmd/trial"
)

// A real store has its own clock, so a test on it takes its time, and its requests
// come a little later than they should. What is expected of them was checked on
// memory. What is checked here is that the store decides as memory does at the
// same moments: memory is asked once more, at the times when the store was. A
// decision that memory would make just before, or just after, is as good.

const (
	// patience is how long a test may take that runs on a real store.
	patience = time.Minute
	// storeDeadline is how long one decision may wait for it: nothing is measured here.
	storeDeadline = 5 * time.Second
)

// decided is what became of one request.
type decided struct {
	status int
	limit  string
	late   time.Duration // after the time when it was to be decided
	err    error
}

// onStore runs a test on a real store, and adds to its result what differs.
func (r *runner) onStore(store limit.Store, result *Result) {
	if len(r.plan) > 0 {
		if length := r.plan[len(r.plan)-1].at.Sub(r.start); length > patience {
			result.NotOnStore = fmt.Sprintf("it takes %s, and a real store has a real clock: want at most %s", length, patience)
			return
		}
	}
	result.OnStore = true
	apart := newApart(store)
	defer apart.clear()
	begin := time.Now()
	came := r.decisions(trial.Options{Start: begin, Store: apart, Deadline: storeDeadline, Sleep: func(until time.Time) { time.Sleep(time.Until(until)) }}, nil)
	early, late := r.decisions(trial.Options{Start: begin}, nil), r.decisions(trial.Options{Start: begin}, came)
	for i := range came {
		if same(&came[i], &early[i]) || same(&came[i], &late[i]) {
			continue
		}
		p := &r.plan[i]
		spec := &r.test.Requests[p.entry]
		result.Failures = append(result.Failures, Failure{
			Pos: spec.Pos, Where: where(spec.Pos), Request: r.q.title(spec), At: p.at.Sub(r.start).String(), N: p.n + 1, Of: spec.Requests(),
			Mismatches: []Mismatch{{"on the store", early[i].String(), came[i].String()}},
		})
		return // what comes after follows from it
	}
}

func same(a, b *decided) bool { return a.err == nil && a.status == b.status && a.limit == b.limit }

func (d *decided) String() string {
	switch {
	case d.err != nil:
		return d.err.Error()
	case d.limit != "":
		return fmt.Sprintf("%d by %s", d.status, d.limit)
	}
	return fmt.Sprint(d.status)
}

// decisions are what becomes of all requests, from o.Start on; each as much later
// as it came there, when there is a list.
func (r *runner) decisions(o trial.Options, late []decided) []decided {
	o.Login = true
	tr, out := r.trial.Fresh(o), make([]decided, len(r.plan))
	shift := time.Duration(0)
	for i := range r.plan {
		p := r.plan[i]
		if late != nil {
			shift = max(shift, late[i].late)
		}
		p.at = o.Start.Add(p.at.Sub(r.start) + shift)
		tr.Submit(r.q.request(&r.test.Requests[p.entry], &p), func(x *trial.Outcome) {
			out[i] = decided{status: x.Status, limit: x.Limit, late: time.Since(x.At), err: x.Err}
		})
	}
	tr.Drain()
	return out
}

// apart is a store whose counters nobody else has.
type apart struct {
	limit.Store
	prefix []byte
	seen   map[string]limit.Op
}

func newApart(s limit.Store) *apart {
	return &apart{s, fmt.Appendf(nil, "sluice-test:%d:", time.Now().UnixNano()), map[string]limit.Op{}}
}

// own are the ops under names of our own.
func (a *apart) own(ops []limit.Op) []limit.Op {
	out := make([]limit.Op, len(ops))
	for i := range ops {
		out[i] = ops[i]
		out[i].Key = append(bytes.Clone(a.prefix), ops[i].Key...)
		if _, known := a.seen[string(out[i].Key)]; !known {
			kept := out[i]
			kept.Tag, kept.ID = bytes.Clone(kept.Tag), bytes.Clone(kept.ID)
			a.seen[string(kept.Key)] = kept
		}
	}
	return out
}

// Take implements limit.Store.
func (a *apart) Take(ctx context.Context, ops []limit.Op, states []limit.State) (int, error) {
	return a.Store.Take(ctx, a.own(ops), states)
}

// Peek implements limit.Store.
func (a *apart) Peek(ctx context.Context, ops []limit.Op, states []limit.State) error {
	return a.Store.Peek(ctx, a.own(ops), states)
}

// Settle implements limit.Store.
func (a *apart) Settle(ctx context.Context, id []byte, ops []limit.Op, deltas []int64) error {
	return a.Store.Settle(ctx, id, a.own(ops), deltas)
}

// clear forgets the counters. What stays behind when that fails ends by itself.
func (a *apart) clear() {
	ctx, cancel := context.WithTimeout(context.Background(), storeDeadline)
	defer cancel()
	for _, op := range a.seen {
		_ = a.Reset(ctx, []limit.Op{op})
	}
}
