package limittest

import (
	"time"

	"sluice/authz/limit"
)

// settle corrects one op.
func (b *bench) settle(id string, o limit.Op, delta int64) {
	b.Helper()
	if err := b.store.Settle(b.Context(), []byte(id), []limit.Op{o}, []int64{delta}); err != nil {
		b.Fatalf("Settle: %v", err)
	}
}

// reset forgets the counters of ops.
func (b *bench) reset(ops ...limit.Op) {
	b.Helper()
	if err := b.store.Reset(b.Context(), ops); err != nil {
		b.Fatalf("Reset: %v", err)
	}
}

// used wants a look to show so many units used, or left of a bucket.
func (b *bench) used(o limit.Op, used, remaining int64) {
	b.Helper()
	if s := b.peek(o); s.Used != used || s.Remaining != remaining {
		b.Fatalf("%s: %d used and %d left, want %d and %d", o.Key, s.Used, s.Remaining, used, remaining)
	}
}

func settleBucket(b *bench) {
	o := op("bucket", perSecond(1), 10, 1)
	b.fits(o)
	b.settle("", o, 4)
	b.want(-1, []limit.State{{Fits: true, Remaining: 4, Reset: 6 * time.Second}}, o)
	// What it lacks it owes, and denies until that is paid.
	b.settle("", o, 9)
	b.want(0, []limit.State{{Reset: 15 * time.Second, Wait: 6 * time.Second}}, o)
	b.settle("", o, -7)
	b.used(o, 0, 2)
	// Never above full, and a full one stays so.
	b.settle("", o, -limit.MaxBurst)
	b.used(o, 0, 10)
	b.settle("", o, -5)
	b.used(o, 0, 10)
	// Debts end somewhere, and a bucket nobody has used can owe.
	fresh := op("fresh", perSecond(1), 10, 1)
	for range 3 {
		b.settle("", fresh, limit.MaxBurst)
	}
	if s := b.peek(fresh); s.Wait != (limit.MaxBurst+1)*time.Second {
		b.Errorf("the largest debt: %+v", s)
	}
}

func settleWindows(b *bench) {
	for _, kind := range []limit.Kind{limit.FixedWindow, limit.SlidingWindow, limit.LogWindow} {
		o := window(kind, string(rune('a'+kind)), 10, time.Minute, 4)
		b.at(0)
		_, states := b.take(o)
		o.Stamp = states[0].Stamp
		b.clock.Advance(time.Second)
		b.fits(o)
		b.settle("", o, 5)
		b.used(o, 13, 0) // past the end
		if b.fits(o) {
			b.Errorf("kind %d: 4 fitted into a window that is past its end", kind)
		}
		b.settle("", o, -4)
		b.used(o, 9, 1)
		b.settle("", o, -100)
		want := int64(0) // a fixed window is one counter
		if kind == limit.LogWindow {
			want = 4 // a log knows what came when
		}
		b.used(o, want, 10-want)
		b.settle("", o, -100)
		b.used(o, want, 10-want)
		// Of a window that is over nothing comes back.
		b.at(3 * time.Minute)
		b.fits(o)
		b.settle("", o, -4)
		b.used(o, 4, 6)
	}
	// The last window still counts in part, and so does its correction.
	o := window(limit.SlidingWindow, "last", 10, time.Minute, 10)
	b.at(10 * time.Minute)
	_, states := b.take(o)
	o.Stamp = states[0].Stamp
	b.at(11*time.Minute + 30*time.Second)
	b.used(o, 5, 5)
	b.settle("", o, -6)
	b.used(o, 2, 8)
}

