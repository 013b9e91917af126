package limittest

import (
	"time"

	"sluice/authz/limit"
)

func remainingCountsDown(b *bench) {
	o := op("speed", perSecond(1), 3, 1)
	b.want(-1, []limit.State{{Fits: true, Remaining: 2, Reset: time.Second}}, o)
	b.want(-1, []limit.State{{Fits: true, Remaining: 1, Reset: 2 * time.Second}}, o)
	b.want(-1, []limit.State{{Fits: true, Remaining: 0, Reset: 3 * time.Second}}, o)
	b.want(0, []limit.State{{Remaining: 0, Reset: 3 * time.Second, Wait: time.Second}}, o)
}

// A call every half second, and one every few milliseconds on a slow bucket: a
// denial must not throw away the part of a token that has come already.
func eagerClient(b *bench) {
	for _, c := range []struct {
		name         string
		refill       limit.Refill
		every, total time.Duration
	}{
		{"half", perSecond(1), 500 * time.Millisecond, 10 * time.Second},
		{"slow", limit.NewRefill(limit.Unit, 7*time.Second), 9 * time.Millisecond, 70*time.Second + 9*time.Millisecond},
	} {
		o := op(c.name, c.refill, 1, 1)
		b.fits(o)
		granted := 0
		for passed := c.every; passed <= c.total; passed += c.every {
			b.clock.Advance(c.every)
			if b.fits(o) {
				granted++
			}
		}
		// 9 ms do not divide 7 s: the token waits for the next call, so one in ten
		// may come after the end.
		if granted < 9 || granted > 10 || (c.name == "half" && granted != 10) {
			b.Errorf("%s: %d grants, want 10", c.name, granted)
		}
	}
}

func idleIsNotCredited(b *bench) {
	o := op("speed", perSecond(10), 10, 10)
	b.fits(o)
	b.clock.Advance(time.Hour)
	if !b.fits(o) {
		b.Fatal("a full bucket refused its burst")
	}
	b.clock.Advance(time.Millisecond)
	if b.fits(o) {
		b.Error("a second burst within a millisecond passed")
	}
}

func neverFits(b *bench) {
	o := op("speed", perSecond(1), 10, 4)
	b.want(-1, []limit.State{{Fits: true, Remaining: 6, Reset: 4 * time.Second}}, o)
	for _, cost := range []int64{11, 50, limit.MaxBurst + 1, 1 << 62} {
		o.Cost = cost
		b.want(0, []limit.State{{Remaining: 6, Reset: 4 * time.Second, Wait: limit.Never}}, o)
	}
}

// Cheap calls and one expensive call: nothing is reserved for it, but its wait is
// the time its own cost takes to come if nobody else takes any, to the
// microsecond.
func waitIsForThisCost(b *bench) {
	cheap := op("speed", limit.NewRefill(3*limit.Unit, 7*time.Second), 10, 1)
	expensive := cheap
	expensive.Cost = 10
	b.fits(expensive)
	for range 20 {
		b.clock.Advance(1234567 * time.Microsecond)
		b.fits(cheap)
		_, states := b.take(expensive)
		wait := states[0].Wait
		if states[0].Fits || wait <= 0 || wait != states[0].Reset {
			b.Fatalf("the expensive call is answered %+v", states[0])
		}
		// Only looking, both sides of the edge.
		b.clock.Advance(wait - time.Microsecond)
		if s := b.peek(expensive); s.Fits || s.Wait != time.Microsecond {
			b.Fatalf("a microsecond before its time: %+v", s)
		}
		b.clock.Advance(time.Microsecond)
		if s := b.peek(expensive); !s.Fits {
			b.Fatalf("at its time: %+v", s)
		}
		b.clock.Advance(-wait)
	}
}

func slowIsRemembered(b *bench) {
	o := op("speed", limit.NewRefill(6*limit.Unit, time.Hour), 3, 1)
	for range 3 {
		if !b.fits(o) {
			b.Fatal("the burst was refused")
		}
	}
	b.clock.Advance(25 * time.Second)
	b.want(0, []limit.State{{
		Reset: 30*time.Minute - 25*time.Second,
		Wait:  10*time.Minute - 25*time.Second,
	}}, o)
}

