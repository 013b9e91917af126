package limittest

import (
	"time"

	"sluice/authz/limit"
)

// window is a window of its own name with the tag "t".
func window(kind limit.Kind, name string, most int64, length time.Duration, cost int64) limit.Op {
	return limit.Op{Tag: []byte("t"), Key: []byte("sluice:{t}:" + name), Kind: kind, Max: most, Length: length, Cost: cost}
}

// at moves the clock to a time after noon of its first day.
func (b *bench) at(d time.Duration) { b.clock.Advance(NewClock().Now().Add(d).Sub(b.clock.Now())) }

// stamp is a time after noon as stores tell it.
func stamp(d time.Duration) int64 { return NewClock().Now().Add(d).UnixMicro() }

func fixedWindow(b *bench) {
	o := window(limit.FixedWindow, "fixed", 5, time.Minute, 2)
	b.at(59 * time.Second)
	b.want(-1, []limit.State{{Fits: true, Remaining: 3, Used: 2, Reset: time.Second, Stamp: stamp(0)}}, o)
	b.want(-1, []limit.State{{Fits: true, Remaining: 1, Used: 4, Reset: time.Second, Stamp: stamp(0)}}, o)
	b.want(0, []limit.State{{Remaining: 1, Used: 4, Reset: time.Second, Wait: time.Second, Stamp: stamp(0)}}, o)
	o.Cost = 6
	b.want(0, []limit.State{{Remaining: 1, Used: 4, Reset: time.Second, Wait: limit.Never, Stamp: stamp(0)}}, o)
	o.Cost = 5
	b.at(time.Minute)
	b.want(-1, []limit.State{{Fits: true, Used: 5, Reset: time.Minute, Stamp: stamp(time.Minute)}}, o)
	// New numbers hold at once, and a lower one leaves nothing below 0.
	o.Max, o.Cost = 3, 1
	b.want(0, []limit.State{{Used: 5, Reset: time.Minute, Wait: time.Minute, Stamp: stamp(time.Minute)}}, o)
	o.Max = 7
	b.want(-1, []limit.State{{Fits: true, Remaining: 1, Used: 6, Reset: time.Minute, Stamp: stamp(time.Minute)}}, o)
	// The clock steps back over the edge: the new window goes on.
	b.at(50 * time.Second)
	b.want(-1, []limit.State{{Fits: true, Remaining: 0, Used: 7, Reset: 70 * time.Second, Stamp: stamp(time.Minute)}}, o)
	o.Max = 0
	b.want(0, []limit.State{{Used: 7, Reset: 70 * time.Second, Wait: limit.Never, Stamp: stamp(time.Minute)}}, o)
}

func slidingWindow(b *bench) {
	o := window(limit.SlidingWindow, "sliding", 10, time.Minute, 10)
	b.at(30 * time.Second)
	b.want(-1, []limit.State{{Fits: true, Used: 10, Reset: 90 * time.Second, Stamp: stamp(0)}}, o)
	o.Cost = 1
	// A unit leaves every 6 s of the next minute.
	b.want(0, []limit.State{{Used: 10, Reset: 90 * time.Second, Wait: 36 * time.Second, Stamp: stamp(0)}}, o)
	o.Cost = 10
	b.want(0, []limit.State{{Used: 10, Reset: 90 * time.Second, Wait: 90 * time.Second, Stamp: stamp(0)}}, o)
	o.Cost = 1
	// What is left of the last window counts rounded up, to the microsecond.
	b.at(66*time.Second - time.Microsecond)
	b.want(0, []limit.State{{Used: 10, Reset: 114*time.Second + time.Microsecond, Wait: time.Microsecond, Stamp: stamp(time.Minute)}}, o)
	b.at(66 * time.Second)
	b.want(-1, []limit.State{{Fits: true, Used: 10, Reset: 114 * time.Second, Stamp: stamp(time.Minute)}}, o)
	o.Cost = 5
	b.at(90 * time.Second)
	b.want(0, []limit.State{{Remaining: 4, Used: 6, Reset: 90 * time.Second, Wait: 6 * time.Second, Stamp: stamp(time.Minute)}}, o)
	// Two minutes later nothing is left.
	b.at(180 * time.Second)
	if s := b.peek(o); s.Used != 0 || s.Remaining != 10 {
		b.Errorf("when all has left: %+v", s)
	}
}

// In any window, wherever it begins, a log lets no more than its number pass, and
// wherever there is room it lets pass.
func logWindow(b *bench) {
	o := window(limit.LogWindow, "log", 3, 10*time.Second, 1)
	for i := range 3 {
		b.at(time.Duration(i) * time.Second)
		b.want(-1, []limit.State{{Fits: true, Remaining: int64(2 - i), Used: int64(i + 1), Reset: 10 * time.Second, Stamp: stamp(time.Duration(i) * time.Second)}}, o)
	}
	b.want(0, []limit.State{{Used: 3, Reset: 10 * time.Second, Wait: 8 * time.Second, Stamp: stamp(2 * time.Second)}}, o)
	o.Cost = 2
	b.want(0, []limit.State{{Used: 3, Reset: 10 * time.Second, Wait: 9 * time.Second, Stamp: stamp(2 * time.Second)}}, o)
	o.Cost = 4
	b.want(0, []limit.State{{Used: 3, Reset: 10 * time.Second, Wait: limit.Never, Stamp: stamp(2 * time.Second)}}, o)
	o.Cost = 1
	b.at(10*time.Second - time.Microsecond)
	b.want(0, []limit.State{{Used: 3, Reset: 2*time.Second + time.Microsecond, Wait: time.Microsecond, Stamp: stamp(2 * time.Second)}}, o)
	b.at(10 * time.Second)
	b.want(-1, []limit.State{{Fits: true, Used: 3, Reset: 10 * time.Second, Stamp: stamp(10 * time.Second)}}, o)
	// Back over what has left: it does not come again, and nothing is forgotten.
	b.at(9 * time.Second)
	b.want(0, []limit.State{{Used: 3, Reset: 11 * time.Second, Wait: 2 * time.Second, Stamp: stamp(10 * time.Second)}}, o)
	b.at(20 * time.Second)
	if s := b.peek(o); s.Used != 0 || s.Reset != 0 || s.Stamp != 0 {
		b.Errorf("when all has left: %+v", s)
	}
}

// The longest log, unit by unit, through its edge.
func longLog(b *bench) {
	o := window(limit.LogWindow, "log", limit.MaxLog, limit.MaxLog*time.Millisecond, 7)
	passed, units := 0, int64(0)
	for i := range 3000 {
		b.at(time.Duration(i) * 5 * time.Millisecond)
		refused, states := b.take(o)
		if refused < 0 {
			passed++
		}
		units = states[0].Used
	}
	// 7 units every 5 ms fill it after 7.14 s; then it frees at 10 s what came first.
	if want := limit.MaxLog/7 + 1000; passed < want-1 || passed > want+1 || units > limit.MaxLog {
		b.Errorf("%d passed, want %d; %d units are counted", passed, want, units)
	}
}
