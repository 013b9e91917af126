package limit

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// MemoryOptions are the choices of a Memory; the zero value is good.
type MemoryOptions struct {
	// MaxKeys is the most buckets that are kept, 1,000,000 if 0. A bucket takes 85
	// to 170 bytes and its key.
	MaxKeys int
	// Grace is how long a full bucket is kept, and how far a clock may step back
	// without giving anything twice; 1 s if 0, which is also the least.
	Grace time.Duration
	// Now is the clock, read once for each decision; if nil, monotonic time.
	Now func() time.Time
}

// Memory is the Store of one process. It knows its keys without allocating.
//
// A decision holds the locks of all its tags, taken in ascending order, so that
// no two decisions wait for each other and none sees half of another.
//
// Every newcomer makes Memory look for buckets that are full again, and drop
// them. When MaxKeys buckets are all in use, a decision that needs one more fails
// with ErrUnavailable and charges nothing: to drop somebody's debt would pardon
// offenders for the price of a storm of newcomers, and to let newcomers pass
// uncounted would do so without a trace. The fail mode decides, and shows it.
type Memory struct {
	clock  func() int64
	seed   maphash.Seed
	grace  int64 // microseconds
	limit  int64 // keys
	full   error // made once: a storm of newcomers reads it often
	keys   atomic.Int64
	hand   atomic.Uint32 // the shard where the next search for room begins
	closed atomic.Bool
	large  sync.Pool // of *[MaxOps]cell
	shards [shardCount]shard
}

const (
	// shardCount is far above the number of processors, and a shard that holds
	// nothing costs 128 bytes.
	shardCount = 256
	// sweepStep is how many slots a newcomer looks at in its own shard. More than
	// one, so that room is found faster than it is used.
	sweepStep = 4
	// roomStep is how many slots of a shard are looked at when there is no room, and
	// roomLook how many in all: some tens of microseconds.
	roomStep = 64
	roomLook = 4096
	// fewOps fit on the stack.
	fewOps = 8
)

// cell is the work on one op.
type cell struct {
	shard  *shard
	hash   uint64
	entry  *entry // nil for a newcomer; good until the next insert
	bucket bucket
	fits   bool
	write  bool
}

// shardSet is a set of shards, walked in ascending order.
type shardSet [shardCount / 64]uint64

// NewMemory makes an empty store.
func NewMemory(o MemoryOptions) *Memory {
	m := &Memory{
		seed:  maphash.MakeSeed(),
		grace: max(o.Grace, time.Second).Microseconds(),
		limit: int64(o.MaxKeys),
		large: sync.Pool{New: func() any { return new([MaxOps]cell) }},
	}
	if m.limit <= 0 {
		m.limit = 1_000_000
	}
	m.full = fmt.Errorf("%w: cannot keep more than %d keys: every bucket is in use", ErrUnavailable, m.limit)
	for i := range m.shards {
		m.shards[i].parts = make([]table, 1)
	}
	if now := o.Now; now != nil {
		base := now()
		m.clock = func() int64 { return now().Sub(base).Microseconds() }
	} else {
		base := time.Now()
		m.clock = func() int64 { return time.Since(base).Microseconds() }
	}
	return m
}

// Take implements Store. It never waits for anything but locks and ignores ctx.
func (m *Memory) Take(_ context.Context, ops []Op, states []State) (int, error) {
	return m.step(ops, states, true)
}

// Peek implements Store.
func (m *Memory) Peek(_ context.Context, ops []Op, states []State) error {
	_, err := m.step(ops, states, false)
	return err
}

// Settle implements Store.
func (m *Memory) Settle(_ context.Context, id []byte, ops []Op, deltas []int64) error {
	checkSettle(id, ops, deltas)
	return errLater
}

// Reset implements Store.
func (m *Memory) Reset(_ context.Context, ops []Op) error {
	checkOps(ops, len(ops))
	return errLater
}

// Close implements Store.
func (m *Memory) Close() error {
	m.closed.Store(true)
	return nil
}

// Len is the number of buckets held, those included that are full again and not
// yet dropped.
func (m *Memory) Len() int { return int(m.keys.Load()) }

