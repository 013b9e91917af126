package replay

// maxPairs is how many causes by subjects a ledger counts one by one.
const maxPairs = 1_000_000

// ledger counts what denied whom.
type ledger struct {
	entries map[cause]*entry
	pairs   map[pair]int64
}

// entry is one cause, with when and whom.
type entry struct {
	cause
	count, subjects int64
	first, last     int64 // microseconds
	source          string
	line            int64 // of the first
	worst           int32 // the subject that it denied most often
	worstCount      int64
}

type pair struct {
	entry   *entry
	subject int32
}

func newLedger() ledger { return ledger{entries: map[cause]*entry{}, pairs: map[pair]int64{}} }

func (l *ledger) add(why cause, it *item, subject int32) {
	x := l.entries[why]
	if x == nil {
		x = &entry{cause: why, first: it.at, source: it.source, line: it.line}
		l.entries[why] = x
	}
	x.count++
	x.last = max(x.last, it.at)
	p := pair{x, subject}
	n, known := l.pairs[p]
	if !known {
		if len(l.pairs) >= maxPairs {
			return
		}
		x.subjects++
	}
	n++
	l.pairs[p] = n
	if n > x.worstCount {
		x.worst, x.worstCount = subject, n
	}
}
