package limittest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
)

// Storm lets 64 callers at once ask for 4 times what a bucket of 100 holds, and
// fails unless exactly 100 pass. The stores share the bucket; the refill must be
// too slow to matter, as the clock may run.
func Storm(t testing.TB, stores ...limit.Store) {
	t.Helper()
	var passed atomic.Int64
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			o := op("storm", limit.NewRefill(limit.Unit, 24*time.Hour), 100, 1)
			states := make([]limit.State, 1)
			for range 7 {
				refused, err := stores[i%len(stores)].Take(t.Context(), []limit.Op{o}, states)
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				if refused < 0 {
					passed.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if n := passed.Load(); n != 100 {
		t.Errorf("%d of 448 calls passed, want exactly 100", n)
	}
}

func parallelCallers(b *bench) { Storm(b, b.store) }

func parallelKinds(b *bench) { StormKinds(b, b.store) }

// StormKinds is Storm for the other kinds, each alone and all in one decision. The
// time on the stores' clock must not matter: it is below an hour, within one
// day.
func StormKinds(t testing.TB, stores ...limit.Store) {
	t.Helper()
	ops := []limit.Op{
		window(limit.FixedWindow, "fixed", 100, limit.MaxPeriod, 1), window(limit.SlidingWindow, "sliding", 100, limit.MaxPeriod, 1),
		window(limit.LogWindow, "log", 100, time.Hour, 1), daily("quota", 90, 1), lease("", 100),
	}
	ops[3].Overage = 10
	ops[3].Calendar = limit.NewCalendar(limit.Month, time.UTC, 1)
	ops[4].Length = time.Hour
	for i := range ops {
		stormKind(t, stores, ops[i:i+1])
		if err := stores[0].Reset(t.Context(), ops[i:i+1]); err != nil {
			t.Fatal(err)
		}
	}
	stormKind(t, stores, ops)
}

// stormKind lets 64 callers ask for 448 of what has 100. Every seventh that passes is
// given back.
func stormKind(t testing.TB, stores []limit.Store, ops []limit.Op) {
	t.Helper()
	var passed, back atomic.Int64
	var callers sync.WaitGroup
	for i := range 64 {
		callers.Go(func() {
			mine := slices.Clone(ops)
			states, deltas := make([]limit.State, len(ops)), make([]int64, len(ops))
			store := stores[i%len(stores)]
			for round := range 7 {
				for j := range mine {
					if mine[j].Kind == limit.Concurrency {
						mine[j].ID = fmt.Appendf(nil, "%d.%d", i, round)
					}
					deltas[j] = -1
				}
				refused, err := store.Take(t.Context(), mine, states)
				if err == nil && refused < 0 && passed.Add(1)%7 == 0 {
					for j := range mine {
						mine[j].Stamp = states[j].Stamp
					}
					err = store.Settle(t.Context(), nil, mine, deltas)
					back.Add(1)
				}
				if err != nil {
					t.Errorf("caller %d: %v", i, err)
					return
				}
			}
		})
	}
	callers.Wait()
	states := make([]limit.State, len(ops))
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].ID = []byte("look")
	}
	if err := stores[0].Peek(t.Context(), ops, states); err != nil {
		t.Fatal(err)
	}
	for i, s := range states {
		if held := passed.Load() - back.Load(); s.Used != held || held > 100 || passed.Load() < 100 {
			t.Errorf("kind %d: %d passed, %d were given back, %d are counted of 100", ops[i].Kind, passed.Load(), back.Load(), s.Used)
		}
	}
}

// Decisions that hold two tags each, named in either order: none may wait for
// ever, and both limits of a pair are charged alike.
func parallelCrossing(b *bench) {
	left := limit.Op{Tag: []byte("l"), Key: []byte("sluice:{l}:n"), Refill: limit.NewRefill(1, time.Hour), Burst: 200, Cost: 1}
	right := limit.Op{Tag: []byte("r"), Key: []byte("sluice:{r}:n"), Refill: limit.NewRefill(1, time.Hour), Burst: 300, Cost: 1}
	var passed atomic.Int64
	var callers sync.WaitGroup
	for i := range 16 {
		callers.Go(func() {
			ops := []limit.Op{left, right}
			if i%2 == 1 {
				ops = []limit.Op{right, left}
			}
			states := make([]limit.State, 2)
			for range 20 {
				refused, err := b.store.Take(b.Context(), ops, states)
				if err != nil {
					b.Errorf("Take: %v", err)
					return
				}
				if refused < 0 {
					passed.Add(1)
				}
			}
		})
	}
	callers.Wait()
	if passed.Load() != 200 || b.peek(left).Remaining != 0 || b.peek(right).Remaining != 100 {
		b.Errorf("%d passed, %d and %d remain; want 200, 0 and 100", passed.Load(), b.peek(left).Remaining, b.peek(right).Remaining)
	}
}

