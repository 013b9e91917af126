package limit

import (
	"fmt"
	"time"
)

// MaxPeriod is the longest period of a Refill, about four years. Up to here
// Redis' Lua multiplies and divides exactly (see muldiv in head.lua).
const MaxPeriod = 4 * 366 * 24 * time.Hour

// Refill is the speed of a token bucket: Micro micro-units every Period
// microseconds. Both are at least 1 and share no divisor (see NewRefill), so
// equal speeds are equal values. Micro is at most MaxBurst times Unit, Period
// at most MaxPeriod.
type Refill struct {
	Micro  int64
	Period int64
}

// NewRefill makes the speed of micro micro-units per duration: 5 units a second
// are NewRefill(5*Unit, time.Second). It is exact for every duration, and
// panics with "BUG:" when a number is not positive or, reduced, beyond the
// range of a Refill: policies are checked before.
func NewRefill(micro int64, per time.Duration) Refill {
	if micro < 1 || per < 1 {
		panic(fmt.Sprintf("BUG: a refill of %d per %s; want both positive", micro, per))
	}
	// A duration counts nanoseconds: what does not divide by 1000 goes to the
	// other side of the fraction.
	period := int64(per)
	scale := 1000 / gcd(period, 1000)
	period = period * scale / 1000
	if micro > maxLevel {
		panic(fmt.Sprintf("BUG: a refill of %d per %s; want at most %d", micro, per, int64(maxLevel)))
	}
	micro *= scale
	divisor := gcd(micro, period)
	r := Refill{Micro: micro / divisor, Period: period / divisor}
	if !r.valid() {
		panic(fmt.Sprintf("BUG: a refill of %d per %s, reduced to %+v, is out of range", micro/scale, per, r))
	}
	return r
}

func (r Refill) valid() bool {
	return r.Micro >= 1 && r.Micro <= maxLevel && r.Period >= 1 && r.Period <= int64(MaxPeriod/time.Microsecond)
}

// over is a part of a speed, rounded up: the units that come in MaxPeriod are
// counted in whole micro-units.
func (r Refill) over(parts int64) Refill {
	if parts <= 1 {
		return r
	}
	if g := gcd(r.Micro, parts); g > 1 {
		r.Micro, parts = r.Micro/g, parts/g
	}
	longest := MaxPeriod.Microseconds()
	if r.Period <= longest/parts {
		r.Period *= parts
		return r
	}
	return Refill{Micro: (r.Micro + parts - 1) / parts, Period: r.Period}.reduced()
}

// reduced is the same speed without a common divisor.
func (r Refill) reduced() Refill {
	g := gcd(r.Micro, r.Period)
	return Refill{Micro: r.Micro / g, Period: r.Period / g}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
