package limittest

import (
	"math/big"
	"time"

	"sluice/authz/limit"
)

// most is the longest time that is told.
const most = (1<<53 - 1) * time.Microsecond

type modelBucket struct {
	level   *big.Int // micro-units at the time of the last write
	written time.Time
	refill  limit.Refill
	burst   int64
}

// bucket is the bucket under the numbers of op, and whether these are new to it.
func (m *Model) bucket(op limit.Op, now time.Time) (b modelBucket, renumbered bool) {
	b, found := m.buckets[string(op.Key)]
	if !found {
		return modelBucket{level: micro(op.Burst), written: now, refill: op.Refill, burst: op.Burst}, false
	}
	adopted := modelBucket{level: b.at(now), written: later(b.written, now), refill: op.Refill, burst: op.Burst}
	if adopted.level.Cmp(micro(b.burst)) == 0 { // full: as if it had never been used
		adopted.level = micro(op.Burst)
		return adopted, false
	}
	if b.refill == op.Refill && b.burst == op.Burst {
		return b, false
	}
	if adopted.level.Cmp(micro(op.Burst)) > 0 {
		adopted.level = micro(op.Burst)
	}
	return adopted, true
}

// at is the level at now, at the speed that was written.
func (b modelBucket) at(now time.Time) *big.Int {
	age := now.Sub(b.written).Microseconds()
	if age < 0 {
		age = 0
	}
	level := new(big.Int).Mul(big.NewInt(age), big.NewInt(b.refill.Micro))
	level.Div(level, big.NewInt(b.refill.Period))
	level.Add(level, b.level)
	if size := micro(b.burst); level.Cmp(size) > 0 {
		return size
	}
	return level
}

// charged is the bucket when units are taken, or given back if they are below 0.
// It is never above full, and owes no more than a million thousands.
func (b modelBucket) charged(units int64, now time.Time) modelBucket {
	b.level = new(big.Int).Sub(b.at(now), micro(units))
	b.written = later(b.written, now)
	if size := micro(b.burst); b.level.Cmp(size) > 0 {
		b.level = size
	}
	if least := micro(-limit.MaxBurst); b.level.Cmp(least) < 0 {
		b.level = least
	}
	return b
}

func (b modelBucket) state(op limit.Op, now time.Time) limit.State {
	left := new(big.Int).Div(b.at(now), big.NewInt(limit.Unit)).Int64()
	s := limit.State{Remaining: max(0, left-op.Reserve), Reset: b.until(micro(b.burst), now)}
	if op.Cost > op.Burst-op.Reserve {
		s.Wait = limit.Never
		return s
	}
	// It must be there soon enough, and what is owed must not be more than MaxBurst.
	there, hold := b.until(micro(op.Cost+op.Reserve), now), op.MaxWait
	if op.Reserve > 0 {
		hold = 0
	}
	if there < most {
		there = max(0, there-hold)
	}
	s.Wait = max(there, b.until(micro(op.Cost-limit.MaxBurst), now))
	s.Fits = s.Wait == 0
	return s
}

// until is the time from now until level is held: the smallest whole number of
// microseconds after the last write that is enough, less what has passed. No
// time is longer than 285 years.
func (b modelBucket) until(level *big.Int, now time.Time) time.Duration {
	if b.at(now).Cmp(level) >= 0 {
		return 0
	}
	missing := new(big.Int).Sub(level, b.level)
	exact := new(big.Rat).SetFrac(missing.Mul(missing, big.NewInt(b.refill.Period)), big.NewInt(b.refill.Micro))
	micros := ceil(exact)
	if micros.Cmp(big.NewInt(most.Microseconds())) >= 0 {
		return most
	}
	return min(most, time.Duration(micros.Int64()-now.Sub(b.written).Microseconds())*time.Microsecond)
}

func ceil(r *big.Rat) *big.Int {
	quotient, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient
}

func micro(units int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(units), big.NewInt(limit.Unit))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
