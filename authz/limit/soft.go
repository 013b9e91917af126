package limit

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// SoftOptions are the choices of a Soft; the zero value is good for one instance.
type SoftOptions struct {
	// Instances is how many processes share the store, 1 if 0. When more run, more may
	// pass, see Overshoot.
	Instances int
	// FlushEvery is how often what was admitted is written; 5 s if 0.
	FlushEvery time.Duration
	// Timeout is the longest that one call of a flush may take; 1 s if 0.
	Timeout time.Duration
	// MaxKeys is how many quotas are counted here, 1,000,000 if 0. Those beyond are
	// charged as hard ones.
	MaxKeys int
	// Now is the clock, the machine's if nil.
	Now func() time.Time
}

// Soft is a Store in front of one that many processes share. Quotas whose ops are
// Soft it counts in this process, and writes the sums in batches; all others,
// and those near their end, it leaves to the store behind.
//
// An instance decides alone only after it has read the total, and only while what
// it has not written is at most its share: a twentieth of the quota, divided by
// Instances. In the last twentieth every charge is a hard one. So the quota is
// exceeded by no more than Overshoot tells, however fast the requests come; a share
// that is used up is written before FlushEvery is over.
//
// While the store is away what was admitted is kept, and written later; the share
// bounds it, and what goes beyond fails as the store does. The name of a batch is
// remembered by the store, so that a repetition adds nothing; one that was not
// answered for nearly as long as names are remembered is given up, since it may
// have been counted (see SoftStats).
type Soft struct {
	inner  Store
	o      SoftOptions
	seed   maphash.Seed
	prefix [8]byte // of the names of batches: no other instance's
	serial atomic.Uint64
	calls  sync.Pool // of *softCall
	kick   chan *softCounter
	stop   context.CancelFunc
	done   sync.WaitGroup
	closed atomic.Bool

	counters atomic.Int64
	failures atomic.Int64
	doubtful atomic.Int64
	flushed  atomic.Int64 // microseconds, when all was last written
	shards   [softShards]softShard
	// recent are counters that were found lately, by hash: without a lock, and
	// without a second hash.
	recent [softRecent]atomic.Pointer[softCounter]
}

type softShard struct {
	mu   sync.RWMutex
	keys map[string]*softCounter
	_    [64 - 32]byte
}

const (
	softShards = 64
	// softRecent is how many counters are found at once.
	softRecent = 1 << 12
	// believed is how long an exhausted quota is taken for exhausted without asking.
	believed = 2 * time.Second
	// flushers is how many calls of a flush are under way at a time: the store behind
	// puts them on few connections.
	flushers = 64
)

