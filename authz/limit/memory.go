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
	// MaxKeys is the most counters that are kept, 1,000,000 if 0. A counter takes 80
	// to 100 bytes and its key, when there are many; a lease, four units of a log that came at different
	// times, and an ID that is remembered, are a counter each.
	MaxKeys int
	// Grace is how long a counter is kept that no longer matters, and how far a clock
	// may step back without giving anything twice; 1 s if 0, which is also the least.
	Grace time.Duration
	// Now is the clock, read once for each decision. If nil, it is the machine's:
	// monotonic time for what counts how long ago something was, the time of the day
	// for fixed and sliding windows and quotas.
	Now func() time.Time
}

// Memory is the Store of one process. It knows its keys without allocating.
//
// A decision holds the locks of all its tags, taken in ascending order, so that
// no two decisions wait for each other and none sees half of another.
//
// Every newcomer makes Memory look for counters that no longer matter, and drop
// them. When MaxKeys counters are all in use, a decision that needs one more fails
// with ErrUnavailable and charges nothing: to drop somebody's debt would pardon
// offenders for the price of a storm of newcomers, and to let newcomers pass
// uncounted would do so without a trace. The fail mode decides, and shows it.
type Memory struct {
	clock  func(wall bool) moment
	seed   maphash.Seed
	grace  int64 // microseconds
	limit  int64 // keys
	full   error // made once: a storm of newcomers reads it often
	keys   atomic.Int64
	hand   atomic.Uint32 // the shard where the next search for room begins
	closed atomic.Bool
	large  sync.Pool // of *[MaxOps]cell
	// journal is told of quotas that change. It belongs to an Embedded; others have none.
	journal *journal
	shards  [shardCount]shard
}

const (
	// shardCount is far above the number of processors, and a shard that holds
	// nothing costs 192 bytes.
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
	m.full = fmt.Errorf("%w: cannot keep more than %d keys: every counter is in use", ErrUnavailable, m.limit)
	for i := range m.shards {
		m.shards[i].parts = make([]table, 1)
	}
	m.clock = newClock(o.Now)
	return m
}

// newClock reads the clock that never steps, and that of the calendar only when it
// is wanted: each takes tens of nanoseconds.
func newClock(now func() time.Time) func(wall bool) moment {
	if now != nil {
		return func(bool) moment {
			t := now().UnixMicro()
			return moment{t, t}
		}
	}
	base := time.Now()
	start := base.UnixMicro()
	return func(wall bool) moment {
		if !wall {
			t := start + time.Since(base).Microseconds()
			return moment{t, 0}
		}
		t := time.Now()
		return moment{start + t.Sub(base).Microseconds(), t.UnixMicro()}
	}
}

// Take implements Store. It never waits for anything but locks, and an Embedded for its file.
func (m *Memory) Take(ctx context.Context, ops []Op, states []State) (int, error) {
	return m.step(ctx, ops, states, true)
}

// Peek implements Store.
func (m *Memory) Peek(ctx context.Context, ops []Op, states []State) error {
	_, err := m.step(ctx, ops, states, false)
	return err
}

// Close implements Store.
func (m *Memory) Close() error {
	m.closed.Store(true)
	return nil
}

// Len is the number of counters held, or what is worth as much (see MaxKeys), those
// included that no longer matter and are not yet dropped.
func (m *Memory) Len() int { return int(m.keys.Load()) }

func (m *Memory) step(ctx context.Context, ops []Op, states []State, charge bool) (int, error) {
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
	set, wall := m.address(ops, cells)
	at := m.clock(wall)
	if !m.decide(&set, ops, cells, at, charge) {
		m.makeRoom(len(ops))
		if !m.decide(&set, ops, cells, at, charge) {
			return -1, m.full
		}
	}
	for i := range ops {
		states[i] = cells[i].state(&ops[i])
	}
	if err := m.journal.await(ctx, cells); err != nil {
		return -1, err
	}
	return refusal(ops, states), nil
}

// address finds the shard and the hash of every op, outside of all locks, and
// whether one asks for the calendar.
func (m *Memory) address(ops []Op, cells []cell) (set shardSet, wall bool) {
	for i := range ops {
		n := maphash.Bytes(m.seed, ops[i].Tag) % shardCount
		set[n/64] |= 1 << (n % 64)
		c := &cells[i]
		c.shard, c.form = &m.shards[n], ops[i].Kind.form()
		c.hash = hashOf(maphash.Bytes(m.seed, ops[i].Key), c.form)
		wall = wall || c.form == windowForm || c.form == quotaForm
	}
	return set, wall
}

// decide is the step itself. It returns false, and has done nothing, when there
// is no room for the newcomers.
func (m *Memory) decide(set *shardSet, ops []Op, cells []cell, at moment, charge bool) bool {
	m.lock(set)
	defer m.unlock(set)
	pass := true
	for i := range ops {
		op, c := &ops[i], &cells[i]
		c.now = at.of(c.form)
		c.look(op)
		if op.Kind == Quota && len(op.ID) > 0 {
			var room [markRoom]byte
			name := appendMarkKey(room[:0], op.Key, op.ID)
			c.lookMark(m.markHash(name), name, at.now)
		}
		pass = pass && (c.fits || op.Shadow)
	}
	if !charge {
		return true
	}
	wanted := 0
	for i := range ops {
		op, c := &ops[i], &cells[i]
		c.take = c.fits && !c.known && (pass || op.Kind == Retries)
		if c.take {
			wanted += c.wants(op)
		}
	}
	if !m.reserve(wanted) {
		return false
	}
	m.keys.Add(int64(m.store(ops, cells, at) - wanted))
	m.journal.charged(ops, cells, at)
	return true
}

// store writes what is charged or has new numbers: first in place, then the
// newcomers, for whom slots move. It tells how many keys were made.
func (m *Memory) store(ops []Op, cells []cell, at moment) (made int) {
	for i := range cells {
		op, c := &ops[i], &cells[i]
		if c.take {
			c.charge(op)
		}
		if c.write && c.entry != nil {
			made += c.put(op)
		}
	}
	for i := range cells {
		op, c := &ops[i], &cells[i]
		if c.write && c.entry == nil {
			m.sweep(c.shard, at)
			made += c.insert(op)
		}
		if c.take && op.Kind == Quota && len(op.ID) > 0 {
			var room [markRoom]byte
			name := appendMarkKey(room[:0], op.Key, op.ID)
			m.sweep(c.shard, at)
			made += c.shard.mark(m.markHash(name), name, mark{at.now, c.words[0]})
		}
	}
	return made
}

func (m *Memory) markHash(name []byte) uint64 {
	return hashOf(maphash.Bytes(m.seed, name), markForm)
}

// sweep looks for room in a shard that gets a newcomer.
func (m *Memory) sweep(s *shard, at moment) {
	_, dropped := s.sweep(sweepStep, at.before(m.grace))
	m.keys.Add(-int64(dropped))
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

// makeRoom drops counters that no longer matter, wherever they are. It holds no
// other lock, and takes up where the last one ended.
func (m *Memory) makeRoom(wanted int) {
	before := m.clock(true).before(m.grace)
	for look, visits := roomLook, 0; look > 0 && wanted > 0 && visits < 4*shardCount; visits++ {
		s := &m.shards[m.hand.Add(1)%shardCount]
		s.mu.Lock()
		looked, dropped := s.sweep(roomStep, before)
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
