package limit

import (
	"math/bits"
	"time"
)

const (
	// maxLevel is the level of the largest bucket, in micro-units.
	maxLevel = MaxBurst * Unit
	// minLevel is where debts end: what is owed beyond is forgiven.
	minLevel = -maxLevel
	// maxMicros is where times and products stop growing: the largest integer
	// that a float64 holds together with all below it, 285 years of microseconds.
	maxMicros = 1<<53 - 1
)

// bucket is what a store keeps of a token bucket: its level at one time, and
// the numbers it was written with, at which it fills until it is written again.
// A bucket that is not there is full.
//
// bucket.lua says the same in Lua; the conformance suite holds the two together.
type bucket struct {
	level  int64 // micro-units, minLevel to burst * Unit; below 0 is owed
	time   int64 // microseconds of the store's clock
	refill Refill
	burst  int64 // units
}

// fullBucket is the bucket of a key that nobody has used.
func fullBucket(op *Op, now int64) bucket {
	return bucket{level: op.Burst * Unit, time: now, refill: op.Refill, burst: op.Burst}
}

// held is the level at now, rounded down: never above the bucket's own size, so
// idle time beyond full counts nothing, and never below what was written, so a
// clock that steps back takes nothing and gives nothing.
func (b *bucket) held(now int64) int64 {
	age := now - b.time
	if age <= 0 {
		return b.level
	}
	gain, _ := mulDiv(age, b.refill.Micro, b.refill.Period)
	return b.level + min(gain, b.burst*Unit-b.level)
}

// full tells whether the bucket is full by its own numbers.
func (b *bucket) full(now int64) bool { return b.held(now) == b.burst*Unit }

// adopt brings the bucket under the numbers of op. What it gained until now it
// gained at its own; what it holds is clamped to a smaller size and never filled
// by a larger one. A bucket that is full by its own numbers is the same as one
// never used: it may have been dropped already, and no answer may depend on that.
//
// changed asks for a write even when nothing is charged: the numbers are others,
// and from now on the new ones count. Without it a tenant denied under a slow
// rate would wait at the slow rate after the rate was raised.
func (b bucket) adopt(op *Op, now int64) (adopted bucket, changed bool) {
	held := b.held(now)
	if held == b.burst*Unit {
		return fullBucket(op, max(now, b.time)), false
	}
	if b.refill == op.Refill && b.burst == op.Burst {
		return b, false
	}
	return bucket{level: min(held, op.Burst*Unit), time: max(now, b.time), refill: op.Refill, burst: op.Burst}, true
}

// need is the level at which op fits, in micro-units, for a cost that can ever fit.
func (op *Op) need() int64 { return (op.Cost + op.Reserve) * Unit }

// ahead is how far op may reach into the future for its tokens, in microseconds.
func (op *Op) ahead() int64 {
	if op.Reserve > 0 {
		return 0 // what is reserved is not lent
	}
	return op.MaxWait.Microseconds()
}

// fits tells whether op's cost is there at now, or will be when it is held as
// long as it may be.
func (b *bucket) fits(op *Op, now int64) bool {
	switch ahead := op.ahead(); {
	case op.Cost > op.Burst-op.Reserve:
		return false
	case ahead == 0:
		return b.held(now) >= op.need()
	default:
		return b.held(now+ahead) >= op.need() && b.held(now) >= op.Cost*Unit+minLevel
	}
}

// charge takes op's cost, which fits, and of its Share what is there. It tells how
// many microseconds the answer must be held, and how much of the Share came. The
// fraction of a micro-unit that was under way is the bucket's loss, and time never
// goes back.
func (b *bucket) charge(op *Op, now int64) (delay, share int64) {
	held := b.held(now)
	if op.ahead() > 0 {
		delay = b.until(op.need(), now)
	}
	if op.Share > 0 {
		share = min(op.Share, held/Unit-op.Cost-op.Reserve)
	}
	b.level = held - (op.Cost+share)*Unit
	b.time = max(now, b.time)
	return delay, share
}

// settle takes delta units more, or gives them back, as far as a bucket goes.
func (b *bucket) settle(delta, now int64) {
	b.level = min(max(b.held(now)-delta*Unit, minLevel), b.burst*Unit)
	b.time = max(now, b.time)
}

// until is the time from now until level is held, in microseconds, rounded up;
// 0 when it is. It counts from the last write and not from the rounded level of
// now, so it is exact.
func (b *bucket) until(level, now int64) int64 {
	if b.held(now) >= level {
		return 0
	}
	fill, rest := mulDiv(level-b.level, b.refill.Period, b.refill.Micro)
	if rest {
		fill++
	}
	if fill >= maxMicros {
		return maxMicros
	}
	return min(fill-(now-b.time), maxMicros)
}

// wait is the time from now until op fits, in microseconds: until its cost is
// there, less the time it may be held, and until the debt is small enough.
func (b *bucket) wait(op *Op, now int64) int64 {
	wait := b.until(op.need(), now)
	if wait < maxMicros {
		wait -= op.ahead()
	}
	return max(wait, b.until(op.Cost*Unit+minLevel, now))
}

// state is what is told of the bucket after the step.
func (b *bucket) state(op *Op, now int64, fits bool) State {
	s := State{
		Fits:      fits,
		Remaining: max(0, b.held(now)/Unit-op.Reserve),
		Reset:     micros(b.until(b.burst*Unit, now)),
	}
	switch {
	case fits:
	case op.Cost > op.Burst-op.Reserve:
		s.Wait = Never
	default:
		s.Wait = micros(b.wait(op, now))
	}
	return s
}

// words is what a store keeps of a counter, whatever its kind.
type words [5]int64

func (b *bucket) words() words {
	return words{b.level, b.time, b.refill.Micro, b.refill.Period, b.burst}
}

func bucketOf(w *words) bucket {
	return bucket{level: w[0], time: w[1], refill: Refill{Micro: w[2], Period: w[3]}, burst: w[4]}
}

// micros is a duration of n microseconds, 0 to maxMicros.
func micros(n int64) time.Duration {
	return time.Duration(max(0, min(n, maxMicros))) * time.Microsecond
}

// mulDiv is a*b/c rounded down, at most maxMicros, and whether there was a rest.
// a is not negative, b and c are positive; the product may have 128 bits.
func mulDiv(a, b, c int64) (quotient int64, rest bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi == 0 && lo <= maxMicros { // most are small, and divide faster
		q := int64(lo) / c
		return q, q*c != int64(lo)
	}
	if hi >= uint64(c) {
		return maxMicros, false
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if q > maxMicros {
		return maxMicros, false
	}
	return int64(q), r != 0
}
