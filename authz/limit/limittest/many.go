package limittest

import (
	"fmt"
	"time"

	"sluice/authz/limit"
)

func allOrNone(b *bench) {
	tight := op("tight", perSecond(1), 1, 1)
	wide := op("wide", perSecond(10), 10, 1)
	other := limit.Op{Tag: []byte("u"), Key: []byte("sluice:{u}:other"), Refill: perSecond(1), Burst: 5, Cost: 2}
	b.want(-1, []limit.State{
		{Fits: true, Remaining: 9, Reset: 100 * time.Millisecond},
		{Fits: true, Remaining: 0, Reset: time.Second},
	}, wide, tight)
	// The refusal of one charges none, wherever it stands and lives.
	for range 3 {
		b.want(1, []limit.State{
			{Fits: true, Remaining: 9, Reset: 100 * time.Millisecond},
			{Remaining: 0, Reset: time.Second, Wait: time.Second},
		}, wide, tight)
		b.want(0, []limit.State{
			{Remaining: 0, Reset: time.Second, Wait: time.Second},
			{Fits: true, Remaining: 5},
		}, tight, other)
	}
}

func longestAnswers(b *bench) {
	slow, quick, same := op("slow", perSecond(1), 2, 2), op("quick", perSecond(4), 2, 2), op("same", perSecond(1), 2, 2)
	b.take(quick, slow, same)
	refused := func(want int, ops ...limit.Op) {
		b.Helper()
		if got, _ := b.take(ops...); got != want {
			b.Errorf("op %d answers, want %d", got, want)
		}
	}
	refused(1, quick, slow)
	refused(0, slow, quick)
	refused(1, quick, slow, same) // of equals the first
	never := op("never", perSecond(1), 2, 3)
	refused(2, quick, slow, never, same)
	refused(0, never, slow)
	slow.Shadow = true
	refused(0, quick, slow)
}

func shadowRefusesNobody(b *bench) {
	enforced := op("enforced", perSecond(1), 2, 1)
	shadow := op("shadow", perSecond(1), 1, 1)
	shadow.Shadow = true
	b.want(-1, []limit.State{
		{Fits: true, Remaining: 0, Reset: time.Second},
		{Fits: true, Remaining: 1, Reset: time.Second},
	}, shadow, enforced)
	// No room: it would deny, is not charged, and the request passes.
	b.want(-1, []limit.State{
		{Reset: time.Second, Wait: time.Second},
		{Fits: true, Remaining: 0, Reset: 2 * time.Second},
	}, shadow, enforced)
	// An enforced one refuses: a shadow with room is not charged.
	room := op("room", perSecond(1), 5, 1)
	room.Shadow = true
	b.want(1, []limit.State{
		{Fits: true, Remaining: 5},
		{Remaining: 0, Reset: 2 * time.Second, Wait: time.Second},
	}, room, enforced)
	// Shadows do not wait for each other.
	b.want(-1, []limit.State{
		{Reset: time.Second, Wait: time.Second},
		{Fits: true, Remaining: 4, Reset: time.Second},
	}, shadow, room)
}

func peekChargesNothing(b *bench) {
	o := op("speed", perSecond(1), 3, 2)
	for range 2 {
		if s := b.peek(o); s != (limit.State{Fits: true, Remaining: 3}) {
			b.Fatalf("of a new key: %+v", s)
		}
	}
	b.fits(o)
	want := limit.State{Remaining: 1, Reset: 2 * time.Second, Wait: time.Second}
	for range 2 {
		if s := b.peek(o); s != want {
			b.Fatalf("got %+v, want %+v", s, want)
		}
	}
	// Not even new numbers are written.
	fast := o
	fast.Refill = perSecond(1000)
	b.peek(fast)
	b.clock.Advance(500 * time.Millisecond)
	want = limit.State{Remaining: 1, Reset: 1500 * time.Millisecond, Wait: 500 * time.Millisecond}
	if s := b.peek(o); s != want {
		b.Fatalf("after a peek with other numbers: %+v, want %+v", s, want)
	}
}

