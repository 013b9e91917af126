package limit_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

func TestSoftAloneIsExact(t *testing.T) {
	t.Parallel()
	inner := newFlaky()
	s := newSoft(t, inner, limit.SoftOptions{})
	admitted := int64(0)
	for range 150_000 {
		if takeOne(t, s, softQuota("month", 1)).Fits {
			admitted++
		}
	}
	if admitted != 100_000 || s.Overshoot(new(softQuota("month", 1))) != 0 {
		t.Errorf("admitted %d, want 100000; overshoot %d, want 0", admitted, s.Overshoot(new(softQuota("month", 1))))
	}
	if takes := inner.takes.Load(); takes > 6000 {
		t.Errorf("%d calls for 150,000 decisions; want those of the last twentieth", takes)
	}
	if used := peekOne(t, inner, softQuota("month", 1)).Used; used != admitted {
		t.Errorf("used %d, want %d", used, admitted)
	}
}

// TestSoftSmall has quotas without a share: they are hard.
func TestSoftSmall(t *testing.T) {
	t.Parallel()
	s := newSoft(t, newFlaky(), limit.SoftOptions{Instances: 8})
	for _, most := range []int64{0, 1, 10, 159} {
		op := softOp(fmt.Sprint(most), 1)
		op.Max, op.Overage = most, 0
		for i := range most + 3 {
			if state := takeOne(t, s, op); state.Fits != (i < most) || state.Remaining != max(0, most-i-1) {
				t.Errorf("quota %d, request %d: %+v", most, i, state)
			}
		}
		if s.Overshoot(&op) != 0 {
			t.Errorf("quota %d: overshoot %d, want 0", most, s.Overshoot(&op))
		}
	}
}

// TestSoftTogether has eight instances on one Redis, flushing now and then.
func TestSoftTogether(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	var instances []*limit.Soft
	for range 8 {
		instances = append(instances, newSoft(t, openRedis(t, addr, limit.RedisOptions{}), limit.SoftOptions{Instances: 8, FlushEvery: 50 * time.Millisecond}))
	}
	op := softQuota("month", 1)
	op.Overage = 100
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			mine := op
			mine.Cost = int64(1 + i%3)
			for refused := 0; refused < 20; {
				states := make([]limit.State, 1)
				if _, err := instances[i%8].Take(t.Context(), []limit.Op{mine}, states); err != nil {
					t.Error(err)
					return
				}
				if states[0].Fits {
					admitted.Add(mine.Cost)
				} else {
					refused++
				}
			}
		})
	}
	wg.Wait()
	for _, s := range instances {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	most := op.Max + op.Overage + instances[0].Overshoot(&op)
	t.Logf("admitted %d of %d, at most %d", admitted.Load(), op.Max+op.Overage, most)
	if n := admitted.Load(); n < op.Max+op.Overage-3 || n > most {
		t.Errorf("admitted %d; want %d to %d", n, op.Max+op.Overage-3, most)
	}
	if used := peekOne(t, instances[3], op).Used; used != admitted.Load() {
		t.Errorf("used %d, admitted %d", used, admitted.Load())
	}
}

func TestSoftRepeatsWithoutCountingTwice(t *testing.T) {
	t.Parallel()
	inner := newFlaky()
	s := newSoft(t, inner, limit.SoftOptions{Instances: 2})
	for range 100 {
		takeOne(t, s, softQuota("month", 1))
	}
	inner.mute.Store(true)
	for range 3 {
		if err := s.Flush(t.Context()); !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("error %v; want ErrUnavailable", err)
		}
		takeOne(t, s, softQuota("month", 1))
	}
	if stats := s.Stats(); stats.Pending != 102 || stats.Failures != 3 {
		t.Errorf("%+v; want 102 pending and 3 failures", stats)
	}
	inner.mute.Store(false)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := peekOne(t, inner, softQuota("month", 1)).Used; used != 103 {
		t.Errorf("used %d, want 103", used)
	}
	if stats := s.Stats(); stats.Pending != 0 || stats.Doubtful != 0 {
		t.Errorf("%+v; want nothing pending or doubtful", stats)
	}
}

func TestSoftWithoutItsStore(t *testing.T) {
	t.Parallel()
	inner := newFlaky()
	s := newSoft(t, inner, limit.SoftOptions{Instances: 8})
	takeOne(t, s, softQuota("month", 1))
	inner.away.Store(true)
	states := make([]limit.State, 1)
	if _, err := s.Take(t.Context(), []limit.Op{softQuota("unread", 1)}, states); !errors.Is(err, limit.ErrUnavailable) {
		t.Errorf("without a total: error %v; want ErrUnavailable", err)
	}
	admitted := int64(1)
	for ; ; admitted++ {
		if _, err := s.Take(t.Context(), []limit.Op{softQuota("month", 1)}, states); err != nil {
			break
		}
	}
	if admitted != 1+625 {
		t.Errorf("admitted %d while the store was away; want the share, 625", admitted-1)
	}
	inner.away.Store(false)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if used := peekOne(t, inner, softQuota("month", 1)).Used; used != admitted {
		t.Errorf("used %d, want %d", used, admitted)
	}
}

func TestSoftSaysWhatItLoses(t *testing.T) {
	t.Parallel()
	inner := newFlaky()
	s := newSoft(t, inner, limit.SoftOptions{})
	for range 43 {
		takeOne(t, s, softQuota("month", 1))
	}
	inner.away.Store(true)
	if err := s.Close(); err == nil || err.Error() != "cannot write 42 units of soft quotas: limit store unavailable: away" {
		t.Errorf("error %v", err)
	}
}

