package limit

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// softCounter is what an instance knows of one soft quota, and what it has admitted
// alone.
type softCounter struct {
	tag, key []byte
	// op holds the numbers that the quota was read under; without others nothing is
	// decided alone.
	op    atomic.Pointer[Op]
	epoch atomic.Pointer[softEpoch] // nil until the total is read
	// active is set by use and cleared by the flush: who is idle is dropped.
	active atomic.Bool
	gone   atomic.Bool   // dropped, and perhaps still known to Soft.recent
	queued atomic.Bool   // waits for an early flush
	busy   chan struct{} // holds one while somebody flushes

	mu      sync.Mutex // guards what follows, and changes of epoch
	late    []softDelta
	dropped bool

	sending *softDelta // on its way; of whoever is busy
}

// softEpoch is one period of a soft quota. What the store does not know yet is
// added - settled.
type softEpoch struct {
	start, end int64 // microseconds; the end on this machine's clock
	known      atomic.Int64
	over       atomic.Int64
	added      atomic.Int64 // units admitted alone since the epoch began; sealed at its end
	settled    atomic.Int64 // those of them that known includes
	denied     atomic.Int64 // until when the quota is believed to be exhausted
	// founded tells that the store has a counter for the period. One that has none
	// takes no correction: nothing is admitted alone that could not be written.
	founded atomic.Bool
}

// softDelta are units of one period for the store, under the name by which it
// knows a repetition.
type softDelta struct {
	start, units int64
	id           [24]byte
	tried        time.Time // when the store may have got it for the first time
}

// sealed is the added of an epoch that is over.
const sealed = math.MinInt64

// pending is what the store does not know yet of an epoch.
func (e *softEpoch) pending() int64 {
	settled := e.settled.Load()
	if added := e.added.Load(); added != sealed {
		return added - settled
	}
	return 0
}

// add counts units that are admitted alone, or given back, unless the epoch is over.
func (e *softEpoch) add(units int64) bool {
	for {
		added := e.added.Load()
		if added == sealed {
			return false
		}
		if e.added.CompareAndSwap(added, added+units) {
			return true
		}
	}
}

// current is the epoch, if it can decide about op at now.
func (c *softCounter) current(op *Op, now int64) *softEpoch {
	if e := c.epoch.Load(); e != nil && now < e.end && c.reads(op) {
		return e
	}
	return nil
}

// reads tells whether the quota was read under op's numbers.
func (c *softCounter) reads(op *Op) bool {
	read := c.op.Load()
	return read != nil && read.Max == op.Max && read.Overage == op.Overage && read.Calendar == op.Calendar
}

// admit takes op's cost alone, if that is safe: what is not yet flushed stays
// within share, and the total as far as it is known out of the last part of the
// quota. crowded asks for an early flush.
func (c *softCounter) admit(op *Op, now, share int64) (e *softEpoch, crowded bool) {
	e = c.current(op, now)
	if e == nil || op.Cost > share || !e.founded.Load() {
		return nil, false
	}
	for {
		// In this order: what is settled is known before.
		settled, added := e.settled.Load(), e.added.Load()
		if added == sealed {
			return nil, false
		}
		pending := added - settled + op.Cost
		if pending > share {
			return nil, true
		}
		if op.Max != Unlimited && e.known.Load()+pending > op.max()-lastPart(op) {
			return nil, false
		}
		if e.added.CompareAndSwap(added, added+op.Cost) {
			return e, pending > share/2
		}
	}
}

// lastPart is the part of the quota, at its end, where every charge is a hard one.
func lastPart(op *Op) int64 { return (op.max() + 19) / 20 }

// state is what is told of the quota by what is known here.
func (e *softEpoch) state(op *Op, now int64, fits bool) State {
	q := quota{start: e.start, end: e.end, over: e.over.Load()}
	q.used = max(q.over, min(e.known.Load()+e.pending(), MaxCount))
	return q.state(op, now, fits)
}

