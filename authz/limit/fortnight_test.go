package limit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// fortnight is a load of two weeks on a clock of the test's own.
type fortnight struct {
	op limit.Op
	// allowed is how many units may pass in an interval, at most.
	allowed func(time.Duration) float64
	// rate is how many come in a second in the long run, when more are wanted.
	rate float64
}

// Two weeks at random load, always more than is allowed: in the long run as much
// passes as the limit says, within a thousandth, and no interval sees more than its
// definition. On a Redis the same history would be the same: see TestHistories.
func TestTwoWeeks(t *testing.T) {
	t.Parallel()
	const span = 14 * 24 * time.Hour
	key := func(name string) ([]byte, []byte) { return []byte("acme"), fmt.Appendf(nil, "sluice:{acme}:%s", name) }
	bucket := func(name string, micro int64, per time.Duration, burst int64) fortnight {
		f := fortnight{rate: float64(micro) / limit.Unit / per.Seconds()}
		f.op = limit.Op{Refill: limit.NewRefill(micro, per), Burst: burst}
		f.op.Tag, f.op.Key = key(name)
		f.allowed = func(d time.Duration) float64 { return float64(burst) + f.rate*d.Seconds() }
		return f
	}
	window := func(name string, kind limit.Kind, most int64, length time.Duration, edges float64) fortnight {
		f := fortnight{rate: float64(most) / length.Seconds()}
		f.op = limit.Op{Kind: kind, Max: most, Length: length}
		f.op.Tag, f.op.Key = key(name)
		f.allowed = func(d time.Duration) float64 { return float64(most) * (d.Seconds()/length.Seconds() + edges) }
		return f
	}
	for name, f := range map[string]fortnight{
		"a rate":             bucket("a", 3*limit.Unit/10, time.Second, 20),
		"a slow rate":        bucket("b", 700*limit.Unit, 24*time.Hour, 5),
		"an odd rate":        bucket("c", 1_234_567, 7*time.Second, 50),
		"a fixed window":     window("d", limit.FixedWindow, 100, 10*time.Minute, 2),
		"a log":              window("e", limit.LogWindow, 1000, time.Hour, 1),
		"a sliding window":   window("f", limit.SlidingWindow, 100, 10*time.Minute, 2),
		"a quota of the day": quotaFortnight(key),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := limittest.NewClock()
			store := limit.NewMemory(limit.MemoryOptions{Now: clock.Now})
			rng := rand.New(rand.NewPCG(3, 4))
			begin := clock.Now()
			var grants []fortnightGrant
			passed := int64(0)
			for clock.Now().Sub(begin) < span {
				op := f.op
				op.Cost = 1 + rng.Int64N(3)
				refused, err := store.Take(context.Background(), []limit.Op{op}, make([]limit.State, 1))
				if err != nil {
					t.Fatal(err)
				}
				if refused < 0 {
					passed += op.Cost
					grants = append(grants, fortnightGrant{clock.Now(), passed})
				}
				clock.Advance(time.Duration(rng.ExpFloat64() * float64(time.Second) / f.rate / 4))
			}
			want := f.rate * span.Seconds()
			least, most := 0.999*want, f.allowed(span)
			if f.op.Kind == limit.SlidingWindow {
				least = 0.8 * want // it counts the window before as if it had come evenly, rounded up
			}
			if n := float64(passed); n < least-5 || n > most {
				t.Errorf("%d units passed in two weeks, want %.0f to %.0f", passed, least, most)
			}
			f.hold(t, grants)
		})
	}
}

// quotaFortnight is a quota of a calendar day, in UTC.
func quotaFortnight(key func(string) ([]byte, []byte)) fortnight {
	const most = 10_000
	f := fortnight{rate: most / (24 * time.Hour).Seconds()}
	f.op = limit.Op{Kind: limit.Quota, Max: most, Calendar: limit.NewCalendar(limit.Day, time.UTC, 1)}
	f.op.Tag, f.op.Key = key("g")
	f.allowed = func(d time.Duration) float64 { return most * (d.Hours()/24 + 2) }
	return f
}

// fortnightGrant is a time, and how many units had passed with it.
type fortnightGrant struct {
	at    time.Time
	units int64
}

// hold looks at intervals of many lengths that begin at a grant: none may hold more
// than is allowed.
func (f *fortnight) hold(t *testing.T, grants []fortnightGrant) {
	t.Helper()
	for _, length := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 24 * time.Hour} {
		end := 0
		for i := range grants {
			before := int64(0)
			if i > 0 {
				before = grants[i-1].units
			}
			for end < len(grants) && grants[end].at.Sub(grants[i].at) < length {
				end++
			}
			if n := grants[end-1].units - before; float64(n) > f.allowed(length)+1e-6 {
				t.Errorf("%d units passed within %s from %s, want at most %.2f", n, length, grants[i].at, f.allowed(length))
				return
			}
		}
	}
}