// NewSoft makes a Soft, which Close closes with the store behind it.
func NewSoft(inner Store, o SoftOptions) *Soft {
	o.Instances = max(o.Instances, 1)
	if o.FlushEvery <= 0 {
		o.FlushEvery = 5 * time.Second
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = 1_000_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Soft{inner: inner, o: o, seed: maphash.MakeSeed(), prefix: newPrefix(), kick: make(chan *softCounter, 4*flushers), stop: stop}
	s.calls.New = func() any { return new(softCall) }
	s.flushed.Store(s.now())
	for i := range s.shards {
		s.shards[i].keys = map[string]*softCounter{}
	}
	s.done.Go(func() { s.run(ctx) })
	return s
}

// Overshoot is how many units of op's quota may pass beyond Max and Overage, at
// most: what all instances have admitted alone and not yet written. 0 for one
// instance, which knows all, and where there is no limit.
func (s *Soft) Overshoot(op *Op) int64 { return Overshoot(op, s.o.Instances) }

// Overshoot is that of a Soft of so many instances.
func Overshoot(op *Op, instances int) int64 {
	if instances <= 1 || op.Max == Unlimited {
		return 0
	}
	return int64(instances) * shareOf(op, instances)
}

// share is how many units this instance may have admitted alone and not written.
// Below 1, every charge is a hard one.
func (s *Soft) share(op *Op) int64 { return shareOf(op, s.o.Instances) }

func shareOf(op *Op, instances int) int64 { return op.max() / 20 / int64(instances) }

func (s *Soft) now() int64 { return s.o.Now().UnixMicro() }

// soft tells whether a Soft counts op.
func (op *Op) soft() bool { return op.Kind == Quota && op.Soft }

// Peek implements Store: it asks the store behind, and adds what this instance has
// not written.
func (s *Soft) Peek(ctx context.Context, ops []Op, states []State) error {
	if err := s.inner.Peek(ctx, ops, states); err != nil {
		return err
	}
	now := s.now()
	for i := range ops {
		op := &ops[i]
		if !op.soft() {
			continue
		}
		c := s.find(op)
		if c == nil {
			continue
		}
		if e := c.epoch.Load(); e != nil && e.start == states[i].Stamp {
			q := quota{start: e.start, end: now + states[i].Reset.Microseconds(), over: states[i].Over}
			q.used = max(q.over, min(states[i].Used+e.pending(), MaxCount))
			states[i] = q.state(op, now, q.fits(op))
		}
	}
	return nil
}

// Settle implements Store. What this instance has not written of the soft quotas is
// written first, or a refund might find less than it gives back.
func (s *Soft) Settle(ctx context.Context, id []byte, ops []Op, deltas []int64) error {
	for i := range ops {
		if !ops[i].soft() {
			continue
		}
		if c := s.find(&ops[i]); c != nil {
			if err := s.write(ctx, c); err != nil {
				return err
			}
			c.active.Store(true) // its total changes
		}
	}
	return s.inner.Settle(ctx, id, ops, deltas)
}

// Reset implements Store. What this instance has not written is forgotten too; what
// others have not written is counted when they do.
func (s *Soft) Reset(ctx context.Context, ops []Op) error {
	for i := range ops {
		c := s.find(&ops[i])
		if c == nil || !ops[i].soft() {
			continue
		}
		if err := c.acquire(ctx); err != nil {
			return err
		}
		s.forget(c, true)
		c.release()
	}
	return s.inner.Reset(ctx, ops)
}

// find is the counter of op, or nil.
func (s *Soft) find(op *Op) *softCounter {
	hash := maphash.Bytes(s.seed, op.Key)
	recent := &s.recent[hash/softShards%softRecent]
	if c := recent.Load(); c != nil && !c.gone.Load() && bytes.Equal(c.key, op.Key) {
		return c
	}
	shard := &s.shards[hash%softShards]
	shard.mu.RLock()
	c := shard.keys[string(op.Key)]
	shard.mu.RUnlock()
	if c != nil {
		recent.Store(c)
	}
	return c
}

// counter is the counter of op, made if there is room, or nil.
func (s *Soft) counter(op *Op) *softCounter {
	if c := s.find(op); c != nil {
		return c
	}
	if s.counters.Add(1) > int64(s.o.MaxKeys) {
		s.counters.Add(-1)
		return nil
	}
	c := &softCounter{tag: append([]byte(nil), op.Tag...), key: append([]byte(nil), op.Key...), busy: make(chan struct{}, 1)}
	shard := &s.shards[maphash.Bytes(s.seed, op.Key)%softShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if other := shard.keys[string(op.Key)]; other != nil {
		s.counters.Add(-1)
		return other
	}
	shard.keys[string(c.key)] = c
	return c
}

// forget drops a counter.
func (s *Soft) forget(c *softCounter, force bool) {
	shard := &s.shards[maphash.Bytes(s.seed, c.key)%softShards]
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if shard.keys[string(c.key)] == c && c.drop(force) {
		delete(shard.keys, string(c.key))
		s.counters.Add(-1)
	}
}

// SoftStats are what a Soft holds and has done.
type SoftStats struct {
	// Counters is how many quotas are counted here.
	Counters int
	// Pending is how many units were admitted and are not written.
	Pending int64
	// Failures is how many batches were not written when they should have been; they
	// are repeated. Doubtful is how many units were given up: they may have been
	// written, and nobody answered.
	Failures, Doubtful int64
	// Lag is how long ago all was written: at most FlushEvery while all is well.
	Lag time.Duration
}

// Stats tells how the flushes are doing.
func (s *Soft) Stats() SoftStats {
	stats := SoftStats{
		Counters: int(s.counters.Load()), Failures: s.failures.Load(), Doubtful: s.doubtful.Load(),
		Lag: time.Duration(max(0, s.now()-s.flushed.Load())) * time.Microsecond,
	}
	for _, c := range s.all() {
		units, _ := c.owes()
		stats.Pending += units
	}
	return stats
}

// Close writes what was admitted, for five seconds at most, and closes the store
// behind. Its error says how many units could not be written.
func (s *Soft) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.stop()
	s.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := s.Flush(ctx)
	if pending := s.Stats().Pending; pending > 0 {
		err = fmt.Errorf("cannot write %d units of soft quotas: %w", pending, err)
	}
	if closing := s.inner.Close(); err == nil {
		err = closing
	}
	return err
}
