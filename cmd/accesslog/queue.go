package accesslog

import "slices"

// queue sorts entries by when their requests began, as far as they come within
// its window: one bucket for each second, sorted when its turn has come.
type queue struct {
	window  int64 // seconds
	most    int   // entries held; beyond, the oldest second goes early
	base    int64 // the oldest second that has not gone yet
	newest  int64 // second of the latest end seen
	started bool
	held    int
	buckets [][]Entry // by second modulo their number
	out     []Entry   // the second that is being handed out
	next    int       // of out

	late   int64 // came after their second had gone
	early  int64 // seconds that went early
	latest int64 // microseconds of the last entry handed out: time never goes back
}

func newQueue(window int64, most int) *queue {
	return &queue{window: window, most: most, buckets: make([][]Entry, window+2)}
}

// slot is the bucket of a second, which may lie before 1970.
func (q *queue) slot(second int64) int {
	n := int64(len(q.buckets))
	return int((second%n + n) % n)
}

// pop is the next entry that may go; nil: push another one first, or drain.
func (q *queue) pop() *Entry {
	if q.next == len(q.out) {
		return nil
	}
	e := &q.out[q.next]
	q.next++
	e.Start = max(e.Start, q.latest)
	q.latest = e.Start
	return e
}

// ready tells whether an entry that ends then may be pushed: not before the
// seconds that it makes go are handed out. If it may not, out is filled.
func (q *queue) ready(e *Entry) bool {
	ends := e.End / second
	if !q.started {
		q.started, q.base, q.newest = true, ends-q.window, ends
	}
	q.newest = max(q.newest, ends)
	if q.base >= q.newest-q.window && q.held < q.most {
		return true
	}
	if q.held == 0 {
		q.base = max(q.base, q.newest-q.window)
		return true
	}
	if q.base >= q.newest-q.window {
		q.early++
	}
	for !q.release() {
		if q.held == 0 {
			return q.ready(e)
		}
		if q.base >= q.newest-q.window && q.held < q.most {
			return true
		}
	}
	return false
}

// push takes an entry that ready let pass.
func (q *queue) push(e Entry) {
	at := e.Start / second
	if at < q.base {
		// Who began before the window did is taken at its beginning: that is no
		// disorder of the log, but a request that took longer than the window.
		at = q.base
		q.late++
	}
	q.held++
	i := q.slot(at)
	q.buckets[i] = append(q.buckets[i], e)
}

// release hands out the oldest second; false when it is empty.
func (q *queue) release() bool {
	i := q.slot(q.base)
	q.base++
	if len(q.buckets[i]) == 0 {
		return false
	}
	q.out, q.buckets[i] = q.buckets[i], q.out[:0]
	q.next = 0
	q.held -= len(q.out)
	byStart := func(a, b Entry) int { return int(max(-1, min(1, a.Start-b.Start))) }
	if !slices.IsSortedFunc(q.out, byStart) {
		slices.SortStableFunc(q.out, byStart)
	}
	return true
}

// drain hands out what is left; false when nothing is.
func (q *queue) drain() bool {
	for q.held > 0 {
		if q.release() {
			return true
		}
	}
	return false
}
