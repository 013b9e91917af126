package limit

import (
	"math/big"
	"testing"
	"time"
)

// FuzzWindow holds the arithmetic of windows against integers without an end.
func FuzzWindow(f *testing.F) {
	f.Add(int64(10), int64(0), int64(60_000_000), int64(66_000_000), int64(10), int64(1), true)
	f.Add(int64(MaxCount), int64(MaxCount), int64(MaxPeriod/time.Microsecond), int64(1)<<52, int64(MaxCount), int64(MaxCount), true)
	f.Add(int64(7), int64(3), int64(1000), int64(-5), int64(9), int64(2), true)
	f.Add(int64(1), int64(999_999_937), int64(86_400_000_000), int64(12_345_678_901), int64(1_000_000_000), int64(5), true)
	f.Add(int64(3), int64(3), int64(1_000_000), int64(999_999), int64(5), int64(5), false)
	f.Fuzz(func(t *testing.T, last, count, length, elapsed, most, cost int64, sliding bool) {
		length = fold(length, 1000, int64(MaxPeriod/time.Microsecond))
		op := Op{Kind: FixedWindow, Length: time.Duration(length) * time.Microsecond, Max: fold(most, 0, MaxCount), Cost: fold(cost, 1, MaxCount)}
		if sliding {
			op.Kind = SlidingWindow
		}
		w := window{start: 5 * length, length: length, last: fold(last, 0, MaxCount), count: fold(count, 0, MaxCount)}
		now := w.start + fold(elapsed, -length, length-1)

		fits := bigRoom(&op, w, now)
		if w.fits(&op, now) != fits {
			t.Fatalf("fits is %t", !fits)
		}
		s := w.state(&op, now, fits)
		if s.Used < 0 || s.Remaining < 0 || s.Reset < 0 || (s.Wait == 0) != fits || (s.Wait == Never) != (op.Cost > op.Max) {
			t.Fatalf("state is %+v", s)
		}
		if s.Wait <= 0 {
			return
		}
		// When it has waited it fits, and not a microsecond before.
		then := now + s.Wait.Microseconds()
		if rolled := w.roll(&op, then); !bigRoom(&op, rolled, then) {
			t.Fatalf("after %v it does not fit: %+v", s.Wait, rolled)
		}
		if rolled := w.roll(&op, then-1); bigRoom(&op, rolled, then-1) {
			t.Fatalf("%v is too long: %+v", s.Wait, rolled)
		}
	})
}

// bigRoom is last * inside / length, rounded up, + count + cost <= max.
func bigRoom(op *Op, w window, now int64) bool {
	sum := new(big.Int)
	if op.Kind == SlidingWindow {
		inside := w.length - max(0, now-w.start)
		sum.Mul(big.NewInt(w.last), big.NewInt(inside))
		rest := new(big.Int)
		sum.QuoRem(sum, big.NewInt(w.length), rest)
		if rest.Sign() > 0 {
			sum.Add(sum, big.NewInt(1))
		}
	}
	sum.Add(sum, big.NewInt(w.count))
	return sum.Add(sum, big.NewInt(op.Cost)).Cmp(big.NewInt(op.Max)) <= 0
}