// learn takes what the store said of the quota at now. total tells that it knows
// all that was sent before.
func (c *softCounter) learn(op *Op, s *State, now int64, total bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped {
		return
	}
	e := c.epoch.Load()
	if e != nil && e.start > s.Stamp {
		return // an answer from the period before
	}
	if !c.reads(op) {
		numbers := *op
		numbers.Tag, numbers.Key, numbers.ID = c.tag, c.key, nil
		c.op.Store(&numbers)
		if e != nil {
			e.denied.Store(0)
		}
	}
	if e == nil || e.start < s.Stamp {
		if e != nil {
			c.seal(e)
		}
		e = &softEpoch{start: s.Stamp, end: now + s.Reset.Microseconds()}
		e.known.Store(s.Used)
		c.epoch.Store(e)
	}
	// Answers overtake each other, and all but a total may be old news.
	if used := e.known.Load(); total || s.Used > used {
		e.known.Store(s.Used)
	}
	if total || s.Used > 0 {
		e.founded.Store(s.Used > 0)
	}
	e.over.Store(s.Over)
	if !s.Fits && s.Remaining == 0 && s.Over >= op.overage() {
		e.denied.Store(now + believed.Microseconds())
	}
}

// seal ends an epoch. What the store does not know of it goes late.
func (c *softCounter) seal(e *softEpoch) {
	if units := e.added.Swap(sealed) - e.settled.Load() - c.flying(e.start); units != 0 {
		c.late = append(c.late, softDelta{start: e.start, units: units})
	}
}

// flying is what is on its way of a period.
func (c *softCounter) flying(start int64) int64 {
	if c.sending != nil && c.sending.start == start {
		return c.sending.units
	}
	return 0
}

// giveBack returns units that were admitted in an epoch and not used.
func (c *softCounter) giveBack(e *softEpoch, units int64) {
	if e.add(-units) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dropped {
		c.late = append(c.late, softDelta{start: e.start, units: -units})
	}
}

// owes is how many units the store does not know, and whether there are any that
// cancel each other.
func (c *softCounter) owes() (units int64, any bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.late {
		units += c.late[i].units
	}
	any = len(c.late) > 0 || c.sending != nil
	e := c.epoch.Load()
	if e != nil {
		units += e.pending()
	}
	if c.sending != nil && (e == nil || c.sending.start != e.start) {
		units += c.sending.units // else it is pending
	}
	return units, any || units != 0
}

// next is what is to be sent: what is on its way, else what is late, else what
// the epoch has. nil when there is nothing.
func (c *softCounter) next(name func(*softDelta)) *softDelta {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sending != nil || c.dropped {
		return c.sending
	}
	if len(c.late) > 0 {
		d := c.late[0]
		c.late = c.late[1:]
		c.sending = &d
	} else if e := c.epoch.Load(); e != nil && e.pending() != 0 {
		c.sending = &softDelta{start: e.start, units: min(max(e.pending(), -MaxBurst), MaxBurst)}
	}
	if c.sending != nil {
		name(c.sending)
	}
	return c.sending
}

// sent takes what was sent as known to the store.
func (c *softCounter) sent() {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.sending
	c.sending = nil
	if e := c.epoch.Load(); e != nil && d != nil && e.start == d.start && e.added.Load() != sealed {
		e.known.Add(d.units) // before it is settled: a reader may count it twice, never not at all
		e.settled.Add(d.units)
	}
}

// drop ends a counter that owes nothing, or with force any.
func (c *softCounter) drop(force bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.epoch.Load()
	if !force {
		if len(c.late) > 0 || c.sending != nil || c.active.Load() {
			return false
		}
		if e != nil {
			settled := e.settled.Load()
			if !e.added.CompareAndSwap(settled, sealed) {
				return false
			}
		}
	} else if e != nil {
		e.added.Store(sealed)
	}
	c.dropped, c.late, c.sending = true, nil, nil
	c.gone.Store(true)
	return true
}
