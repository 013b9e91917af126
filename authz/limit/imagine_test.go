package limit_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// What is imagined of a limit is what a store says of one that nobody has used,
// and of one that was used up in this moment.
func TestImagine(t *testing.T) {
	t.Parallel()
	calendar := limit.NewCalendar(limit.Month, time.UTC, 15)
	for what, op := range map[string]limit.Op{
		"rate":            {Kind: limit.Rate, Refill: limit.NewRefill(2*limit.Unit, time.Second), Burst: 10, Cost: 3},
		"a dear request":  {Kind: limit.Rate, Refill: limit.NewRefill(2*limit.Unit, time.Second), Burst: 10, Cost: 11},
		"a rate of none":  {Kind: limit.Rate, Refill: limit.NewRefill(limit.Unit, time.Second), Cost: 1},
		"retries":         {Kind: limit.Retries, Refill: limit.NewRefill(60*limit.Unit, time.Minute), Burst: 60, Cost: 1},
		"a fixed window":  {Kind: limit.FixedWindow, Max: 10, Length: time.Minute, Cost: 3},
		"a sliding one":   {Kind: limit.SlidingWindow, Max: 10, Length: time.Minute, Cost: 3},
		"a log":           {Kind: limit.LogWindow, Max: 10, Length: time.Minute, Cost: 3},
		"a quota":         {Kind: limit.Quota, Max: 10, Calendar: calendar, Cost: 3},
		"a quota of none": {Kind: limit.Quota, Max: 0, Calendar: calendar, Cost: 3},
		"one with more":   {Kind: limit.Quota, Max: 10, Overage: 5, Calendar: calendar, Cost: 3},
		"leases":          {Kind: limit.Concurrency, Max: 1, Length: time.Minute, Cost: 1, ID: []byte("x")},
	} {
		clock := limittest.NewClock()
		store := limit.NewMemory(limit.MemoryOptions{Now: clock.Now})
		op.Tag, op.Key = []byte("t"), []byte("sluice:{t}:l:")
		said := make([]limit.State, 1)
		peek := func() limit.State {
			if err := store.Peek(context.Background(), []limit.Op{op}, said); err != nil {
				t.Fatal(err)
			}
			return said[0]
		}
		if diff := cmp.Diff(peek(), limit.Imagine(&op, clock.Now(), false)); diff != "" {
			t.Errorf("%s, untouched: %s", what, diff)
		}
		all := op
		all.Cost, all.ID = limit.SumCounts(op.Limit(), op.Overage), []byte("another")
		if op.Kind == limit.Concurrency {
			all.Cost = 1
		}
		if all.Cost > 0 {
			if refused, err := store.Take(context.Background(), []limit.Op{all}, said); refused >= 0 || err != nil {
				t.Fatalf("%s: cannot use it up: %d, %v", what, refused, err)
			}
		}
		if diff := cmp.Diff(peek(), limit.Imagine(&op, clock.Now(), true)); diff != "" {
			t.Errorf("%s, used up: %s", what, diff)
		}
	}
}

// What cannot be used up is refused all the same when that is imagined, and what
// would be held is not.
func TestImagineMore(t *testing.T) {
	t.Parallel()
	now := limittest.NewClock().Now()
	quota := limit.Op{Kind: limit.Quota, Max: limit.Unlimited, Calendar: limit.NewCalendar(limit.Day, time.UTC, 1), Cost: 1}
	if s := limit.Imagine(&quota, now, true); s.Fits || s.Remaining != limit.Unlimited || s.Wait <= 0 {
		t.Errorf("an unlimited quota: %+v", s)
	}
	rate := limit.Op{Kind: limit.Rate, Refill: limit.NewRefill(limit.Unit, time.Second), Burst: 5, Reserve: 1, Cost: 1, MaxWait: time.Second}
	if s := limit.Imagine(&rate, now, true); s.Fits || s.Remaining != 0 || s.Wait != time.Second {
		t.Errorf("a rate with a reserve: %+v", s)
	}
	if s := limit.Imagine(&rate, now, false); !s.Fits || s.Remaining != 4 || s.Delay != 0 {
		t.Errorf("an untouched rate: %+v", s)
	}
}
