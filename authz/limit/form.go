package limit

// form is what the words of an entry are. It is a part of the entry's hash, so a
// look-up finds no counter of another form.
type form uint64

const (
	bucketForm form = iota // bucket.words
	windowForm             // window.words
	quotaForm              // quota.words
	logForm                // the number of a logbook, and when it is over
	leaseForm              // the number of a leaseSet, and when it is over
	markForm               // mark.words
)

// formShift is where a hash holds the form.
const formShift = 60

// form is the form of a kind's counters.
func (k Kind) form() form {
	switch k {
	case FixedWindow, SlidingWindow:
		return windowForm
	case LogWindow:
		return logForm
	case Quota:
		return quotaForm
	case Concurrency:
		return leaseForm
	}
	return bucketForm
}

// hashOf makes the hash of a key that of a counter: never 0, and never equal for two
// forms.
func hashOf(hash uint64, f form) uint64 {
	return hash&(1<<formShift-1) | uint64(f)<<formShift | usedBit
}

func (e *entry) form() form { return form(e.hash >> formShift & 7) }

// moment is a time on two clocks, in microseconds since 1970: one that never steps,
// for what counts how long ago something was, and that of the calendar, for what
// begins at a time of the day; 0 when nobody asked for it. Both are one in tests
// and in Redis.
type moment struct{ now, wall int64 }

// of is the clock for a form.
func (m moment) of(f form) int64 {
	if f == windowForm || f == quotaForm {
		return m.wall
	}
	return m.now
}

// before is the moment some microseconds ago.
func (m moment) before(micros int64) moment { return moment{m.now - micros, m.wall - micros} }

// stale tells whether the counter did not matter any more before: it was as one
// never used.
func (e *entry) stale(before moment) bool {
	switch e.form() {
	case bucketForm:
		b := bucketOf(&e.words)
		return b.time <= before.now && b.full(before.now)
	case windowForm:
		return e.words[0]+2*e.words[1] <= before.wall
	case quotaForm:
		return e.words[1] <= before.wall
	case markForm:
		return e.words[0]+remember <= before.now
	}
	return e.words[1] <= before.now
}

// remember is Remember in microseconds.
const remember = int64(Remember) / 1000

// mark is the memory of an ID: something was done for it, at this time and under
// this stamp.
type mark struct{ time, stamp int64 }

// knows tells whether the mark still counts. One from the future does: the clock
// has stepped back.
func (m mark) knows(now int64) bool { return now-m.time < remember }

func (m *mark) words() words { return words{m.time, m.stamp} }

func markOf(w *words) mark { return mark{time: w[0], stamp: w[1]} }

// markRoom is enough for the names of most marks.
const markRoom = 320

// appendMarkKey appends the key of the mark of id under key.
func appendMarkKey(dst, key, id []byte) []byte {
	dst = append(dst, key...)
	dst = append(dst, '#') // no part of a key holds it, see package authz
	return append(dst, id...)
}

// weight is how many keys a logbook's records are worth: four are as large as an
// entry.
func (l *logbook) weight() int {
	if l == nil {
		return 0
	}
	return len(l.records) / 4
}

// weight is how many keys the leases of a set are worth.
func (s *leaseSet) weight() int {
	if s == nil {
		return 0
	}
	return len(s.expiry)
}
