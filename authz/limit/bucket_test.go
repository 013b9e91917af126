package limit

import (
	"math/big"
	"testing"
	"time"
)

func TestNewRefill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		micro int64
		per   time.Duration
		want  Refill
	}{
		{"a second", 5 * Unit, time.Second, Refill{5, 1}},
		{"the same a minute", 300 * Unit, time.Minute, Refill{5, 1}},
		{"an hour", 6 * Unit, time.Hour, Refill{1, 600}},
		{"no common divisor", 7, 3 * time.Microsecond, Refill{7, 3}},
		{"nanoseconds", 1, 1500 * time.Nanosecond, Refill{2, 3}},
		{"one nanosecond", 3, time.Nanosecond, Refill{3000, 1}},
		{"the slowest", 1, MaxPeriod, Refill{1, 126_489_600_000_000}},
		{"the fastest", maxLevel, time.Microsecond, Refill{maxLevel, 1}},
	} {
		if got := NewRefill(c.micro, c.per); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	for name, f := range map[string]func(){
		"zero (C079)":    func() { NewRefill(0, time.Second) },
		"negative":       func() { NewRefill(-1, time.Second) },
		"no time":        func() { NewRefill(1, 0) },
		"negative time":  func() { NewRefill(1, -time.Second) },
		"too slow":       func() { NewRefill(1, MaxPeriod+time.Microsecond) },
		"too fast":       func() { NewRefill(maxLevel, time.Nanosecond) },
		"far too fast":   func() { NewRefill(1<<62, time.Nanosecond) },
		"large and slow": func() { NewRefill(maxLevel+1, time.Hour) },
	} {
		if !panics(f) {
			t.Errorf("%s: no panic", name)
		}
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

// FuzzBucket holds the arithmetic against integers and fractions without an end.
func FuzzBucket(f *testing.F) {
	f.Add(int64(0), int64(10), int64(5), int64(1), int64(123456), int64(3), int64(0), int64(0))
	f.Add(int64(999_999), int64(MaxBurst), int64(maxLevel), int64(1), int64(1)<<52, int64(MaxBurst), int64(7), int64(0))
	f.Add(int64(1), int64(MaxBurst), int64(1), int64(MaxPeriod/time.Microsecond), int64(maxMicros), int64(1), int64(0), int64(2_000_000))
	f.Add(int64(77), int64(1_000_003), int64(999_999_999_999_989), int64(126_489_599_999_999), int64(86_400_000_001), int64(999), int64(0), int64(250_000))
	f.Add(int64(5), int64(3), int64(7), int64(3), int64(-1_000_000), int64(3), int64(0), int64(1_500_000))
	f.Add(int64(minLevel), int64(MaxBurst), int64(maxLevel), int64(1), int64(0), int64(MaxBurst), int64(0), int64(2_000_000))
	f.Fuzz(func(t *testing.T, level, burst, micro, period, age, cost, reserve, hold int64) {
		burst, cost = fold(burst, 0, MaxBurst), fold(cost, 1, MaxBurst+1)
		level, age = fold(level, minLevel, burst*Unit), fold(age, -maxMicros, maxMicros)
		refill := Refill{Micro: fold(micro, 1, maxLevel), Period: fold(period, 1, int64(MaxPeriod/time.Microsecond))}
		b := bucket{level: level, time: 1000, refill: refill, burst: burst}
		op := Op{Refill: refill, Burst: burst, Cost: cost, Reserve: fold(reserve, 0, burst)}
		op.MaxWait = time.Duration(fold(hold, 0, MaxHold.Microseconds())) * time.Microsecond
		ahead := op.MaxWait.Microseconds()
		if op.Reserve > 0 {
			ahead = 0
		}
		now := b.time + age

		held := bigHeld(b, now)
		if got := b.held(now); big.NewInt(got).Cmp(held) != 0 {
			t.Fatalf("held is %d, want %s", got, held)
		}
		if cost > burst-op.Reserve {
			if s := b.state(&op, now, false); b.fits(&op, now) || s.Wait != Never {
				t.Fatalf("what never fits: %+v", s)
			}
			return
		}
		need := big.NewInt((cost + op.Reserve) * Unit)
		debt := big.NewInt(cost*Unit + minLevel)
		enough := func(at int64) bool {
			return bigHeld(b, at+ahead).Cmp(need) >= 0 && bigHeld(b, at).Cmp(debt) >= 0
		}
		fits := enough(now)
		if b.fits(&op, now) != fits {
			t.Fatalf("fits is %t", !fits)
		}
		s := b.state(&op, now, fits)
		if s.Remaining < 0 || s.Reset < 0 || s.Wait < 0 || (s.Wait == 0) != fits {
			t.Fatalf("state is %+v", s)
		}
		checkEdge(t, s.Reset, func(at int64) bool { return bigHeld(b, now+at).Cmp(big.NewInt(burst*Unit)) >= 0 })
		checkEdge(t, s.Wait, func(at int64) bool { return enough(now + at) })
		if !fits {
			return
		}
		before := b
		delay, _ := b.charge(&op, now)
		if want := new(big.Int).Sub(held, big.NewInt(cost*Unit)); big.NewInt(b.level).Cmp(want) != 0 || b.time < 1000 || b.time < now {
			t.Fatalf("charged: %+v, want level %s", b, want)
		}
		if delay > ahead {
			t.Fatalf("held for %d us, at most %d are allowed", delay, ahead)
		}
		if ahead > 0 {
			checkEdge(t, micros(delay), func(at int64) bool { return bigHeld(before, now+at).Cmp(need) >= 0 })
		}
		b.settle(-cost, now)
		if b.level > burst*Unit || b.level < before.level && b.level < burst*Unit {
			t.Fatalf("given back: %+v, before %+v", b, before)
		}
	})
}

// fold brings any number into a range, and leaves one that is there as it is.
func fold(n, least, most int64) int64 {
	if n >= least && n <= most {
		return n
	}
	return least + int64(uint64(n)%uint64(most-least+1))
}

// bigHeld is level + age*micro/period, at most the size.
func bigHeld(b bucket, now int64) *big.Int {
	gain := new(big.Int).Mul(big.NewInt(max(0, now-b.time)), big.NewInt(b.refill.Micro))
	gain.Div(gain, big.NewInt(b.refill.Period))
	gain.Add(gain, big.NewInt(b.level))
	if size := big.NewInt(b.burst * Unit); gain.Cmp(size) > 0 {
		return size
	}
	return gain
}

// checkEdge wants yes after the wait and not a microsecond before.
func checkEdge(t *testing.T, wait time.Duration, yes func(at int64) bool) {
	t.Helper()
	micros := wait.Microseconds()
	if micros >= maxMicros {
		return // longer than can be said
	}
	if !yes(micros) {
		t.Fatalf("%d us are not enough", micros)
	}
	if micros > 0 && yes(micros-1) {
		t.Fatalf("%d us are too long", micros)
	}
}

// What two passing policies of a deploy write in turn must not stop a bucket.
func TestAdoptInTurnsStillFills(t *testing.T) {
	t.Parallel()
	ops := []Op{
		{Refill: NewRefill(Unit, time.Second), Burst: 1, Cost: 1},
		{Refill: NewRefill(2*Unit, time.Second), Burst: 2, Cost: 1},
	}
	b := bucket{refill: ops[0].Refill, burst: 1}
	for now := int64(0); now <= 1_000_000; now += 100 {
		b, _ = b.adopt(&ops[now/100%2], now)
	}
	if b.level < Unit {
		t.Errorf("after a second at 1/s and 2/s the bucket holds %d micro-units", b.level)
	}
}
