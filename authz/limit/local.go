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

// localQuota is what is known of a quota, and what was counted of it here.
type localQuota struct {
	key, tag []byte
	calendar *Calendar
	known    quota
	own      int64 // units since known
	sending  int64 // of them on their way, under id
	id       []byte
	tried    time.Time
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

// Learn notes the totals of quotas, as the store has just told them.
func (l *Local) Learn(ops []Op, states []State) {
	for i := range ops {
		if op := &ops[i]; op.Kind == Quota {
			l.learn(op, &states[i])
		}
	}
}

func (l *Local) learn(op *Op, s *State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.quotas[string(op.Key)]
	if q == nil {
		if q = l.newQuota(op); q == nil {
			return
		}
	}
	q.calendar = op.Calendar
	if s.Stamp < q.known.start || s.Stamp == q.known.start && s.Used < q.known.used {
		return // answers overtake each other
	}
	if s.Stamp != q.known.start {
		q.own, q.sending, q.id = 0, 0, nil
		delete(l.owing, q)
	}
	end := l.o.Now().UnixMicro() + s.Reset.Microseconds()
	q.known = quota{start: s.Stamp, end: end, used: s.Used, over: s.Over}
}

// newQuota makes room for another quota; nil when there is none. l.mu is held.
func (l *Local) newQuota(op *Op) *localQuota {
	if len(l.quotas) >= max(l.o.MaxKeys/10, 1) {
		l.sweep()
		if len(l.quotas) >= max(l.o.MaxKeys/10, 1) {
			return nil
		}
	}
	q := &localQuota{key: append([]byte(nil), op.Key...), calendar: op.Calendar}
	q.tag = q.key
	if len(op.Tag) > 0 {
		q.tag = append([]byte(nil), op.Tag...)
	}
	l.quotas[string(q.key)] = q
	return q
}

// sweep forgets quotas whose period is over. l.mu is held.
func (l *Local) sweep() {
	now := l.o.Now().UnixMicro()
	for key, q := range l.quotas {
		if q.known.end <= now && !l.owing[q] {
			delete(l.quotas, key)
		}
	}
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

// quota is the entry of a quota, in the period of now. l.mu is held. One that finds
// no room counts for this decision alone.
func (l *Local) quota(op *Op, now int64) *localQuota {
	q := l.quotas[string(op.Key)]
	if q == nil {
		if q = l.newQuota(op); q == nil {
			q = &localQuota{key: op.Key, tag: op.Tag}
		}
	}
	q.calendar = op.Calendar
	if rolled := q.known.roll(op.Calendar.around(now), now); rolled.start != q.known.start {
		q.known, q.own, q.sending, q.id = rolled, 0, 0, nil
		delete(l.owing, q)
	}
	return q
}

// state is what is told of the quota before a charge.
func (q *localQuota) state(op *Op, now, part int64) State {
	sum := q.known
	if q.own > 0 {
		spent := *op
		spent.Cost = q.own
		sum.charge(&spent)
	}
	if op.Max == Unlimited {
		return sum.state(op, now, true)
	}
	room := max(0, op.max()-q.known.inside()) + max(0, op.overage()-q.known.over)
	share := (room + part - 1) / part
	s := sum.state(op, now, q.own+op.Cost <= share)
	s.Remaining = min(s.Remaining, max(0, share-q.own))
	return s
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

// over is a part of a speed, rounded up: the units that come in MaxPeriod are
// counted in whole micro-units.
func (r Refill) over(parts int64) Refill {
	if parts <= 1 {
		return r
	}
	if g := gcd(r.Micro, parts); g > 1 {
		r.Micro, parts = r.Micro/g, parts/g
	}
	longest := MaxPeriod.Microseconds()
	if r.Period <= longest/parts {
		r.Period *= parts
		return r
	}
	return Refill{Micro: (r.Micro + parts - 1) / parts, Period: r.Period}.reduced()
}

// reduced is the same speed without a common divisor.
func (r Refill) reduced() Refill {
	g := gcd(r.Micro, r.Period)
	return Refill{Micro: r.Micro / g, Period: r.Period / g}
}

// run writes what is owed until Close.
func (l *Local) run(ctx context.Context) {
	ticker := time.NewTicker(l.o.WriteEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = l.Write(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Write offers the store what was counted here. The first failure ends it, and is
// returned: the rest is kept.
func (l *Local) Write(ctx context.Context) error {
	for {
		op, q := l.next()
		if q == nil {
			return nil
		}
		var state [1]State
		call, cancel := context.WithTimeout(ctx, time.Second)
		began := time.Now()
		_, err := l.store.Take(call, []Op{op}, state[:])
		cancel()
		l.wrote(q, &op, &state[0], began, err)
		if err != nil {
			return err
		}
	}
}

// next is a quota that owes, and the op that pays: it asks for no room.
func (l *Local) next() (Op, *localQuota) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now().UnixMicro()
	for q := range l.owing {
		switch {
		case q.known.end <= now, q.own <= 0:
			q.own, q.sending, q.id = 0, 0, nil
			delete(l.owing, q)
			continue
		case q.sending > 0 && !q.tried.IsZero() && time.Since(q.tried) > giveUpAfter:
			q.paid()
			continue
		case q.sending == 0:
			q.sending = min(q.own, MaxBurst)
			q.id = fmt.Appendf(nil, "local/%s%016x", l.prefix[:], l.serial.Add(1))
			q.tried = time.Time{}
		}
		return Op{Tag: q.tag, Key: q.key, ID: q.id, Kind: Quota, Cost: q.sending, Max: Unlimited, Calendar: q.calendar}, q
	}
	return Op{}, nil
}

// paid takes what was sent for written.
func (q *localQuota) paid() {
	q.own -= q.sending
	q.known.used += q.sending
	q.sending, q.id = 0, nil
}

// wrote hears how a write went.
func (l *Local) wrote(q *localQuota, op *Op, s *State, began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		if q.tried.IsZero() && !untouched(err) {
			q.tried = began
		}
	case string(q.id) == string(op.ID):
		q.paid()
		if s.Stamp == q.known.start {
			q.known.used = max(q.known.used, s.Used)
		}
		if q.own <= 0 {
			delete(l.owing, q)
		}
	}
}

// Owed is how many units the store has not got yet.
func (l *Local) Owed() (units int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := range l.owing {
		units += q.own
	}
	return units
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
