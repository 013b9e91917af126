package limit_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	limittest.Run(t, func(testing.TB) (limit.Store, *limittest.Clock) {
		clock := limittest.NewClock()
		return limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace}), clock
	})
}

func TestMemoryWhenFull(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	m := limit.NewMemory(limit.MemoryOptions{Now: clock.Now, MaxKeys: 100})
	take := func(i int, cost int64) (int, error) {
		tag := fmt.Appendf(nil, "ip=%d", i)
		op := limit.Op{Tag: tag, Key: tag, Refill: limit.NewRefill(limit.Unit, time.Second), Burst: 10, Cost: cost}
		return m.Take(t.Context(), []limit.Op{op}, make([]limit.State, 1))
	}
	for i := range 100 {
		if refused, err := take(i, 10); refused != -1 || err != nil {
			t.Fatalf("client %d: %d, %v", i, refused, err)
		}
	}
	// All are offenders. A newcomer is not answered, and takes nobody's place.
	for i := range 1000 {
		if _, err := take(1000+i, 1); !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("newcomer %d: %v", i, err)
		}
	}
	for i := range 100 {
		if refused, err := take(i, 1); refused != 0 || err != nil {
			t.Fatalf("offender %d: %d, %v", i, refused, err)
		}
	}
	// When they are full again, and the grace is over, they make room.
	clock.Advance(11 * time.Second)
	for i := range 100 {
		if refused, err := take(2000+i, 1); refused != -1 || err != nil {
			t.Fatalf("late newcomer %d: %d, %v", i, refused, err)
		}
	}
	if n := m.Len(); n > 100 {
		t.Errorf("%d keys, want at most 100", n)
	}
}

func TestMemoryForgetsWhatIsFull(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	m := limit.NewMemory(limit.MemoryOptions{Now: clock.Now})
	for i := range 50_000 {
		key := fmt.Append(nil, i)
		op := limit.Op{Tag: key, Key: key, Refill: limit.NewRefill(limit.Unit, time.Second), Burst: 1, Cost: 1}
		if _, err := m.Take(t.Context(), []limit.Op{op}, make([]limit.State, 1)); err != nil {
			t.Fatal(err)
		}
		clock.Advance(time.Millisecond)
	}
	// 2,000 are in use at any time: 1 s to fill and 1 s of grace.
	if n := m.Len(); n > 6000 {
		t.Errorf("%d keys are held, want about 2000", n)
	}
}
