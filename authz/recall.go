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
	key     uint64 // the rest of it
	until   int64  // nanoseconds since the recall was made
	epoch   uint32
	pending bool // somebody is about to find out; there is no said yet
	said    said
}

// mark is a part of an entry's key, and when it was made: nanoseconds since one before
// the recall was; 0 for none.
type mark struct {
	key uint64
	at  int64
}

// place are the marks of entries that a key may have: a line of the processor's
// cache, and all that most look-ups read.
type place [recallWays]mark

// recall remembers answers for a moment, in a table of fixed size: what comes
// later takes the place of the oldest of a few. A key is 128 bits of keyed
// hashes, so nobody can make two requests that are taken for one another.
type recall struct {
	born    time.Time
	seeds   [2]maphash.Seed
	epoch   atomic.Uint32
	places  []place
	entries []recalled // recallWays for each place
	locks   [recallLocks]struct {
		sync.Mutex
		_ [56]byte // each on a line of its own
	}
}

func newRecall(size int, born time.Time) *recall {
	return &recall{
		born: born, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		places: make([]place, size/recallWays), entries: make([]recalled, size),
	}
}

func (r *recall) key(text []byte) [2]uint64 {
	return [2]uint64{maphash.Bytes(r.seeds[0], text), maphash.Bytes(r.seeds[1], text)}
}

// clear forgets everything.
func (r *recall) clear() { r.epoch.Add(1) }

// slot is where a key has its entry, or would have it: locked until unlock.
type slot struct {
	mark  *mark
	entry *recalled
	lock  *sync.Mutex
	known bool // the entry is the key's, and counts
}

func (s *slot) unlock() { s.lock.Unlock() }

// find is the slot of a key at a time.
func (r *recall) find(key [2]uint64, now int64) slot {
	at := int(key[0] % uint64(len(r.places)))
	marks := &r.places[at]
	s := slot{lock: &r.locks[at%recallLocks].Mutex}
	s.lock.Lock()
	oldest := 0
	for i := range marks {
		if marks[i].key == key[0] && marks[i].at != 0 {
			e := &r.entries[at*recallWays+i]
			if e.key == key[1] {
				s.mark, s.entry = &marks[i], e
				s.known = e.until > now && e.epoch == r.epoch.Load()
				return s
			}
		}
		if marks[i].at < marks[oldest].at {
			oldest = i
		}
	}
	s.mark, s.entry = &marks[oldest], &r.entries[at*recallWays+oldest]
	return s
}

// set makes the slot's entry one of a key from now on. What was said stays to be set.
func (s *slot) set(r *recall, key [2]uint64, now int64, how time.Duration, pending bool) {
	s.mark.key, s.mark.at = key[0], now+1
	s.entry.key, s.entry.until, s.entry.epoch, s.entry.pending = key[1], now+int64(how), r.epoch.Load(), pending
}

// told is what the entry says, and how long ago it was said.
func (s *slot) told(now int64) (said, time.Duration) {
	return s.entry.said, max(0, time.Duration(now+1-s.mark.at))
}

// get is what was said under a key, and how long ago.
func (r *recall) get(key [2]uint64, at time.Time) (what said, age time.Duration, ok bool) {
	now := int64(at.Sub(r.born))
	s := r.find(key, now)
	defer s.unlock()
	if !s.known || s.entry.pending {
		return said{}, 0, false
	}
	what, age = s.told(now)
	return what, age, true
}

// put remembers what was said, for some time.
func (r *recall) put(key [2]uint64, at time.Time, how time.Duration, what said) {
	now := int64(at.Sub(r.born))
	s := r.find(key, now)
	defer s.unlock()
	s.set(r, key, now, how, false)
	s.entry.said = what
}

// claim is what was said under a key, or takes the key for one who is about to
// find out. busy: somebody else is about to.
func (r *recall) claim(key [2]uint64, at time.Time) (what said, age time.Duration, known, busy bool) {
	now := int64(at.Sub(r.born))
	s := r.find(key, now)
	defer s.unlock()
	switch {
	case !s.known:
		s.set(r, key, now, pendingVisit, true)
		return said{}, 0, false, false
	case s.entry.pending:
		return said{}, 0, false, true
	}
	what, age = s.told(now)
	return what, age, true, false
}

// drop forgets a key.
func (r *recall) drop(key [2]uint64, at time.Time) {
	s := r.find(key, int64(at.Sub(r.born)))
	defer s.unlock()
	if s.known {
		s.mark.at = 0
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
