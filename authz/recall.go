package authz

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"sluice/authz/limit"
)

const (
	// visitFor is how long a request's first answer is given again.
	visitFor = time.Minute
	// refusedFor is the longest that a refusal is believed without asking the store.
	refusedFor = 2 * time.Second
	// pendingVisit is how long an answer may be in the making before the one who
	// makes it counts as gone.
	pendingVisit = 2 * time.Second
	// visitPoll is how soon one who came second looks for the first's answer again,
	// and visitPollMost where that ends when it takes long.
	visitPoll     = 100 * time.Microsecond
	visitPollMost = time.Millisecond
	// visitWait is how long he looks when no deadline bounds the decision, before he
	// asks for himself: less than NGINX waits. A store that never waits has answered
	// by then, unless the machine stands still.
	visitWait = 150 * time.Millisecond

	maxVisits   = 1 << 16 // remembered by an instance, 8 MB
	maxRefusals = 1 << 15 // 4 MB

	recallWays  = 4 // entries that share a place: the oldest makes room
	recallLocks = 64
)

// said is what a store said of a request, as much of it as an answer tells: the
// limit that headers speak of, and whether it refused.
type said struct {
	told    int16 // its index among the request's limits; -1: none
	refused bool
	retry   bool // the request was counted as a retry
	local   bool // the store was away
	state   limit.State
}

// recalled is an entry of a recall. It holds no pointers, so that the collector
// does not look at it.
type recalled struct {
	key     [2]uint64
	at      int64 // nanoseconds since the recall was made
	until   int64
	epoch   uint32
	pending bool
	said    said
}

// recall remembers answers for a moment, in a table of fixed size: what comes
// later takes the place of the oldest of a few. A key is 128 bits of keyed
// hashes, so nobody can make two requests that are taken for one another.
type recall struct {
	born    time.Time
	seeds   [2]maphash.Seed
	epoch   atomic.Uint32
	entries []recalled
	locks   [recallLocks]struct {
		sync.Mutex
		_ [56]byte // each on a line of its own
	}
}

func newRecall(size int, born time.Time) *recall {
	return &recall{born: born, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, entries: make([]recalled, size)}
}

func (r *recall) key(text []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(r.seeds[0], text), maphash.Bytes(r.seeds[1], text)}
}

// clear forgets everything.
func (r *recall) clear() { r.epoch.Add(1) }

// place are the entries that a key may have, locked.
func (r *recall) place(key [2]uint64) (ways []recalled, unlock *sync.Mutex) {
	n := len(r.entries) / recallWays
	i := int(key[0] % uint64(n))
	lock := &r.locks[i%recallLocks].Mutex
	lock.Lock()
	return r.entries[i*recallWays : (i+1)*recallWays], lock
}

// find is a key's entry that counts at a time, or the one that a new entry would
// take the place of.
func (r *recall) find(ways []recalled, key [2]uint64, now int64) (e *recalled, known bool) {
	epoch := r.epoch.Load()
	oldest := &ways[0]
	for i := range ways {
		w := &ways[i]
		counts := w.until > now && w.epoch == epoch && (!w.pending || now-w.at < int64(pendingVisit))
		if counts && w.key == key {
			return w, true
		}
		if !counts {
			w.until = 0
		}
		if w.until < oldest.until || w.until == oldest.until && w.at < oldest.at {
			oldest = w
		}
	}
	return oldest, false
}

// get is what was said under a key, and how long ago.
func (r *recall) get(key [2]uint64, at time.Time) (s said, age time.Duration, ok bool) {
	now := int64(at.Sub(r.born))
	ways, lock := r.place(key)
	defer lock.Unlock()
	e, known := r.find(ways, key, now)
	if !known || e.pending {
		return said{}, 0, false
	}
	return e.said, max(0, time.Duration(now-e.at)), true
}

// put remembers what was said, for some time.
func (r *recall) put(key [2]uint64, at time.Time, how time.Duration, s said) {
	now := int64(at.Sub(r.born))
	ways, lock := r.place(key)
	defer lock.Unlock()
	e, _ := r.find(ways, key, now)
	*e = recalled{key: key, at: now, until: now + int64(how), epoch: r.epoch.Load(), said: s}
}