func zeroDenies(b *bench) {
	o := op("speed", perSecond(1), 0, 1)
	b.want(0, []limit.State{{Wait: limit.Never}}, o)
	b.clock.Advance(time.Hour)
	b.want(0, []limit.State{{Wait: limit.Never}}, o)
}

func exactNumbers(b *bench) {
	// The largest bucket, and one unit of it.
	o := op("large", limit.NewRefill(limit.Unit, time.Second), limit.MaxBurst, 1)
	b.want(-1, []limit.State{{Fits: true, Remaining: limit.MaxBurst - 1, Reset: time.Second}}, o)
	b.clock.Advance(time.Microsecond)
	b.want(-1, []limit.State{{Fits: true, Remaining: limit.MaxBurst - 2, Reset: 1999999 * time.Microsecond}}, o)

	// A tenth of a unit, ten times.
	o = op("tenth", limit.NewRefill(limit.Unit, 10*time.Second), 1, 1)
	b.fits(o)
	for range 10 {
		if b.fits(o) {
			b.Fatal("a part of a unit passed")
		}
		b.clock.Advance(time.Second)
	}
	if !b.fits(o) {
		b.Fatal("ten tenths are not one")
	}

	// 3.99 is 3.
	o = op("floor", perSecond(1), 4, 4)
	b.fits(o)
	b.clock.Advance(3990 * time.Millisecond)
	o.Cost = 1
	if s := b.peek(o); s.Remaining != 3 {
		b.Errorf("remaining is %d, want 3", s.Remaining)
	}

	// The slowest refill of the largest bucket ends where time does.
	o = op("slowest", limit.NewRefill(1, limit.MaxPeriod), limit.MaxBurst, limit.MaxBurst)
	b.fits(o)
	if s := b.peek(o); s.Reset != (1<<53-1)*time.Microsecond || s.Wait != s.Reset {
		b.Errorf("the longest wait is %v, reset %v", s.Wait, s.Reset)
	}

	// Rate and period without a common divisor, beyond 2^53 in the middle.
	o = op("odd", limit.NewRefill(10_000_007*limit.Unit+1, 30*24*time.Hour), 10_000_000, 10_000_000)
	b.fits(o)
	b.clock.Advance(17*24*time.Hour + 3*time.Microsecond)
	o.Cost = 1
	if s := b.peek(o); s.Remaining != 5_666_670 {
		b.Errorf("after 17 of 30 days %d remain, want 5666670", s.Remaining)
	}
}

func wholeKeys(b *bench) {
	refill := perSecond(1)
	keys := []string{
		"sluice:{a:b}:c", "sluice:{a}:b:c", "sluice:{a}:b", "sluice:{a}:b\x00", "sluice:{a}:b\x00\x00",
		"sluice:{a}:b ", "sluice:{a}:B", "sluice:{a}:b\r\n", "sluice:{a}:\xff", "sluice:{a}:\xc3\xbf",
	}
	for _, key := range keys {
		o := limit.Op{Tag: []byte("a"), Key: []byte(key), Refill: refill, Burst: 1, Cost: 1}
		if !b.fits(o) {
			b.Errorf("%q shares its counter with another key", key)
		}
		if b.fits(o) {
			b.Errorf("%q is not counted", key)
		}
	}
}

func exactWaits(b *bench) {
	for name, wait := range map[string]time.Duration{
		"millisecond": time.Millisecond,
		"fifth":       200 * time.Millisecond,
		"second":      1010 * time.Millisecond,
		"days":        40 * 24 * time.Hour,
		"third":       333334 * time.Microsecond,
	} {
		o := op(name, limit.NewRefill(limit.Unit, wait), 1, 1)
		if name == "third" {
			o.Refill = perSecond(3) // rounded up
		}
		b.fits(o)
		b.want(0, []limit.State{{Reset: wait, Wait: wait}}, o)
	}
}

func resetIsFull(b *bench) {
	o := op("speed", perSecond(2), 10, 7)
	b.want(-1, []limit.State{{Fits: true, Remaining: 3, Reset: 3500 * time.Millisecond}}, o)
	b.clock.Advance(time.Second)
	b.want(0, []limit.State{{Remaining: 5, Reset: 2500 * time.Millisecond, Wait: time.Second}}, o)
	b.clock.Advance(2500 * time.Millisecond)
	if s := b.peek(o); s.Reset != 0 || s.Remaining != 10 {
		b.Errorf("when it is full: %+v", s)
	}
}