func reloadKeeps(b *bench) {
	o := op("speed", perSecond(1), 10, 6)
	b.fits(o)
	b.clock.Advance(2 * time.Second) // 6 of 10

	// Larger and faster: it holds what it held; the 2 s count at 1/s.
	o.Refill, o.Burst, o.Cost = perSecond(5), 100, 1
	b.want(-1, []limit.State{{Fits: true, Remaining: 5, Reset: 19 * time.Second}}, o)
	b.clock.Advance(time.Second) // 10 of 100

	// Smaller: clamped.
	o.Refill, o.Burst = perSecond(1), 4
	b.want(-1, []limit.State{{Fits: true, Remaining: 3, Reset: time.Second}}, o)
	// And large again: what the clamp took is gone.
	o.Burst = 100
	b.want(-1, []limit.State{{Fits: true, Remaining: 2, Reset: 98 * time.Second}}, o)

	// The size it was written with bounds what it gained.
	b.clock.Advance(10 * time.Second) // 12 of 100
	o.Burst, o.Cost = 13, 12
	b.want(-1, []limit.State{{Fits: true, Remaining: 0, Reset: 13 * time.Second}}, o)
	b.clock.Advance(12 * time.Second) // 12 of 13, a second from full
	o.Burst, o.Cost = 50, 13
	b.want(0, []limit.State{{Remaining: 12, Reset: 38 * time.Second, Wait: time.Second}}, o)

	// A full bucket may have been dropped: it counts as one never used.
	b.clock.Advance(38 * time.Second)
	o.Burst, o.Cost = 60, 60
	b.want(-1, []limit.State{{Fits: true, Remaining: 0, Reset: time.Minute}}, o)
}

// A tenant that is denied at 1/h and gets a better plan waits at the better rate.
func raisedRate(b *bench) {
	o := op("speed", limit.NewRefill(limit.Unit, time.Hour), 1, 1)
	b.fits(o)
	b.clock.Advance(30 * time.Minute)
	o.Refill = perSecond(1)
	b.want(0, []limit.State{{Reset: 500 * time.Millisecond, Wait: 500 * time.Millisecond}}, o)
	b.clock.Advance(500 * time.Millisecond)
	if !b.fits(o) {
		b.Error("the new rate does not count")
	}
}

func clockStepsBack(b *bench) {
	o := op("speed", perSecond(1), 5, 5)
	b.fits(o)
	b.clock.Advance(2 * time.Second)
	o.Cost = 2
	b.want(-1, []limit.State{{Fits: true, Remaining: 0, Reset: 5 * time.Second}}, o)

	// The two seconds come again, and give nothing; the waits include them.
	b.clock.Advance(-2 * time.Second)
	o.Cost = 1
	b.want(0, []limit.State{{Reset: 7 * time.Second, Wait: 3 * time.Second}}, o)
	b.clock.Advance(2 * time.Second)
	b.want(0, []limit.State{{Reset: 5 * time.Second, Wait: time.Second}}, o)
	b.clock.Advance(2 * time.Second)

	// A charge while the clock is behind does not move the bucket's time back.
	b.want(-1, []limit.State{{Fits: true, Remaining: 1, Reset: 4 * time.Second}}, o)
	b.clock.Advance(-time.Minute)
	b.want(-1, []limit.State{{Fits: true, Remaining: 0, Reset: 65 * time.Second}}, o)
	b.clock.Advance(time.Minute)
	b.want(0, []limit.State{{Reset: 5 * time.Second, Wait: time.Second}}, o)
}

func noneAndMany(b *bench) {
	b.want(-1, []limit.State{})
	ops := make([]limit.Op, limit.MaxOps)
	for i := range ops {
		ops[i] = op(fmt.Sprint(i), perSecond(1), 2, 1)
		ops[i].Tag = fmt.Appendf(nil, "t%d", i%7)
	}
	for remaining := range 2 {
		refused, states := b.take(ops...)
		if refused != -1 {
			b.Fatalf("op %d refused", refused)
		}
		for i, s := range states {
			if s.Remaining != int64(1-remaining) {
				b.Fatalf("op %d: %+v", i, s)
			}
		}
	}
	if refused, _ := b.take(ops...); refused != 0 {
		b.Fatalf("op %d refused, want 0", refused)
	}
}