// claim is what was said under a key, or takes the key for one who is about to
// find out. busy: somebody else is about to.
func (r *recall) claim(key [2]uint64, at time.Time) (s said, age time.Duration, known, busy bool) {
	now := int64(at.Sub(r.born))
	ways, lock := r.place(key)
	defer lock.Unlock()
	e, known := r.find(ways, key, now)
	switch {
	case !known:
		*e = recalled{key: key, at: now, until: now + int64(pendingVisit), epoch: r.epoch.Load(), pending: true}
		return said{}, 0, false, false
	case e.pending:
		return said{}, 0, false, true
	}
	return e.said, max(0, time.Duration(now-e.at)), true, false
}

// drop forgets a key.
func (r *recall) drop(key [2]uint64, at time.Time) {
	ways, lock := r.place(key)
	defer lock.Unlock()
	if e, known := r.find(ways, key, int64(at.Sub(r.born))); known {
		e.until = 0
	}
}

// appendPart appends a part of what a key is made of, so that no two lists of
// parts are one text.
func appendPart(dst, part []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(part))), part...)
}

// visitKey names a visit: a request of a subject to a route. What the client says
// of itself besides, a retry mark or a header to count by, does not make another.
func (e *Engine) visitKey(req *Request, r *boundRoute, s *subject, d *Decision) [2]uint64 {
	b := appendPart(d.scratch[:0], req.ID)
	b = appendPart(b, r.id)
	for _, part := range [][]byte{s.tenant, s.key, s.user, s.scope} {
		b = appendPart(b, part)
	}
	if len(s.tenant) == 0 {
		b = appendClient(b, s)
	}
	d.scratch = appendNumber(b, uint64(d.planLabel), uint64(d.Cost))
	return e.visits.key(d.scratch)
}

// refusalKey names who is refused what: all the counters of a request, its weight,
// and what its plan may take of them.
func (e *Engine) refusalKey(r *boundRoute, d *Decision) [2]uint64 {
	b := appendPart(d.scratch[:0], r.id)
	for i := range d.ops {
		b = appendPart(b, d.ops[i].Key)
	}
	d.scratch = appendNumber(b, uint64(d.planLabel), uint64(d.Cost))
	return e.refusals.key(d.scratch)
}

func appendNumber(dst []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return dst
}

// refusable tells whether a refusal of these limits may be remembered: not where
// a retry budget is charged by each attempt.
func (d *Decision) refusable() bool {
	for i := range d.ops {
		if d.ops[i].Kind == limit.Retries {
			return false
		}
	}
	return true
}

// Forget forgets every refusal that is believed without asking the store: after a
// grant, a reset, and whatever else lets in who was refused.
func (e *Engine) Forget() { e.refusals.clear() }

// again makes d the answer that was given before, with what time has taken from
// its wait. A reload since then may have taken the limit away: false.
func (d *Decision) again(s said, age time.Duration, req *Request) bool {
	if int(s.told) >= len(d.ops) {
		return false
	}
	d.recalled, d.local, d.FailMode = true, s.local, s.local
	if s.told < 0 {
		d.stoodIn()
		return true
	}
	state := s.state
	state.Reset = max(0, state.Reset-age)
	state.Delay = max(0, state.Delay-age)
	if state.Wait > 0 {
		state.Wait = max(1, state.Wait-age)
	}
	d.states[s.told] = state
	if s.refused {
		d.refuse(int(s.told), req)
		return true
	}
	d.told, d.Delay = int(s.told), state.Delay
	d.stoodIn()
	return true
}

// tells is what is to be remembered of d.
func (d *Decision) tells(retry bool) said {
	s := said{told: int16(d.told), refused: d.Verdict == Deny, retry: retry, local: d.local}
	if d.told >= 0 {
		s.state = d.states[d.told]
		s.state.Delay = d.Delay
	}
	return s
}

// believed tells how long a refusal may be repeated without asking: what waits for
// the clock alone, until the wait is over.
func (d *Decision) believed() time.Duration {
	if d.Verdict != Deny || !d.Reason.remembered() && d.Reason != ReasonTooLarge {
		return 0
	}
	how := refusedFor
	if d.Wait != limit.Never {
		how = min(how, d.Wait)
	}
	for _, g := range d.rules[d.told].grants {
		if g.from.After(d.now) {
			how = min(how, g.from.Sub(d.now))
		}
	}
	return how
}
