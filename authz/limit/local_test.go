package limit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// localSite is a Local before a store that can be away.
type localSite struct {
	*limit.Local
	clock *limittest.Clock
	store *moody
	day   *limit.Calendar
}

func newLocalSite(t *testing.T, instances int) *localSite {
	t.Helper()
	s := &localSite{clock: limittest.NewClock(), day: limit.NewCalendar(limit.Day, time.UTC, 1)}
	s.store = &moody{Store: limit.NewMemory(limit.MemoryOptions{Now: s.clock.Now})}
	s.Local = limit.NewLocal(s.store, limit.LocalOptions{Instances: instances, Now: s.clock.Now, WriteEvery: time.Hour})
	t.Cleanup(func() { s.store.bad.Store(false); _ = s.Local.Close() })
	return s
}

func (s *localSite) quota(max, overage int64) limit.Op {
	return limit.Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:daily"), Kind: limit.Quota, Max: max, Overage: overage, Calendar: s.day, Cost: 1}
}

// passes is how many of n pass here.
func (s *localSite) passes(t *testing.T, n int, ops ...limit.Op) (passed int) {
	t.Helper()
	for range n {
		refused, err := s.Take(ops, make([]limit.State, len(ops)))
		if err != nil {
			t.Fatal(err)
		}
		if refused < 0 {
			passed++
		}
	}
	return passed
}

// used is what the store has counted of a quota.
func (s *localSite) used(t *testing.T, op limit.Op) int64 {
	t.Helper()
	states := make([]limit.State, 1)
	if err := s.store.Peek(context.Background(), []limit.Op{op}, states); err != nil {
		t.Fatal(err)
	}
	return states[0].Used
}

// Each of four instances has a quarter of every limit, rounded up, and a request
// that the limit itself would let pass once does so.
func TestLocalHasItsPart(t *testing.T) {
	rate := func(burst, cost int64) limit.Op {
		return limit.Op{Tag: []byte("a"), Key: fmt.Appendf(nil, "rate-%d-%d", burst, cost), Refill: limit.NewRefill(10*limit.Unit, time.Second), Burst: burst, Cost: cost}
	}
	window := func(kind limit.Kind, most int64) limit.Op {
		return limit.Op{Tag: []byte("a"), Key: fmt.Appendf(nil, "window-%d-%d", kind, most), Kind: kind, Max: most, Length: time.Minute, Cost: 1}
	}
	for _, c := range []struct {
		what string
		op   limit.Op
		want int
	}{
		{"a bucket of 100", rate(100, 1), 25},
		{"a bucket of 10", rate(10, 1), 3},
		{"a bucket of 10 by fives", rate(10, 5), 1},
		{"a bucket of 3 by fives", rate(3, 5), 0},
		{"a bucket of nothing", rate(0, 1), 0},
		{"a fixed window of 10", window(limit.FixedWindow, 10), 3},
		{"a sliding window of 10", window(limit.SlidingWindow, 10), 3},
		{"a log of 10", window(limit.LogWindow, 10), 3},
		{"a window of nothing", window(limit.FixedWindow, 0), 0},
	} {
		s := newLocalSite(t, 4)
		if got := s.passes(t, 50, c.op); got != c.want {
			t.Errorf("%s: %d pass, want %d", c.what, got, c.want)
		}
	}
	// In the long run a quarter of the rate.
	s := newLocalSite(t, 4)
	op, passed := rate(4, 1), 0
	for range 400 {
		s.clock.Advance(100 * time.Millisecond)
		passed += s.passes(t, 3, op)
	}
	if passed < 100 || passed > 101 {
		t.Errorf("%d pass in 40 s at a quarter of 10/s, want 100", passed)
	}
	// Leases: by name, and given back.
	s = newLocalSite(t, 2)
	jobs := limit.Op{Tag: []byte("a"), Key: []byte("jobs"), Kind: limit.Concurrency, Max: 4, Length: time.Minute, Cost: 1}
	for i, want := range []int{1, 1, 0} {
		jobs.ID = fmt.Append(nil, "r", i)
		if got := s.passes(t, 1, jobs); got != want {
			t.Errorf("lease %d: %d, want %d", i, got, want)
		}
	}
	jobs.ID = []byte("r0")
	if err := s.Settle([]limit.Op{jobs}, []int64{0}); err != nil {
		t.Fatal(err)
	}
	jobs.ID = []byte("r9")
	if got := s.passes(t, 1, jobs); got != 1 {
		t.Error("a lease that was given back is still held")
	}
}

// A quota goes on from its last total, spends no more than this instance's part of
// the rest, and is written once when the store is back.
func TestLocalQuota(t *testing.T) {
	s := newLocalSite(t, 4)
	op := s.quota(100, 0)
	states := make([]limit.State, 1)
	take := op
	take.Cost = 60
	if _, err := s.store.Take(t.Context(), []limit.Op{take}, states); err != nil {
		t.Fatal(err)
	}
	s.Learn([]limit.Op{take}, states)
	s.store.bad.Store(true)
	if got := s.passes(t, 50, op); got != 10 {
		t.Errorf("%d pass, want a quarter of the 40 that were left", got)
	}
	if err := s.Write(t.Context()); err == nil || s.Owed() != 10 {
		t.Errorf("the store is away: %v, %d owed", err, s.Owed())
	}
	s.store.bad.Store(false)
	for range 3 {
		if err := s.Write(t.Context()); err != nil || s.Owed() != 0 {
			t.Errorf("%v, %d owed", err, s.Owed())
		}
	}
	if n := s.used(t, op); n != 70 {
		t.Errorf("the store has counted %d, want 70", n)
	}
	// The next time it is away it goes on from there.
	s.store.bad.Store(true)
	if got := s.passes(t, 50, op); got != 8 {
		t.Errorf("%d pass, want a quarter of the 30 that are left", got)
	}
}

