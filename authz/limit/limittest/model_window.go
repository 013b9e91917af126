package limittest

import (
	"math/big"
	"time"

	"sluice/authz/limit"
)

// modelWindow is a fixed or sliding window: two counters.
type modelWindow struct {
	length      time.Duration
	start       time.Time
	count, last int64
}

func (w modelWindow) roll(op limit.Op, now time.Time) modelWindow {
	start := time.UnixMicro(now.UnixMicro() / op.Length.Microseconds() * op.Length.Microseconds())
	switch {
	case w.length != op.Length:
		return modelWindow{length: op.Length, start: start}
	case !w.start.Before(start):
		return w
	case w.start.Add(op.Length).Equal(start):
		return modelWindow{length: op.Length, start: start, last: w.count}
	}
	return modelWindow{length: op.Length, start: start}
}

// counted is what counts at a time from the window's start to the end of the next
// one, if nobody takes any.
func (w modelWindow) counted(op limit.Op, at time.Time) *big.Int {
	if op.Kind == limit.FixedWindow {
		if at.Before(w.start.Add(w.length)) {
			return big.NewInt(w.count)
		}
		return new(big.Int)
	}
	count, last, start := w.count, w.last, w.start
	if !at.Before(w.start.Add(w.length)) {
		count, last, start = 0, w.count, w.start.Add(w.length)
	}
	inside := w.length - max(0, at.Sub(start))
	part := new(big.Int).Mul(big.NewInt(last), big.NewInt(inside.Microseconds()))
	exact := new(big.Rat).SetFrac(part, big.NewInt(w.length.Microseconds()))
	return ceil(exact).Add(ceil(exact), big.NewInt(count))
}

func (w modelWindow) room(op limit.Op, at time.Time) bool {
	all := new(big.Int).Add(w.counted(op, at), big.NewInt(op.Cost))
	return all.Cmp(big.NewInt(min(op.Max, limit.MaxCount))) <= 0
}

func (w modelWindow) state(op limit.Op, now time.Time) limit.State {
	counted := w.counted(op, now)
	if counted.Cmp(big.NewInt(limit.MaxCount)) > 0 {
		counted.SetInt64(limit.MaxCount)
	}
	end := w.start.Add(w.length)
	if op.Kind == limit.SlidingWindow {
		end = end.Add(w.length)
	}
	s := limit.State{
		Fits:      w.room(op, now),
		Used:      counted.Int64(),
		Remaining: max(0, min(op.Max, limit.MaxCount)-counted.Int64()),
		Reset:     end.Sub(now),
		Stamp:     w.start.UnixMicro(),
	}
	switch {
	case s.Fits:
	case op.Cost > op.Max:
		s.Wait = limit.Never
	default:
		s.Wait = w.wait(op, now, end)
	}
	return s
}

// wait tries times: what counts only falls, so halving finds the first that fits.
func (w modelWindow) wait(op limit.Op, now, end time.Time) time.Duration {
	no, yes := time.Duration(0), end.Sub(now)
	for yes-no > time.Microsecond {
		middle := (no + (yes-no)/2).Truncate(time.Microsecond)
		if w.room(op, now.Add(middle)) {
			yes = middle
		} else {
			no = middle
		}
	}
	return yes
}

// settled corrects the window of the op's stamp, or nothing.
func (w modelWindow) settled(op limit.Op, now time.Time, delta int64) modelWindow {
	if w.length != op.Length || w.start.UnixMicro() < op.Stamp { // nothing was counted there
		return w
	}
	before := w
	w = w.roll(op, now)
	bound := func(n int64) int64 { return min(max(0, n), limit.MaxCount) }
	switch {
	case op.Stamp == w.start.UnixMicro():
		w.count = bound(w.count + delta)
	case op.Stamp == w.start.Add(-w.length).UnixMicro() && op.Kind == limit.SlidingWindow:
		w.last = bound(w.last + delta)
	default:
		return before
	}
	return w
}

// modelLog is a log window: every charge with its time.
type modelLog struct {
	length  time.Duration
	written time.Time
	charges []modelCharge
}

type modelCharge struct {
	at    time.Time
	units int64
}

func (l modelLog) under(op limit.Op) modelLog {
	if l.length != op.Length {
		return modelLog{length: op.Length}
	}
	return l
}

// counted is what was counted after the window before at began.
func (l modelLog) counted(at time.Time) (units int64, newest time.Time) {
	for _, c := range l.charges {
		if c.at.After(later(at, l.written).Add(-l.length)) {
			units += c.units
			newest = later(newest, c.at)
		}
	}
	return units, newest
}

func (l modelLog) charged(op limit.Op, now time.Time) modelLog {
	l.written = later(l.written, now)
	l.charges = append(l.charges[:len(l.charges):len(l.charges)], modelCharge{l.written, op.Cost})
	return l
}

func (l modelLog) state(op limit.Op, now time.Time) limit.State {
	counted, newest := l.counted(now)
	s := limit.State{Fits: counted+op.Cost <= op.Max, Used: counted, Remaining: max(0, op.Max-counted)}
	if !newest.IsZero() {
		s.Stamp, s.Reset = newest.UnixMicro(), newest.Add(l.length).Sub(now)
	}
	if s.Fits {
		return s
	}
	s.Wait = limit.Never
	for i := len(l.charges) - 1; i >= 0 && op.Cost <= op.Max; i-- {
		at := l.charges[i].at.Add(l.length) // when it leaves
		if units, _ := l.counted(at); units+op.Cost > op.Max {
			break
		}
		s.Wait = at.Sub(now)
	}
	return s
}

// settled changes the charges of the op's stamp, and forgets those of nothing.
func (l modelLog) settled(op limit.Op, now time.Time, delta int64) modelLog {
	if l.length != op.Length {
		return l
	}
	var kept []modelCharge
	for i, c := range l.charges {
		same := c.at.UnixMicro() == op.Stamp && c.at.After(later(now, l.written).Add(-l.length))
		first := i == 0 || !l.charges[i-1].at.Equal(c.at)
		switch {
		case same && delta < 0:
			back := min(-delta, c.units)
			c.units -= back
			delta += back
		case same && first:
			c.units += delta
		}
		if c.units > 0 {
			kept = append(kept, c)
		}
	}
	l.charges = kept
	return l
}
