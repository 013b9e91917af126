package limittest

import (
	"errors"
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
}
