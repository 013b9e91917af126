package limit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// LocalOptions are the choices of a Local; the zero value is good for one instance.
type LocalOptions struct {
	// Instances is how many processes share the store, 1 if 0: each has its part of
	// every limit.
	Instances int
	// MaxKeys bounds the counters, 1,000,000 if 0, and the quotas whose totals are
	// known, a tenth of that.
	MaxKeys int
	// WriteEvery is how often what was counted is offered to the store; 1 s if 0.
	WriteEvery time.Duration
	// Now is the clock, the machine's if nil.
	Now func() time.Time
}

// Local stands in for a store that many processes share while that is away: in the
// memory of this one, with an Instances'th of each limit, rounded up, and room for
// one request at least where the limit itself has it.
//
// Quotas go on from the last total that was learned, and may spend here an
// Instances'th of what was left then; what was counted is written when the store is
// back, once, without asking for room. Units of a period that has ended meanwhile
// are written no more, nor those of whom the store did not answer for nearly as
// long as it remembers names: they may be there. Buckets, windows and leases start
// afresh, and are forgotten.
type Local struct {
	memory *Memory
	store  Store
	o      LocalOptions
	part   int64
	prefix [8]byte
	serial atomic.Uint64
	calls  sync.Pool // of *localCall
	stop   context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	quotas map[string]*localQuota
	owing  map[*localQuota]bool
}

// localCall is the memory of one decision.
type localCall struct {
	ops    [MaxOps]Op
	states [MaxOps]State
	from   [MaxOps]int
	quotas [MaxOps]*localQuota
}

// NewLocal makes a Local for a store, to which it writes; Close ends that, and
// leaves the store open.
func NewLocal(store Store, o LocalOptions) *Local {
	o.Instances = max(o.Instances, 1)
	if o.MaxKeys <= 0 {
		o.MaxKeys = 1_000_000
	}
	if o.WriteEvery <= 0 {
		o.WriteEvery = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Local{
		memory: NewMemory(MemoryOptions{MaxKeys: o.MaxKeys, Now: o.Now}),
		store:  store, o: o, part: int64(o.Instances), prefix: newPrefix(), stop: stop,
		quotas: map[string]*localQuota{}, owing: map[*localQuota]bool{},
	}
	l.calls.New = func() any { return new(localCall) }
	l.done.Go(func() { l.run(ctx) })
	return l
}

// Take is Store.Take here alone. The error is that of a memory that is full.
func (l *Local) Take(ops []Op, states []State) (refused int, err error) {
	checkTake(ops, states)
	call := l.calls.Get().(*localCall)
	defer l.calls.Put(call)
	rest := 0
	for i := range ops {
		if ops[i].Kind == Quota {
			continue
		}
		call.ops[rest], call.from[rest] = l.scaled(ops[i]), i
		rest++
	}
	// Quotas are decided under one lock, so that all are charged or none.
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now().UnixMicro()
	fit := true
	for i := range ops {
		if op := &ops[i]; op.Kind == Quota {
			call.quotas[i] = l.quota(op, now)
			states[i] = call.quotas[i].state(op, now, l.part)
			fit = fit && (op.Shadow || states[i].Fits)
		}
	}
	if fit {
		_, err = l.memory.Take(context.Background(), call.ops[:rest], call.states[:rest])
	} else {
		err = l.memory.Peek(context.Background(), call.ops[:rest], call.states[:rest])
	}
	if err != nil {
		return -1, err
	}
	for j := range rest {
		states[call.from[j]] = call.states[j]
		clear(call.ops[j : j+1])
	}
	refused = refusal(ops, states)
	for i := range ops {
		q := call.quotas[i]
		call.quotas[i] = nil
		if q == nil || refused >= 0 || !states[i].Fits {
			continue
		}
		q.own += ops[i].Cost
		l.owing[q] = true
		after := q.state(&ops[i], now, l.part)
		after.Fits = true
		after.Wait = 0
		states[i] = after
	}
	return refused, nil
}

// Settle is Store.Settle of what was taken here.
func (l *Local) Settle(ops []Op, deltas []int64) error {
	checkSettle(nil, ops, deltas)
	var rest []Op
	var owed []int64
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now().UnixMicro()
	for i := range ops {
		if ops[i].Kind != Quota {
			rest, owed = append(rest, l.scaled(ops[i])), append(owed, deltas[i])
			continue
		}
		if q := l.quota(&ops[i], now); q.known.start == ops[i].Stamp {
			q.own = max(q.sending, q.own+deltas[i])
			l.owing[q] = true
		}
	}
	if len(rest) == 0 {
		return nil
	}
	return l.memory.Settle(context.Background(), nil, rest, owed)
}

// scaled is this instance's part of a limit.
func (l *Local) scaled(op Op) Op {
	if l.part == 1 {
		return op
	}
	divide := func(n int64) int64 {
		if n <= 0 {
			return n
		}
		return max((n+l.part-1)/l.part, min(n, op.Cost))
	}
	switch op.Kind {
	case Rate, Retries:
		op.Burst = divide(op.Burst)
		op.Reserve = min((op.Reserve+l.part-1)/l.part, op.Burst)
		op.Refill = op.Refill.over(l.part)
	default:
		op.Max = divide(op.Max)
	}
	return op
}

// Close writes what it can within a second. The error tells of units that the store
// did not get.
func (l *Local) Close() error {
	l.stop()
	l.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := l.Write(ctx)
	_ = l.memory.Close()
	if units := l.Owed(); units > 0 {
		return fmt.Errorf("%d units that were counted while the store was away are not written: %w", units, err)
	}
	return nil
}