func TestSoftAllOrNone(t *testing.T) {
	t.Parallel()
	inner := newFlaky()
	s := newSoft(t, inner, limit.SoftOptions{})
	takeOne(t, s, softQuota("month", 1))
	ops := []limit.Op{softQuota("month", 5), speed(1), softQuota("day", 2)}
	ops[2].Shadow = true
	states := make([]limit.State, 3)
	for i := range 6 {
		refused, err := s.Take(t.Context(), ops, states)
		if err != nil {
			t.Fatal(err)
		}
		want := -1
		if i >= 3 {
			want = 1
		}
		if refused != want || !states[0].Fits || states[0].Used != int64(1+5*min(3, i+1)) {
			t.Errorf("request %d: refused %d, %+v", i, refused, states[0])
		}
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := peekOne(t, inner, ops[0]).Used; used != 16 {
		t.Errorf("used %d, want 16", used)
	}
	if used := peekOne(t, inner, ops[2]).Used; used != 6 {
		t.Errorf("in shadow: used %d, want 6", used)
	}
}

func TestSoftIntoTheNextPeriod(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	memory := limit.NewMemory(limit.MemoryOptions{Now: clock.Now})
	s := newSoft(t, memory, limit.SoftOptions{Instances: 2, Now: clock.Now})
	op := softQuota("hour", 1)
	op.Calendar = limit.NewCalendar(limit.Hour, time.UTC, 1)
	for range 10 {
		takeOne(t, s, op)
	}
	clock.Advance(time.Hour)
	if state := takeOne(t, s, op); state.Used != 1 || !state.Fits {
		t.Errorf("a new hour: %+v", state)
	}
	for range 4 {
		takeOne(t, s, op)
	}
	if used := peekOne(t, s, op).Used; used != 5 {
		t.Errorf("used %d, want 5", used)
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := peekOne(t, memory, op).Used; used != 5 {
		t.Errorf("used %d after the flush, want 5", used)
	}
	if stats := s.Stats(); stats.Pending != 0 {
		t.Errorf("%+v; want nothing pending", stats)
	}
}

func TestSoftUnlimited(t *testing.T) {
	t.Parallel()
	inner := newFlaky()
	s := newSoft(t, inner, limit.SoftOptions{Instances: 3})
	op := softQuota("month", limit.MaxBurst)
	op.Max = limit.Unlimited
	for i := range int64(5) {
		if state := takeOne(t, s, op); !state.Fits || state.Remaining != limit.Unlimited || state.Used != (i+1)*limit.MaxBurst {
			t.Errorf("request %d: %+v", i, state)
		}
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := peekOne(t, inner, op).Used; used != 5*limit.MaxBurst || inner.takes.Load() != 1 {
		t.Errorf("used %d in %d calls, want %d in one", used, inner.takes.Load(), 5*int64(limit.MaxBurst))
	}
}

// TestSoftNumbers changes a plan in the middle of a period.
func TestSoftNumbers(t *testing.T) {
	t.Parallel()
	s := newSoft(t, newFlaky(), limit.SoftOptions{})
	op := softQuota("month", 900)
	op.Max = 1000
	takeOne(t, s, op)
	op.Cost, op.Max = 1, 500
	if state := takeOne(t, s, op); state.Fits || state.Remaining != 0 {
		t.Errorf("a smaller plan: %+v", state)
	}
	op.Max = 5000
	if state := takeOne(t, s, op); !state.Fits || state.Remaining != 4099 {
		t.Errorf("a larger plan: %+v", state)
	}
}

func TestSoftBelievesWhatIsExhausted(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	inner := &flaky{Store: limit.NewMemory(limit.MemoryOptions{Now: clock.Now})}
	s := newSoft(t, inner, limit.SoftOptions{Now: clock.Now})
	takeOne(t, s, softQuota("month", 100_000))
	ask := func() int64 {
		before := inner.takes.Load()
		for range 10 {
			if state := takeOne(t, s, softQuota("month", 1)); state.Fits || state.Wait != state.Reset || state.Remaining != 0 {
				t.Errorf("exhausted: %+v", state)
			}
		}
		return inner.takes.Load() - before
	}
	if n := ask(); n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	clock.Advance(2 * time.Second)
	if n := ask(); n != 1 {
		t.Errorf("%d calls after 2 s, want 1", n)
	}
	granted := softQuota("month", 1)
	granted.Max++
	if !takeOne(t, s, granted).Fits {
		t.Error("a grant is not felt at once")
	}
	if err := s.Reset(t.Context(), []limit.Op{granted}); err != nil {
		t.Fatal(err)
	}
	if state := takeOne(t, s, softQuota("month", 1)); !state.Fits || state.Used != 1 {
		t.Errorf("after a reset: %+v", state)
	}
}

// TestSoftWhenItsStoreForgets has a store that is reset by others, or comes back
// empty.
func TestSoftWhenItsStoreForgets(t *testing.T) {
	t.Parallel()
	inner := newFlaky()
	s := newSoft(t, inner, limit.SoftOptions{})
	op := softQuota("month", 1)
	tooMuch := op
	tooMuch.Cost = op.Max + 1
	takeOne(t, s, tooMuch) // reads a total of nothing
	for range 11 {
		takeOne(t, s, op)
	}
	if err := inner.Reset(t.Context(), []limit.Op{op}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 11 {
			takeOne(t, s, op)
		}
	}
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used := peekOne(t, inner, op).Used; used != 22 {
		t.Errorf("used %d, want the 22 after the reset", used)
	}
}
