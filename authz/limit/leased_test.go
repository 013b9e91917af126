package limit_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// hot is a leased rate that everybody shares.
func hot(perSecond, burst, cost int64) limit.Op {
	return limit.Op{Tag: []byte("all"), Key: []byte("sluice:{all}:hot"), Refill: limit.NewRefill(perSecond*limit.Unit, time.Second), Burst: burst, Cost: cost, Leased: true}
}

func newLeased(t testing.TB, inner limit.Store, o limit.LeasedOptions) *limit.Leased {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second // a loaded machine is no reason to fail
	}
	l := limit.NewLeased(inner, o)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// admission is units that passed at some time between two.
type admission struct {
	from, till time.Time
	units      int64
}

// within fails unless no interval T has seen more than burst + rate x T. Of an
// admission it is only known between which times it was: an interval is sure to have
// seen those that are all inside.
func within(t testing.TB, all []admission, perSecond, burst int64) {
	t.Helper()
	byEnd := slices.SortedFunc(slices.Values(all), func(a, b admission) int { return a.till.Compare(b.till) })
	byStart := slices.SortedFunc(slices.Values(all), func(a, b admission) int { return a.from.Compare(b.from) })
	for i := 0; i < len(byStart); i += 1 + len(byStart)/300 {
		begin, sum := byStart[i].from, int64(0)
		for _, a := range byEnd {
			if a.from.Before(begin) {
				continue
			}
			sum += a.units
			if most := float64(burst) + float64(perSecond)*a.till.Sub(begin).Seconds(); float64(sum) > most {
				t.Fatalf("%v saw %d units, want at most %.1f", a.till.Sub(begin), sum, most)
			}
		}
	}
}

func total(all []admission) (sum int64) {
	for _, a := range all {
		sum += a.units
	}
	return sum
}

// TestLeasedFacts holds the numbers against DESIGN 5.13.
func TestLeasedFacts(t *testing.T) {
	t.Parallel()
	f := func(perSecond, burst, shared, largest int64, life time.Duration) {
		t.Helper()
		op := hot(perSecond, burst, 1)
		if s, n, l := limit.SharedBurst(&op), limit.LargestShare(&op), limit.ShareLife(&op); s != shared || n != largest || l != life {
			t.Errorf("%d/s, burst %d: shared %d, largest %d, life %v; want %d, %d, %v", perSecond, burst, s, n, l, shared, largest, life)
		}
	}
	f(2000, 4000, 3800, 200, 100*time.Millisecond)
	f(1000, 100, 95, 5, 5*time.Millisecond)
	f(1, 1000, 950, 50, time.Second)
	f(3, 10, 9, 0, 166666*time.Microsecond)
	f(1, 0, 0, 0, 0)
	f(1, 1, 0, 0, 50*time.Millisecond)
}

// TestLeasedBound lets eight instances spend on a virtual clock for as long as it
// takes to see the refill behind held shares: idle and stormy times, weighted costs
// and two priorities, decisions that another limit refuses, and instances that die
// with what they hold.
func TestLeasedBound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 20261201))
		clock := limittest.NewClock()
		inner := newFlaky()
		inner.Store = limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace})
		open := func() *limit.Leased { return newLeased(t, inner, limit.LeasedOptions{Now: clock.Now}) }
		var instances []*limit.Leased
		for range 8 {
			instances = append(instances, open())
		}
		perSecond, burst := []int64{50, 400, 2000}[rng.IntN(3)], []int64{100, 1000}[rng.IntN(2)]
		nothing := limit.Op{Tag: []byte("all"), Key: []byte("sluice:{all}:nothing"), Refill: limit.NewRefill(1, time.Hour), Cost: 1}
		var all []admission
		storm := 1
		for range 20_000 {
			if rng.IntN(400) == 0 {
				storm = 1 + rng.IntN(30)
			}
			if rng.IntN(2000) == 0 {
				clock.Advance(time.Duration(rng.IntN(3000)) * time.Millisecond)
			}
			if rng.IntN(1000) == 0 {
				instances[rng.IntN(8)] = open() // the other one died
			}
			clock.Advance(time.Duration(rng.Int64N(2*int64(time.Second)/perSecond/int64(storm)+1)) / time.Microsecond * time.Microsecond)
			op := hot(perSecond, burst, 1)
			if rng.IntN(4) == 0 {
				op.Cost = 1 + rng.Int64N(9)
			}
			if rng.IntN(3) == 0 {
				op.Reserve = burst / 5
			}
			ops := []limit.Op{op}
			refusedByOther := rng.IntN(10) == 0
			if refusedByOther {
				ops = append(ops, nothing)
			}
			now := clock.Now()
			refused, err := instances[rng.IntN(8)].Take(t.Context(), ops, make([]limit.State, len(ops)))
			if err != nil {
				t.Fatal(err)
			}
			if refused < 0 {
				all = append(all, admission{now, now, op.Cost})
			}
			if refused < 0 == refusedByOther && refusedByOther {
				t.Fatal("a limit of nothing let pass")
			}
		}
		within(t, all, perSecond, burst)
		if len(all) < 1000 {
			t.Errorf("seed %d: only %d passed", seed, len(all))
		}
		if calls := inner.takes.Load(); calls > 18_000 {
			t.Errorf("seed %d: %d calls for 20,000 decisions", seed, calls)
		}
	}
}

