package limit

import "context"

// Settle implements Store.
func (m *Memory) Settle(ctx context.Context, id []byte, ops []Op, deltas []int64) error {
	checkSettle(id, ops, deltas)
	if len(ops) == 0 {
		return nil
	}
	return m.correct(ctx, ops, func(cells []cell, at moment) bool {
		done := false
		if len(id) == 0 {
			done = m.settle(ops, cells, deltas, at)
		} else {
			done = m.settleOnce(id, ops, cells, deltas, at)
		}
		if done {
			m.journal.settled(id, ops, cells, at)
		}
		return done
	})
}

// settleOnce settles under a name that it remembers.
func (m *Memory) settleOnce(id []byte, ops []Op, cells []cell, deltas []int64, at moment) bool {
	var room [markRoom]byte
	name := appendMarkKey(room[:0], ops[0].Key, id)
	hash, s := m.markHash(name), cells[0].shard
	if e := s.part(hash).find(hash, name); e != nil && markOf(&e.words).knows(at.now) {
		return true
	}
	if !m.reserve(1) {
		return false
	}
	if !m.settle(ops, cells, deltas, at) {
		m.keys.Add(-1)
		return false
	}
	m.sweep(s, at)
	m.keys.Add(int64(s.mark(hash, name, mark{time: at.now}) - 1))
	return true
}

// Reset implements Store.
func (m *Memory) Reset(ctx context.Context, ops []Op) error {
	checkOps(ops, len(ops))
	return m.correct(ctx, ops, func(cells []cell, _ moment) bool {
		for i := range ops {
			c := &cells[i]
			part := c.shard.part(c.hash)
			if e := part.find(c.hash, ops[i].Key); e != nil {
				m.keys.Add(-int64(1 + c.shard.empty(e)))
				part.forget(e)
			}
		}
		m.journal.forgotten(ops, cells)
		return true
	})
}

// correct does a step that is no decision, under the locks of its tags, and once
// more after making room when it returns false.
func (m *Memory) correct(ctx context.Context, ops []Op, step func(cells []cell, at moment) bool) error {
	if m.closed.Load() {
		return errClosed
	}
	cells := make([]cell, len(ops))
	set, wall := m.address(ops, cells)
	at := m.clock(wall)
	for range 2 {
		if m.locked(&set, func() bool { return step(cells, at) }) {
			return m.journal.await(ctx, cells)
		}
		m.makeRoom(len(ops) + 1)
	}
	return m.full
}

func (m *Memory) locked(set *shardSet, step func() bool) bool {
	m.lock(set)
	defer m.unlock(set)
	return step()
}

// settle corrects every op, or none when there is no room for those that nobody
// has charged.
func (m *Memory) settle(ops []Op, cells []cell, deltas []int64, at moment) bool {
	wanted := 0
	for i := range ops {
		c := &cells[i]
		c.now = at.of(c.form)
		c.entry = c.shard.part(c.hash).find(c.hash, ops[i].Key)
		if c.fresh(&ops[i], deltas[i]) {
			wanted++
		}
	}
	if !m.reserve(wanted) {
		return false
	}
	made := 0
	for i := range ops {
		if c := &cells[i]; c.entry != nil && (deltas[i] != 0 || ops[i].Kind == Concurrency) {
			made += c.settle(&ops[i], deltas[i])
		}
	}
	for i := range ops {
		if c := &cells[i]; c.fresh(&ops[i], deltas[i]) {
			b := fullBucket(&ops[i], c.now)
			b.settle(deltas[i], c.now)
			m.sweep(c.shard, at)
			c.shard.insert(c.hash, ops[i].Key, b.words())
			made++
		}
	}
	m.keys.Add(int64(made - wanted))
	return true
}

// fresh tells whether a correction makes a counter: a bucket that is not there is
// full, and can owe. What else is not there has been forgotten.
func (c *cell) fresh(op *Op, delta int64) bool {
	return c.entry == nil && delta > 0 && op.Kind.form() == bucketForm
}

// settle corrects a counter that is there, and tells how many keys its set has
// grown by.
func (c *cell) settle(op *Op, delta int64) (grown int) {
	switch op.Kind {
	case Rate, Retries:
		stored := bucketOf(&c.entry.words)
		if b, _ := stored.adopt(op, c.now); delta > 0 || !b.full(c.now) {
			b.settle(delta, c.now)
			c.entry.words = b.words()
		}
	case FixedWindow, SlidingWindow:
		stored := windowOf(&c.entry.words)
		w := stored.roll(op, c.now)
		// What was never counted there may have been dropped already.
		if stored.length == w.length && stored.start >= op.Stamp && w.settle(op, op.Stamp, delta) {
			c.entry.words = w.words()
		}
	case Quota:
		q := quotaOf(&c.entry.words)
		if q.settle(op, op.Stamp, delta) {
			c.entry.words = q.words()
		}
	case LogWindow:
		l := c.shard.logs.at(c.entry.words[0])
		before := l.weight()
		l.settle(op, c.now, op.Stamp, delta)
		return l.weight() - before
	case Concurrency:
		l := c.shard.leases.at(c.entry.words[0])
		before := l.weight()
		l.free(op.ID)
		return l.weight() - before
	}
	return 0
}