// All limits of a request are charged or none.
func TestLocalIsAllOrNone(t *testing.T) {
	s := newLocalSite(t, 1)
	quota := s.quota(5, 0)
	rate := limit.Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:speed"), Refill: limit.NewRefill(limit.Unit, time.Hour), Burst: 3, Cost: 1}
	if got := s.passes(t, 10, quota, rate); got != 3 {
		t.Errorf("%d pass, want 3", got)
	}
	if got := s.passes(t, 10, quota); got != 2 {
		t.Errorf("%d more of the quota, want 2: what the bucket refused was not charged", got)
	}
	rate.Key = []byte("sluice:{acme}:other")
	if got := s.passes(t, 10, quota, rate); got != 0 {
		t.Errorf("%d pass without a quota", got)
	}
	if got := s.passes(t, 10, rate); got != 3 {
		t.Errorf("%d of the other bucket, want 3: what the quota refused was not charged", got)
	}
	shadow := quota
	shadow.Shadow, shadow.Key = true, []byte("sluice:{acme}:candidate")
	shadow.Max = 1
	rate.Key = []byte("sluice:{acme}:third")
	if got := s.passes(t, 10, shadow, rate); got != 3 {
		t.Errorf("%d pass beside a quota in shadow, want 3", got)
	}
}

// Overage is a part of what is left, an unlimited quota is only counted, and what is
// given back is there again.
func TestLocalQuotaKinds(t *testing.T) {
	s := newLocalSite(t, 2)
	if got := s.passes(t, 50, s.quota(10, 4)); got != 7 {
		t.Errorf("%d of a quota of 10 and 4 more, want 7", got)
	}
	s = newLocalSite(t, 2)
	if got := s.passes(t, 50, s.quota(limit.Unlimited, 0)); got != 50 || s.Owed() != 50 {
		t.Errorf("%d of an unlimited quota, %d owed", got, s.Owed())
	}
	s = newLocalSite(t, 1)
	op, states := s.quota(10, 0), make([]limit.State, 1)
	op.Cost = 10
	if _, err := s.Take([]limit.Op{op}, states); err != nil {
		t.Fatal(err)
	}
	op.Stamp = states[0].Stamp
	if err := s.Settle([]limit.Op{op}, []int64{-4}); err != nil {
		t.Fatal(err)
	}
	op.Cost = 1
	if got := s.passes(t, 50, op); got != 4 {
		t.Errorf("%d after 4 were given back", got)
	}
}

// A period that ends while the store is away begins anew here, and what was counted
// of the old one is written no more: the store would count it in the new one.
func TestLocalQuotaRolls(t *testing.T) {
	s := newLocalSite(t, 1)
	op := s.quota(10, 0)
	s.store.bad.Store(true)
	if got := s.passes(t, 50, op); got != 10 {
		t.Errorf("%d pass, want 10", got)
	}
	s.clock.Advance(24 * time.Hour)
	if got := s.passes(t, 3, op); got != 3 {
		t.Errorf("%d pass on the next day, want 3", got)
	}
	s.store.bad.Store(false)
	if err := s.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.used(t, op); n != 3 {
		t.Errorf("the store has counted %d, want the 3 of this day", n)
	}
}

// A write whose answer is lost is repeated under its name: real Redis, counted once.
func TestLocalWritesOnce(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	proxy := limittest.StartProxy(t, addr)
	store := openRedis(t, proxy.Addr, limit.RedisOptions{})
	local := limit.NewLocal(store, limit.LocalOptions{WriteEvery: time.Hour})
	defer local.Close()
	op := limit.Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:monthly"), Kind: limit.Quota, Max: 1000, Calendar: limit.NewCalendar(limit.Month, time.UTC, 1), Cost: 7}
	warm := op
	warm.Cost = 1
	if _, err := store.Take(t.Context(), []limit.Op{warm}, make([]limit.State, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Take([]limit.Op{op}, make([]limit.State, 1)); err != nil {
		t.Fatal(err)
	}
	proxy.Replies(limittest.Drop)
	for range 3 {
		_ = local.Write(t.Context())
	}
	proxy.Replies(limittest.Pass)
	for end := time.Now().Add(20 * time.Second); local.Owed() > 0; time.Sleep(10 * time.Millisecond) {
		if err := local.Write(t.Context()); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	states := make([]limit.State, 1)
	if err := openRedis(t, addr, limit.RedisOptions{}).Peek(t.Context(), []limit.Op{op}, states); err != nil || states[0].Used != 8 {
		t.Errorf("%d units are counted, %v; want 8", states[0].Used, err)
	}
}
