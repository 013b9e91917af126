package limit

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// LeasedOptions are the choices of a Leased; the zero value is good.
type LeasedOptions struct {
	// Timeout is how long a share may be asked for ahead of use; 20 ms if 0. A decision
	// that finds nothing to spend waits for it, as far as its context allows.
	Timeout time.Duration
	// MaxKeys is how many limits are spent from shares, 1,000,000 if 0. Those beyond are
	// asked about each time.
	MaxKeys int
	// Now is the clock, the machine's if nil, monotonic.
	Now func() time.Time
}

// Leased is a Store in front of one that many processes share. Of rates whose ops
// are Leased it takes shares ahead of use and spends them in this process; all else
// it leaves to the store behind.
//
// No interval T sees more than Burst units and what comes in T. The shared bucket
// holds 95 % of Burst (SharedBurst). What an interval sees was taken from it in this
// interval or one ShareLife before, in which 5 % of Burst come at most: a share is
// void when its life is over, counted from before it was asked for. Nobody who dies
// with a share, or forgets it, changes that: units are lost then, and never made.
//
// A share is as large as what was wanted lately, at most a twentieth of Burst, and
// each Reserve has its own: what may draw deeper is not spent on those who may not.
// A rate that is asked for once in a while has no share. While the bucket has nothing
// more to give, decisions are refused here for half a life, in which 2.5 % of Burst
// come at most. Other numbers, after a reload, void what is held.
type Leased struct {
	inner  Store
	o      LeasedOptions
	seed   maphash.Seed
	calls  sync.Pool // of *leasedCall
	kick   chan *share
	stop   context.CancelFunc
	done   sync.WaitGroup
	closed atomic.Bool
	keys   atomic.Int64
	shards [softShards]leasedShard
}

// leasedShard has the shares of some keys: one for each reserve.
type leasedShard struct {
	mu   sync.RWMutex
	keys map[string][]*share
	_    [64 - 32]byte
}

const (
	// longestShare is where the life of a share ends at the latest.
	longestShare = time.Second
	// leasedAskers is how many shares are asked for at a time ahead of use.
	leasedAskers = 8
	// leasedSweep is how often shares that nobody uses are dropped.
	leasedSweep = 10 * time.Second
)

// NewLeased makes a Leased, which Close closes with the store behind it.
func NewLeased(inner Store, o LeasedOptions) *Leased {
	if o.Timeout <= 0 {
		o.Timeout = 20 * time.Millisecond
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = 1_000_000
	}
	if o.Now == nil {
		base := time.Now()
		o.Now = func() time.Time { return base.Add(time.Since(base)) }
	}
	ctx, stop := context.WithCancel(context.Background())
	l := &Leased{inner: inner, o: o, seed: maphash.MakeSeed(), kick: make(chan *share, 4*leasedAskers), stop: stop}
	l.calls.New = func() any { return new(leasedCall) }
	for i := range l.shards {
		l.shards[i].keys = map[string][]*share{}
	}
	for range leasedAskers {
		l.done.Go(func() { l.ahead(ctx) })
	}
	l.done.Go(func() { l.sweeps(ctx) })
	return l
}

// SharedBurst is how many units the shared bucket of a leased op holds: 95 % of its
// Burst, rounded down.
func SharedBurst(op *Op) int64 { return op.Burst - (op.Burst+19)/20 }

// ShareLife is how long a share of a leased op may be spent, from before it was
// asked for: until 5 % of Burst have come, a second at most.
func ShareLife(op *Op) time.Duration {
	micro, _ := mulDiv(op.Burst*(Unit/20), op.Refill.Period, op.Refill.Micro)
	return min(micros(micro), longestShare)
}

// LargestShare is how many units of a leased op an instance holds at most, of each
// Reserve: a twentieth of Burst. What so many instances hold the others must do
// without, for ShareLife.
func LargestShare(op *Op) int64 { return op.Burst / 20 }

// leased tells whether a Leased spends op from shares.
func (op *Op) leased() bool { return op.Kind == Rate && op.Leased && op.MaxWait == 0 }

// shared is op as the store behind knows it.
func (op *Op) shared() Op {
	s := *op
	s.Burst = SharedBurst(op)
	s.Reserve, s.Share = min(op.Reserve, s.Burst), 0
	return s
}

func (l *Leased) now() int64 { return l.o.Now().UnixMicro() }

// Peek implements Store: it asks the store behind, and adds what this instance may
// still spend.
func (l *Leased) Peek(ctx context.Context, ops []Op, states []State) error {
	if !slices.ContainsFunc(ops, func(op Op) bool { return op.leased() }) {
		return l.inner.Peek(ctx, ops, states)
	}
	checkTake(ops, states)
	if err := l.inner.Peek(ctx, sharedOps(ops), states); err != nil {
		return err
	}
	now := l.now()
	for i := range ops {
		op := &ops[i]
		if !op.leased() {
			continue
		}
		if s := l.find(op); s != nil {
			left := s.holds(op, now)
			states[i].Remaining += left
			if op.Cost <= left {
				states[i].Fits, states[i].Wait = true, 0
			}
		}
	}
	return nil
}

// Settle implements Store.
func (l *Leased) Settle(ctx context.Context, id []byte, ops []Op, deltas []int64) error {
	return l.inner.Settle(ctx, id, sharedOps(ops), deltas)
}

// Reset implements Store. What this instance holds is void; what others hold they
// may spend for ShareLife.
func (l *Leased) Reset(ctx context.Context, ops []Op) error {
	for i := range ops {
		if ops[i].leased() {
			l.drop(ops[i].Key)
		}
	}
	return l.inner.Reset(ctx, sharedOps(ops))
}

// Close implements Store. What was not spent is void.
func (l *Leased) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.stop()
	l.done.Wait()
	return l.inner.Close()
}

// sharedOps are ops as the store behind knows them: themselves when none is leased.
func sharedOps(ops []Op) []Op {
	if !slices.ContainsFunc(ops, func(op Op) bool { return op.leased() }) {
		return ops
	}
	ops = slices.Clone(ops)
	for i := range ops {
		if ops[i].leased() {
			ops[i] = ops[i].shared()
		}
	}
	return ops
}

func (l *Leased) shard(key []byte) *leasedShard {
	return &l.shards[maphash.Bytes(l.seed, key)%softShards]
}

// find is the share of op, or nil.
func (l *Leased) find(op *Op) *share {
	shard := l.shard(op.Key)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	return withReserve(shard.keys[string(op.Key)], op)
}

func withReserve(shares []*share, op *Op) *share {
	for _, s := range shares {
		if s.reserve == op.Reserve {
			return s
		}
	}
	return nil
}

// share is the share of op, made if there is room, or nil.
func (l *Leased) share(op *Op) *share {
	if s := l.find(op); s != nil {
		return s
	}
	if l.keys.Add(1) > int64(l.o.MaxKeys) {
		l.keys.Add(-1)
		return nil
	}
	shard := l.shard(op.Key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	shares := shard.keys[string(op.Key)]
	if s := withReserve(shares, op); s != nil {
		l.keys.Add(-1)
		return s
	}
	s := newShare(op)
	// Readers may hold the old slice.
	shard.keys[string(s.key)] = append(slices.Clone(shares), s)
	return s
}

// drop voids what is held of a key.
func (l *Leased) drop(key []byte) {
	shard := l.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	for _, s := range shard.keys[string(key)] {
		s.void()
	}
	l.keys.Add(-int64(len(shard.keys[string(key)])))
	delete(shard.keys, string(key))
}