func (m *Memory) step(ops []Op, states []State, charge bool) (int, error) {
	checkTake(ops, states)
	if m.closed.Load() {
		return -1, errClosed
	}
	var few [fewOps]cell
	cells := few[:]
	if len(ops) > fewOps {
		many := m.large.Get().(*[MaxOps]cell)
		defer m.large.Put(many)
		cells = many[:]
	}
	cells = cells[:len(ops)]
	set := m.address(ops, cells)
	now := m.clock()
	if !m.decide(&set, ops, cells, now, charge) {
		m.makeRoom(now, len(ops))
		if !m.decide(&set, ops, cells, now, charge) {
			return -1, m.full
		}
	}
	for i := range ops {
		states[i] = cells[i].bucket.state(&ops[i], now, cells[i].fits)
	}
	return refusal(ops, states), nil
}

// address finds the shard and the hash of every op, outside of all locks.
func (m *Memory) address(ops []Op, cells []cell) (set shardSet) {
	for i := range ops {
		n := maphash.Bytes(m.seed, ops[i].Tag) % shardCount
		set[n/64] |= 1 << (n % 64)
		cells[i].shard = &m.shards[n]
		cells[i].hash = maphash.Bytes(m.seed, ops[i].Key) | usedBit
	}
	return set
}

// decide is the step itself. It returns false, and has done nothing, when there
// is no room for the newcomers.
func (m *Memory) decide(set *shardSet, ops []Op, cells []cell, now int64, charge bool) bool {
	m.lock(set)
	defer m.unlock(set)
	pass := true
	for i := range ops {
		op, c := &ops[i], &cells[i]
		if c.entry = c.shard.part(c.hash).find(c.hash, op.Key); c.entry != nil {
			c.bucket, c.write = c.entry.adopt(op, now)
		} else {
			c.bucket, c.write = fullBucket(op, now), false
		}
		c.fits = c.bucket.fits(op, now)
		pass = pass && (c.fits || op.Shadow)
	}
	if !charge {
		return true
	}
	newcomers := 0
	for i := range cells {
		if c := &cells[i]; pass && c.fits {
			c.write = true
			if c.entry == nil {
				newcomers++
			}
		}
	}
	if !m.reserve(newcomers) {
		return false
	}
	m.store(ops, cells, now, pass)
	return true
}

// store writes what is charged or has new numbers: first in place, then the
// newcomers, for whom slots move.
func (m *Memory) store(ops []Op, cells []cell, now int64, pass bool) {
	for i := range cells {
		c := &cells[i]
		if pass && c.fits {
			c.bucket.charge(&ops[i], now)
		}
		if c.write && c.entry != nil {
			c.entry.bucket = c.bucket
		}
	}
	for i := range cells {
		c := &cells[i]
		if c.write && c.entry == nil {
			_, dropped := c.shard.sweep(sweepStep, now, m.grace)
			m.keys.Add(-int64(dropped))
			c.shard.insert(c.hash, ops[i].Key, c.bucket)
		}
	}
}

// reserve counts newcomers in, if there is room for all of them.
func (m *Memory) reserve(newcomers int) bool {
	if newcomers == 0 {
		return true
	}
	if m.keys.Add(int64(newcomers)) <= m.limit {
		return true
	}
	m.keys.Add(-int64(newcomers))
	return false
}

// makeRoom drops buckets that are full again, wherever they are. It holds no
// other lock, and takes up where the last one ended.
func (m *Memory) makeRoom(now int64, wanted int) {
	for look, visits := roomLook, 0; look > 0 && wanted > 0 && visits < 4*shardCount; visits++ {
		s := &m.shards[m.hand.Add(1)%shardCount]
		s.mu.Lock()
		looked, dropped := s.sweep(roomStep, now, m.grace)
		s.mu.Unlock()
		m.keys.Add(-int64(dropped))
		look -= looked
		wanted -= dropped
	}
}

func (m *Memory) lock(set *shardSet) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			m.shards[i*64+bits.TrailingZeros64(word)].mu.Lock()
		}
	}
}

func (m *Memory) unlock(set *shardSet) {
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			m.shards[i*64+bits.TrailingZeros64(word)].mu.Unlock()
		}
	}
}