// FuzzLogbook holds searches and running totals against a list of charges.
func FuzzLogbook(f *testing.F) {
	f.Add([]byte{1, 1, 0, 2, 3, 1, 50, 9, 2, 0, 1, 3, 100, 2, 1, 0, 0, 0}, uint8(5))
	f.Add([]byte{0, 9, 0, 0, 9, 0, 0, 1, 2, 255, 1, 0, 10, 5, 1}, uint8(20))
	f.Fuzz(func(t *testing.T, steps []byte, most uint8) {
		type charge struct{ time, units int64 }
		var l *logbook
		var plain []charge
		now, latest, total := int64(1_000_000), int64(0), int64(0)
		for ; len(steps) >= 3; steps = steps[3:] {
			now += int64(int8(steps[0])) * 100
			op := Op{Kind: LogWindow, Max: int64(most), Cost: int64(steps[1]) + 1, Length: 5 * time.Millisecond}
			counted := int64(0)
			for _, c := range plain {
				if c.time > max(now, latest)-5000 {
					counted += c.units
				}
			}
			tally := l.look(&op, now)
			if tally.counted != counted || tally.fits(&op) != (counted+op.Cost <= op.Max) {
				t.Fatalf("%d are counted, want %d", tally.counted, counted)
			}
			switch {
			case steps[2]%3 != 0 && tally.fits(&op):
				if l == nil {
					l = new(logbook)
				}
				latest = l.charge(&op, now)
				plain = append(plain, charge{latest, op.Cost})
				total += op.Cost
			case steps[2]%3 == 0 && len(plain) > 0: // all of one time comes back
				stamp := plain[int(steps[2])%len(plain)].time
				l.settle(&op, now, stamp, -1000)
				for i := range plain {
					if plain[i].time == stamp && stamp > max(now, latest)-5000 {
						plain[i].units = 0
					}
				}
			}
			if l != nil && len(l.records) > 2*int(most)+2*trimAt {
				t.Fatalf("%d records for a log of %d", len(l.records), most)
			}
		}
	})
}

// FuzzQuota holds what a quota adds up against two counters kept apart, and wants
// charges to add up whatever numbers come in between.
func FuzzQuota(f *testing.F) {
	f.Add(int64(8), int64(2), int64(10), int64(5), int64(4), int64(-3))
	f.Add(int64(MaxCount), int64(MaxCount), Unlimited, int64(0), int64(MaxCount), int64(MaxBurst))
	f.Add(int64(0), int64(0), int64(0), int64(0), int64(1), int64(-1))
	f.Add(int64(100), int64(0), int64(50), int64(1)<<62, int64(7), int64(-60))
	f.Fuzz(func(t *testing.T, used, over, most, overage, cost, delta int64) {
		op := Op{Kind: Quota, Max: fold(most, 0, Unlimited), Overage: fold(overage, 0, Unlimited), Cost: fold(cost, 1, Unlimited)}
		q := quota{start: 1, end: 2, used: fold(used, 0, MaxCount)}
		q.over = fold(over, 0, q.used)
		before := q
		fits := q.fits(&op)
		s := q.state(&op, 1, fits)
		if s.Remaining < 0 || (s.Wait == 0) != fits {
			t.Fatalf("state is %+v", s)
		}
		room := new(big.Int).SetInt64(max(0, op.max()-q.inside()))
		room.Add(room, big.NewInt(max(0, op.overage()-q.over)))
		want := op.Max == Unlimited || room.Cmp(big.NewInt(op.Cost)) >= 0
		if fits != want {
			t.Fatalf("%+v fits %t, want %t", q, fits, want)
		}
		if fits {
			q.charge(&op)
			if q.used != min(before.used+min(op.Cost, MaxCount), MaxCount) || q.over < before.over || q.over > q.used {
				t.Fatalf("charged: %+v, before %+v", q, before)
			}
			if op.Max != Unlimited && (q.over > max(before.over, op.overage()) || q.inside() > max(before.inside(), op.max())) {
				t.Fatalf("charged past an end: %+v, before %+v", q, before)
			}
		}
		delta = fold(delta, -MaxBurst, MaxBurst)
		before = q
		if !q.settle(&op, 1, delta) || q.used != min(max(0, before.used+delta), MaxCount) || q.over < 0 || q.over > q.used {
			t.Fatalf("settled by %d: %+v, before %+v", delta, q, before)
		}
		if delta > 0 && q.over > max(before.over, op.overage()) {
			t.Fatalf("a correction was counted as overage nobody bought: %+v, before %+v", q, before)
		}
		if again := q; again.settle(&op, 2, delta) || again != q {
			t.Fatalf("another period was settled: %+v", again)
		}
	})
}