func closedStore(b *bench) {
	if err := b.store.Close(); err != nil {
		b.Fatalf("Close: %v", err)
	}
	ops, states := []limit.Op{op("speed", perSecond(1), 1, 1)}, make([]limit.State, 1)
	if _, err := b.store.Take(b.Context(), ops, states); !errors.Is(err, limit.ErrUnavailable) {
		b.Errorf("Take: %v", err)
	}
	if err := b.store.Peek(b.Context(), ops, states); !errors.Is(err, limit.ErrUnavailable) {
		b.Errorf("Peek: %v", err)
	}
	if err := b.store.Settle(b.Context(), nil, ops, []int64{1}); !errors.Is(err, limit.ErrUnavailable) {
		b.Errorf("Settle: %v", err)
	}
	if err := b.store.Reset(b.Context(), ops); !errors.Is(err, limit.ErrUnavailable) {
		b.Errorf("Reset: %v", err)
	}
}

func impossibleOps(b *bench) {
	good := op("speed", perSecond(1), 1, 1)
	panics := func(name string, states int, ops ...limit.Op) {
		b.Helper()
		defer func() {
			if text, _ := recover().(string); !strings.HasPrefix(text, "BUG: ") {
				b.Errorf("%s: the panic says %q", name, text)
			}
		}()
		_, _ = b.store.Take(b.Context(), ops, make([]limit.State, states))
	}
	change := func(f func(*limit.Op)) limit.Op {
		o := good
		f(&o)
		return o
	}
	panics("two lengths", 2, good)
	panics("one key twice", 2, good, good)
	panics("too many", limit.MaxOps+1, make([]limit.Op, limit.MaxOps+1)...)
	panics("no cost", 1, change(func(o *limit.Op) { o.Cost = 0 }))
	panics("negative cost", 1, change(func(o *limit.Op) { o.Cost = -1 }))
	panics("negative burst", 1, change(func(o *limit.Op) { o.Burst = -1 }))
	panics("huge burst", 1, change(func(o *limit.Op) { o.Burst = limit.MaxBurst + 1 }))
	panics("no refill (C079)", 1, change(func(o *limit.Op) { o.Refill = limit.Refill{} }))
	panics("no period", 1, change(func(o *limit.Op) { o.Refill.Period = 0 }))
	panics("a reserve above the burst", 1, change(func(o *limit.Op) { o.Reserve = 2 }))
	panics("a long wait", 1, change(func(o *limit.Op) { o.MaxWait = limit.MaxHold + 1 }))
	panics("a share below 0", 1, change(func(o *limit.Op) { o.Share = -1 }))
	panics("a share of retries", 1, change(func(o *limit.Op) { o.Kind, o.Share = limit.Retries, 1 }))
	panics("a held share", 1, change(func(o *limit.Op) { o.MaxWait, o.Share = 1, 1 }))
	panics("held retries", 1, change(func(o *limit.Op) { o.Kind, o.MaxWait = limit.Retries, 1 }))
	panics("no kind", 1, change(func(o *limit.Op) { o.Kind = limit.Retries + 1 }))
	panics("no length", 1, change(func(o *limit.Op) { o.Kind = limit.FixedWindow }))
	panics("a short length", 1, window(limit.SlidingWindow, "w", 1, time.Microsecond, 1))
	panics("a long log", 1, window(limit.LogWindow, "w", limit.MaxLog+1, time.Second, 1))
	panics("below 0", 1, window(limit.FixedWindow, "w", -1, time.Second, 1))
	panics("no calendar", 1, change(func(o *limit.Op) { o.Kind = limit.Quota }))
	panics("a lease without a name", 1, lease("", 1))
	panics("a lease of a long name", 1, lease(strings.Repeat("x", limit.MaxID+1), 1))
}
