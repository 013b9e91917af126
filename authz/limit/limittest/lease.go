package limittest

import (
	"fmt"
	"time"

	"sluice/authz/limit"
)

// lease is a concurrency limit with the tag "t".
func lease(id string, most int64) limit.Op {
	return limit.Op{
		Tag: []byte("t"), Key: []byte("sluice:{t}:jobs"), Kind: limit.Concurrency,
		Max: most, Length: 2 * time.Minute, Cost: 1, ID: []byte(id),
	}
}

func leases(b *bench) {
	b.want(-1, []limit.State{{Fits: true, Remaining: 1, Used: 1}}, lease("a", 2))
	b.clock.Advance(time.Minute)
	b.want(-1, []limit.State{{Fits: true, Used: 2}}, lease("b", 2))
	b.want(0, []limit.State{{Used: 2, Wait: time.Second}}, lease("c", 2))
	// Who holds one takes no second, and does not hold it longer.
	b.want(-1, []limit.State{{Fits: true, Used: 2}}, lease("a", 2))
	b.clock.Advance(time.Minute - time.Microsecond)
	b.want(0, []limit.State{{Used: 2, Wait: time.Second}}, lease("c", 2))
	b.clock.Advance(time.Microsecond)
	b.want(-1, []limit.State{{Fits: true, Used: 2}}, lease("c", 2))
	// Given back, once and again.
	for range 2 {
		b.settle("", lease("b", 2), 0)
	}
	b.settle("", lease("nobody", 2), 0)
	b.want(-1, []limit.State{{Fits: true, Used: 2}}, lease("d", 2))
	// A lower number takes nobody's lease, and 0 is for ever.
	b.want(0, []limit.State{{Used: 2, Wait: time.Second}}, lease("e", 1))
	b.want(0, []limit.State{{Used: 2, Wait: limit.Never}}, lease("e", 0))
	b.want(-1, []limit.State{{Fits: true, Used: 2}}, lease("d", 0))
	b.reset(lease("d", 2))
	b.want(-1, []limit.State{{Fits: true, Remaining: 1, Used: 1}}, lease("e", 2))
}

// A longer lease of before a reload outlives shorter ones.
func leaseLengths(b *bench) {
	long := lease("long", 3)
	long.Length = time.Hour
	b.fits(long)
	for i := range 5 {
		short := lease(fmt.Sprint("short ", i), 3)
		short.Length = time.Second
		b.want(-1, []limit.State{{Fits: true, Remaining: 1, Used: 2}}, short)
		b.clock.Advance(time.Minute)
	}
	if s := b.peek(lease("x", 3)); s.Used != 1 {
		b.Errorf("%+v, want the long lease alone", s)
	}
}

func throttle(b *bench) {
	o := op("held", perSecond(10), 5, 5)
	o.MaxWait = 250 * time.Millisecond
	b.want(-1, []limit.State{{Fits: true, Reset: 500 * time.Millisecond}}, o)
	o.Cost = 1
	b.want(-1, []limit.State{{Fits: true, Reset: 600 * time.Millisecond, Delay: 100 * time.Millisecond}}, o)
	b.want(-1, []limit.State{{Fits: true, Reset: 700 * time.Millisecond, Delay: 200 * time.Millisecond}}, o)
	// A third would be held for 300 ms: it is refused at once, and has cost nothing.
	b.want(0, []limit.State{{Reset: 700 * time.Millisecond, Wait: 50 * time.Millisecond}}, o)
	b.clock.Advance(50*time.Millisecond - time.Microsecond)
	b.want(0, []limit.State{{Reset: 650*time.Millisecond + time.Microsecond, Wait: time.Microsecond}}, o)
	b.clock.Advance(time.Microsecond)
	b.want(-1, []limit.State{{Fits: true, Reset: 750 * time.Millisecond, Delay: 250 * time.Millisecond}}, o)
	// Nobody who may not be held gets what is owed.
	o.MaxWait = 0
	b.want(0, []limit.State{{Reset: 750 * time.Millisecond, Wait: 350 * time.Millisecond}}, o)
	// Another limit refuses: nothing is taken ahead.
	o.MaxWait = 2 * time.Second
	if _, states := b.take(o, op("none", perSecond(1), 0, 1)); !states[0].Fits || states[0].Delay != 0 || states[0].Reset != 750*time.Millisecond {
		b.Errorf("beside a refusal: %+v", states[0])
	}
	// A cost above the burst never fits, however long it may be held.
	o.Cost = 6
	if s := b.peek(o); s.Fits || s.Wait != limit.Never {
		b.Errorf("a cost above the burst: %+v", s)
	}
	// While the clock is behind, the wait is longer, and too long.
	o.Cost, o.MaxWait = 1, 400*time.Millisecond
	b.clock.Advance(-time.Second)
	b.want(0, []limit.State{{Reset: 1750 * time.Millisecond, Wait: 950 * time.Millisecond}}, o)
}

// Lower priorities leave 20 % of the bucket to the high one.
func reserve(b *bench) {
	low, high := op("shared", perSecond(1), 10, 3), op("shared", perSecond(1), 10, 3)
	low.Reserve = 2
	low.MaxWait = time.Second // what is reserved is not lent
	b.want(-1, []limit.State{{Fits: true, Remaining: 5, Reset: 3 * time.Second}}, low)
	b.want(-1, []limit.State{{Fits: true, Remaining: 2, Reset: 6 * time.Second}}, low)
	b.want(0, []limit.State{{Remaining: 2, Reset: 6 * time.Second, Wait: time.Second}}, low)
	b.want(-1, []limit.State{{Fits: true, Remaining: 1, Reset: 9 * time.Second}}, high)
	b.want(0, []limit.State{{Remaining: 0, Reset: 9 * time.Second, Wait: 4 * time.Second}}, low)
	low.Cost = 9
	b.want(0, []limit.State{{Remaining: 0, Reset: 9 * time.Second, Wait: limit.Never}}, low)
}

// A retry costs one of the budget, whatever the other limits say.
func retryBudget(b *bench) {
	budget := op("retries", limit.NewRefill(60*limit.Unit, time.Minute), 3, 1)
	budget.Kind = limit.Retries
	none := op("none", perSecond(1), 0, 1)
	other := daily("other", 10, 1)
	for i := range 3 {
		refused, states := b.take(none, budget, other)
		if refused != 0 || states[1].Remaining != int64(2-i) || states[2].Used != 0 {
			b.Fatalf("retry %d: op %d refused, %+v", i, refused, states)
		}
	}
	refused, states := b.take(budget, other)
	if refused != 0 || states[0].Wait != time.Second || states[1].Used != 0 {
		b.Fatalf("beyond the budget: op %d refused, %+v", refused, states)
	}
}
