package limit

import (
	"slices"
	"sort"
)

// logbook is what a store keeps of a log window: when units were counted, and how
// many had been until then. With running totals any window is a difference of
// two, found by two searches and no sum. A nil logbook has counted nothing.
//
// log.lua says the same in Lua.
type logbook struct {
	length  int64 // microseconds
	time    int64 // of the last charge
	base    int64 // the total before the first record
	records []logRecord
}

// logRecord is all that was counted at one time.
type logRecord struct {
	time  int64
	total int64 // of all units until then, these included
}

// logTally is what a logbook says at one time.
type logTally struct {
	counted int64 // units in the window
	newest  int64 // when the newest of them was counted, 0 without any
	leaves  int64 // when the unit was counted that must leave before op fits; 0 if none must, or none can
}

// trimAt is how many more records may be over than count before they are dropped.
const trimAt = 32

// of is the logbook if it has op's length; one of another length begins anew.
func (l *logbook) of(op *Op) *logbook {
	if l == nil || l.length != op.length() {
		return nil
	}
	return l
}

// total is what had been counted after n records.
func (l *logbook) total(n int) int64 {
	if n == 0 {
		return l.base
	}
	return l.records[n-1].total
}

// live is the index of the first record that counts at now. Time never goes back.
func (l *logbook) live(now int64) int {
	edge := max(now, l.time) - l.length
	return sort.Search(len(l.records), func(i int) bool { return l.records[i].time > edge })
}

// look tells what counts at now.
func (l *logbook) look(op *Op, now int64) (t logTally) {
	if l = l.of(op); l == nil {
		return t
	}
	first, count := l.live(now), len(l.records)
	if first == count {
		return t
	}
	t.counted, t.newest = l.total(count)-l.total(first), l.records[count-1].time
	if room := op.Max - op.Cost; room >= 0 && t.counted > room {
		i := sort.Search(count, func(i int) bool { return l.total(count)-l.records[i].total <= room })
		t.leaves = l.records[i].time
	}
	return t
}

func (t *logTally) fits(op *Op) bool { return op.Cost <= op.Max && t.counted <= op.Max-op.Cost }

// charge counts op's cost at now, and returns the time under which it is known.
func (l *logbook) charge(op *Op, now int64) int64 {
	if l.of(op) == nil {
		*l = logbook{length: op.length(), records: l.records[:0]}
	}
	first := l.live(now)
	if live := len(l.records) - first; first > live+trimAt {
		l.base = l.total(first)
		l.records = slices.Delete(l.records, 0, first)
	}
	count := len(l.records)
	l.time = max(now, l.time)
	total := l.total(count) + op.Cost
	if count > 0 && l.records[count-1].time == l.time {
		l.records[count-1].total = total
	} else {
		l.records = append(l.records, logRecord{time: l.time, total: total})
	}
	return l.time
}

// settle corrects the record of stamp, if it still counts. It never falls below
// nothing, and a record of nothing is dropped.
func (l *logbook) settle(op *Op, now, stamp, delta int64) {
	if l = l.of(op); l == nil {
		return
	}
	i := sort.Search(len(l.records), func(i int) bool { return l.records[i].time >= stamp })
	if i < l.live(now) || i == len(l.records) || l.records[i].time != stamp {
		return
	}
	units := l.records[i].total - l.total(i)
	delta = max(delta, -units)
	for j := i; j < len(l.records); j++ {
		l.records[j].total += delta
	}
	if units+delta == 0 {
		l.records = slices.Delete(l.records, i, i+1)
	}
}

// state is what is told of the log after the step.
func (t *logTally) state(op *Op, now int64, fits bool) State {
	s := State{
		Fits:      fits,
		Remaining: max(0, op.Max-t.counted),
		Used:      t.counted,
		Stamp:     t.newest,
	}
	if t.newest != 0 {
		s.Reset = micros(t.newest + op.length() - now)
	}
	switch {
	case fits:
	case op.Cost > op.Max:
		s.Wait = Never
	default:
		s.Wait = micros(t.leaves + op.length() - now)
	}
	return s
}