// A correction goes past the end of a quota as what was used, and not as overage,
// which is billed; a refund takes back first what came last.
func settleQuota(b *bench) {
	o := daily("settled", 10, 8)
	o.Overage = 3
	_, states := b.take(o)
	o.Stamp = states[0].Stamp
	want := func(used, over int64) {
		b.Helper()
		if s := b.peek(o); s.Used != used || s.Over != over {
			b.Fatalf("%d used, %d over; want %d and %d", s.Used, s.Over, used, over)
		}
	}
	b.settle("", o, 4)
	want(12, 2)
	b.settle("", o, 6)
	want(18, 3)
	b.used(o, 18, 0)
	b.settle("", o, -5)
	want(13, 3)
	b.settle("", o, -2)
	want(11, 1)
	b.settle("", o, -100)
	want(0, 0)
	// Tomorrow has nothing to do with it.
	b.at(noon)
	b.fits(o)
	b.settle("", o, -8)
	b.settle("", o, 8)
	want(8, 0)
}

// A refund that arrives twice gives once.
func settleOnce(b *bench) {
	quota, rate, job := daily("once", 100, 50), op("rate", limit.NewRefill(1, time.Hour), 100, 50), lease("job", 1)
	_, states := b.take(quota, rate, job)
	quota.Stamp = states[0].Stamp
	ops, deltas := []limit.Op{quota, rate, job}, []int64{-10, -20, 0}
	for range 3 {
		if err := b.store.Settle(b.Context(), []byte("request 7"), ops, deltas); err != nil {
			b.Fatal(err)
		}
		b.used(quota, 40, 60)
		b.used(rate, 0, 70)
		b.used(job, 0, 1)
	}
	b.settle("request 8", quota, -10)
	b.used(quota, 30, 70)
	b.clock.Advance(limit.Remember - time.Microsecond)
	b.settle("request 8", quota, -10)
	b.used(quota, 30, 70)
	b.clock.Advance(time.Microsecond)
	b.settle("request 8", quota, -10)
	b.used(quota, 20, 80)
}

func resetForgets(b *bench) {
	ops := []limit.Op{
		op("rate", perSecond(1), 5, 5), window(limit.FixedWindow, "fixed", 5, time.Hour, 5),
		window(limit.SlidingWindow, "sliding", 5, time.Hour, 5), window(limit.LogWindow, "log", 5, time.Hour, 5),
		daily("quota", 5, 5), lease("one", 1),
	}
	for range 2 {
		before := make([]limit.State, len(ops))
		if err := b.store.Peek(b.Context(), ops, before); err != nil {
			b.Fatal(err)
		}
		if refused, _ := b.take(ops...); refused != -1 {
			b.Fatalf("op %d refused", refused)
		}
		if s := b.peek(ops[4]); s.Fits {
			b.Fatalf("a used quota: %+v", s)
		}
		b.reset(ops...)
		for i := range ops {
			if s := b.peek(ops[i]); s != before[i] {
				b.Errorf("%s after a reset: %+v, before %+v", ops[i].Key, s, before[i])
			}
		}
	}
	b.reset()
}

// All kinds in one decision: what one refuses no other has cost, whichever it is.
func allKinds(b *bench) {
	ops := []limit.Op{
		op("rate", limit.NewRefill(1, time.Hour), 10, 2), window(limit.FixedWindow, "fixed", 10, 24*time.Hour, 2),
		window(limit.SlidingWindow, "sliding", 10, 24*time.Hour, 2), window(limit.LogWindow, "log", 10, 24*time.Hour, 2),
		daily("quota", 10, 2), lease("one", 10),
	}
	b.at(-noon)
	for i := range ops {
		refusing := ops[i]
		refusing.Key = append([]byte("sluice:{t}:no:"), refusing.Key...)
		refusing.Max, refusing.Burst = 0, 0
		refused, states := b.take(append(ops[:len(ops):len(ops)], refusing)...)
		if refused != len(ops) {
			b.Fatalf("op %d refused, want the last: %+v", refused, states)
		}
		for j := range ops {
			if s := states[j]; !s.Fits || s.Remaining != 10 || s.Used != 0 {
				b.Errorf("a refusal by kind %d charged kind %d: %+v", ops[i].Kind, ops[j].Kind, s)
			}
		}
		refusing.Shadow = true
		if refused, _ := b.take(append([]limit.Op{refusing}, ops...)...); refused != -1 {
			b.Fatalf("a shadow of kind %d refused", ops[i].Kind)
		}
		b.reset(ops...)
	}
}
