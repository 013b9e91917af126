package limit

// cell is the work of a Memory on one op.
type cell struct {
	shard  *shard
	hash   uint64
	form   form
	entry  *entry // nil for a newcomer; good until the next insert
	log    *logbook
	leases *leaseSet
	// words are the counter under the op's numbers, as they are to be written; for
	// logs the tally, for leases how many are held. Behind a quota's, which has
	// four, is the stamp of an ID that is known.
	words words
	now   int64 // on the clock of the op's kind
	delay int64 // microseconds
	share int64 // units
	fits  bool
	take  bool // the op is to be charged
	write bool // the words are to be written
	known bool // the op's ID has been charged before
	// batch, in the first cell of a step, is what its caller waits for.
	batch *batch
}

// look finds the counter and brings it under op's numbers and to now.
func (c *cell) look(op *Op) {
	c.entry = c.shard.part(c.hash).find(c.hash, op.Key)
	c.log, c.leases, c.batch, c.delay, c.share, c.write, c.known = nil, nil, nil, 0, 0, false, false
	switch op.Kind {
	case Rate, Retries:
		c.lookBucket(op)
	case FixedWindow, SlidingWindow:
		var w window
		if c.entry != nil {
			w = windowOf(&c.entry.words)
		}
		w = w.roll(op, c.now)
		c.fits, c.words = w.fits(op, c.now), w.words()
	case Quota:
		c.lookQuota(op)
	case LogWindow:
		if c.entry != nil {
			c.log = c.shard.logs.at(c.entry.words[0])
		}
		t := c.log.look(op, c.now)
		c.fits, c.words = t.fits(op), words{t.counted, t.newest, t.leaves}
	case Concurrency:
		if c.entry != nil {
			c.leases = c.shard.leases.at(c.entry.words[0])
		}
		held := c.leases.held(c.now)
		c.known = c.leases.holds(op.ID, c.now)
		c.fits, c.words = c.known || held < op.max(), words{held}
	}
}

func (c *cell) lookBucket(op *Op) {
	b := fullBucket(op, c.now)
	if c.entry != nil {
		stored := bucketOf(&c.entry.words)
		b, c.write = stored.adopt(op, c.now)
	}
	c.fits, c.words = b.fits(op, c.now), b.words()
}

func (c *cell) lookQuota(op *Op) {
	var q quota
	if c.entry != nil {
		q = quotaOf(&c.entry.words)
	}
	q = q.roll(op.Calendar.around(c.now), c.now)
	c.fits, c.words = q.fits(op), q.words()
}

// lookMark finds whether op's ID was charged before.
func (c *cell) lookMark(hash uint64, name []byte, now int64) {
	if e := c.shard.part(hash).find(hash, name); e != nil {
		if m := markOf(&e.words); m.knows(now) {
			c.known, c.fits = true, true
			c.words[4] = m.stamp
		}
	}
}

// wants is how many keys charging the op may make.
func (c *cell) wants(op *Op) (keys int) {
	if c.entry == nil {
		keys++
	}
	if op.Kind == LogWindow || op.Kind == Concurrency || (op.Kind == Quota && len(op.ID) > 0) {
		keys++
	}
	return keys
}

// charge takes op's cost from the words, which are then to be written. Logs and
// leases are charged when they are written.
func (c *cell) charge(op *Op) {
	c.write = true
	switch op.Kind {
	case Rate, Retries:
		b := bucketOf(&c.words)
		c.delay, c.share = b.charge(op, c.now)
		c.words = b.words()
	case FixedWindow, SlidingWindow:
		w := windowOf(&c.words)
		w.charge(op)
		c.words = w.words()
	case Quota:
		q := quotaOf(&c.words)
		q.charge(op)
		c.words = q.words()
	}
}

// put writes an op that has an entry, and tells how many keys its set has grown by.
func (c *cell) put(op *Op) (grown int) {
	switch op.Kind {
	case LogWindow:
		before := c.log.weight()
		c.entry.words[1] = c.addToLog(op)
		return c.log.weight() - before
	case Concurrency:
		before := c.leases.weight()
		c.entry.words[1] = c.addToLeases(op)
		return c.leases.weight() - before
	}
	c.entry.words = c.words
	return 0
}

// insert writes an op that has no entry, and tells how many keys that makes.
func (c *cell) insert(op *Op) (grown int) {
	w := c.words
	switch op.Kind {
	case LogWindow:
		w[0], c.log = c.shard.logs.add()
		w[1] = c.addToLog(op)
	case Concurrency:
		w[0], c.leases = c.shard.leases.add()
		w[1] = c.addToLeases(op)
	}
	c.shard.insert(c.hash, op.Key, w)
	return 1 + c.log.weight() + c.leases.weight()
}

// addToLog charges a log, and returns when it is over.
func (c *cell) addToLog(op *Op) int64 {
	stamp := c.log.charge(op, c.now)
	c.words = words{c.words[0] + op.Cost, stamp}
	return stamp + op.length()
}

// addToLeases charges a set of leases, and returns when the last is over.
func (c *cell) addToLeases(op *Op) int64 {
	c.leases.charge(op, c.now)
	c.words[0] = c.leases.held(c.now)
	return c.leases.last
}

// state is what is told of the op after the step.
func (c *cell) state(op *Op) (s State) {
	switch op.Kind {
	case Rate, Retries:
		b := bucketOf(&c.words)
		s = b.state(op, c.now, c.fits)
		s.Delay, s.Share = micros(c.delay), c.share
	case FixedWindow, SlidingWindow:
		w := windowOf(&c.words)
		s = w.state(op, c.now, c.fits)
	case Quota:
		q := quotaOf(&c.words)
		s = q.state(op, c.now, c.fits)
		if c.known {
			s.Stamp = c.words[4]
		}
	case LogWindow:
		t := logTally{c.words[0], c.words[1], c.words[2]}
		s = t.state(op, c.now, c.fits)
	case Concurrency:
		s = leaseState(op, c.words[0], c.fits)
	}
	return s
}