// TestLeasedAlone asks nobody most of the time, and lets pass what the rate lets
// pass in the long run, however much more is wanted.
func TestLeasedAlone(t *testing.T) {
	t.Parallel()
	for _, overload := range []int64{1, 5} {
		clock := limittest.NewClock()
		inner := newFlaky()
		inner.Store = limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace})
		l := newLeased(t, inner, limit.LeasedOptions{Now: clock.Now})
		const seconds, perSecond = 20, 2000
		passed, asked := int64(0), perSecond*seconds*overload
		for range asked {
			clock.Advance(time.Second / perSecond / time.Duration(overload))
			if takeOne(t, l, hot(perSecond, 4000, 1)).Fits {
				passed++
			}
		}
		if passed < perSecond*seconds*99/100 || passed > 4000+perSecond*seconds {
			t.Errorf("%d times the rate: %d passed in %d s", overload, passed, seconds)
		}
		if calls := inner.takes.Load(); calls*20 > asked {
			t.Errorf("%d times the rate: %d calls for %d decisions, want at most 0.05 each", overload, calls, asked)
		}
	}
}

// TestLeasedRefusals: what one cannot have others may, and waits say when.
func TestLeasedRefusals(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	inner := newFlaky()
	inner.Store = limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace})
	l := newLeased(t, inner, limit.LeasedOptions{Now: clock.Now})
	if s := takeOne(t, l, hot(10, 100, 96)); s.Fits || s.Wait != limit.Never {
		t.Errorf("more than the shared bucket holds: %+v", s)
	}
	l = newLeased(t, inner, limit.LeasedOptions{Now: clock.Now})
	if s := takeOne(t, l, hot(10, 100, 65)); !s.Fits || s.Remaining != 30 {
		t.Errorf("65 of 95: %+v", s)
	}
	if s := takeOne(t, l, hot(10, 100, 40)); s.Fits || s.Wait != time.Second || s.Remaining != 30 {
		t.Errorf("40 of 30: %+v", s)
	}
	calls := inner.takes.Load()
	if s := takeOne(t, l, hot(10, 100, 40)); s.Fits || s.Wait != time.Second {
		t.Errorf("40 of 30 again: %+v", s)
	}
	if inner.takes.Load() != calls {
		t.Error("what is known was asked again")
	}
	if s := takeOne(t, l, hot(10, 100, 1)); !s.Fits {
		t.Errorf("1 of 30: %+v", s)
	}
	high, low := hot(10, 100, 1), hot(10, 100, 1)
	low.Reserve = 90
	if s := takeOne(t, l, low); s.Fits {
		t.Errorf("low priority was lent what is reserved: %+v", s)
	}
	if s := takeOne(t, l, high); !s.Fits {
		t.Errorf("high priority: %+v", s)
	}
	clock.Advance(time.Minute)
	if s := takeOne(t, l, low); !s.Fits {
		t.Errorf("low priority, later: %+v", s)
	}
}

// TestLeasedVoid has a share that others may not see: it is void after its life, by
// other numbers and by a reset, and not by a refusal of another limit.
func TestLeasedVoid(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	inner := newFlaky()
	inner.Store = limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace})
	var l *limit.Leased
	op := hot(1000, 1000, 1) // a share is 50 units and lives for 50 ms
	held := func() int64 {
		shared := op
		shared.Burst = limit.SharedBurst(&op)
		return peekOne(t, l, op).Remaining - peekOne(t, inner, shared).Remaining
	}
	fill := func() {
		l = newLeased(t, inner, limit.LeasedOptions{Now: clock.Now})
		for range 10_000 {
			clock.Advance(time.Millisecond)
			if takeOne(t, l, op); held() >= 10 {
				return
			}
		}
		t.Fatal("nothing is held after 10,000 requests")
	}
	// Without its store it has only what it holds.
	spends := func(op limit.Op) bool {
		inner.away.Store(true)
		defer inner.away.Store(false)
		_, err := l.Take(t.Context(), []limit.Op{op}, make([]limit.State, 1))
		return err == nil
	}
	fill()
	if !spends(op) {
		t.Error("nothing was spent of what is held")
	}
	fill()
	empty := limit.Op{Tag: op.Tag, Key: []byte("sluice:{all}:empty"), Refill: limit.NewRefill(1, time.Hour), Cost: 1}
	for range 100 {
		if refused, err := l.Take(t.Context(), []limit.Op{op, empty}, make([]limit.State, 2)); refused != 1 || err != nil {
			t.Fatalf("refused %d, %v", refused, err)
		}
	}
	if held() < 10 {
		t.Errorf("%d are held after 100 refusals of another limit, want 10", held())
	}
	inner.away.Store(true)
	clock.Advance(51 * time.Millisecond)
	if spends(op) {
		t.Error("a share was spent after its life")
	}
	fill()
	other := op
	other.Burst = 500
	if spends(other) || spends(op) {
		t.Error("a share was spent under other numbers")
	}
	fill()
	if err := l.Reset(t.Context(), []limit.Op{op}); err != nil {
		t.Fatal(err)
	}
	if spends(op) {
		t.Error("a share was spent after a reset")
	}
}

// TestLeasedAway: what is held may be spent while the store is away, and no more.
func TestLeasedAway(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	inner := newFlaky()
	inner.Store = limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace})
	l := newLeased(t, inner, limit.LeasedOptions{Now: clock.Now})
	op := hot(1000, 1000, 1)
	for range 200 {
		clock.Advance(time.Millisecond)
		takeOne(t, l, op)
	}
	inner.away.Store(true)
	for i := range 101 {
		if _, err := l.Take(context.Background(), []limit.Op{op}, make([]limit.State, 1)); err != nil {
			return
		} else if i == 100 {
			t.Error("more was spent than a share can be")
		}
	}
}

// TestLeasedTogether has eight instances on one Redis, with more wanted than there is.
func TestLeasedTogether(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	const perSecond, burst = 4000, 2000
	var mu sync.Mutex
	var all []admission
	var calls, asked atomic.Int64
	var wg sync.WaitGroup
	until := time.Now().Add(1500 * time.Millisecond)
	for i := range 8 {
		inner := &counted{Store: openRedis(t, addr, limit.RedisOptions{}), calls: &calls}
		l := newLeased(t, inner, limit.LeasedOptions{})
		for caller := range 4 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(i), uint64(caller)))
				for time.Now().Before(until) {
					op := hot(perSecond, burst, 1+rng.Int64N(3))
					if caller == 0 {
						op.Reserve = burst / 5
					}
					from := time.Now()
					s := takeOne(t, l, op)
					asked.Add(1)
					if s.Fits {
						mu.Lock()
						all = append(all, admission{from, time.Now(), op.Cost})
						mu.Unlock()
					} else {
						time.Sleep(100 * time.Microsecond)
					}
				}
			})
		}
	}
	wg.Wait()
	within(t, all, perSecond, burst)
	if sum := total(all); sum < burst {
		t.Errorf("only %d units passed", sum)
	}
	t.Logf("%d decisions, %d units passed, %d calls", asked.Load(), total(all), calls.Load())
}

// counted counts calls.
type counted struct {
	limit.Store
	calls *atomic.Int64
}

func (c *counted) Take(ctx context.Context, ops []limit.Op, states []limit.State) (int, error) {
	c.calls.Add(1)
	return c.Store.Take(ctx, ops, states)
}

// TestLeasedCalls counts what Redis is asked about a hot key.
func TestLeasedCalls(t *testing.T) {
	t.Parallel()
	inner := &counted{Store: openRedis(t, limittest.StartRedis(t), limit.RedisOptions{}), calls: new(atomic.Int64)}
	l := newLeased(t, inner, limit.LeasedOptions{})
	const callers, each = 16, 4000
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				takeOne(t, l, hot(1_000_000, 10_000_000, 1)) // a share lives for half a second
			}
		})
	}
	wg.Wait()
	if calls := inner.calls.Load(); calls*20 > callers*each {
		t.Errorf("%d calls for %d decisions, want at most 0.05 each", calls, callers*each)
	}
}
