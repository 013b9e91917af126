package limit_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// TestSoftHistories has instances that admit, refund, flush and lose their store at
// random. Whatever happens, no more passes than was stated, and in the end the
// store knows exactly what has passed.
func TestSoftHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		inner := newFlaky()
		count := rapid.IntRange(1, 4).Draw(t, "instances")
		var instances []*limit.Soft
		for range count {
			s := limit.NewSoft(inner, limit.SoftOptions{Instances: count, FlushEvery: time.Hour})
			defer s.Close()
			instances = append(instances, s)
		}
		op := softQuota("month", 1)
		op.Max = int64(rapid.IntRange(0, 2000).Draw(t, "quota"))
		op.Overage = int64(rapid.IntRange(0, 100).Draw(t, "overage"))
		admitted, unsure := int64(0), int64(0)
		states := make([]limit.State, 1)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			s := instances[rapid.IntRange(0, count-1).Draw(t, "instance")]
			op.Cost = int64(rapid.IntRange(1, 50).Draw(t, "cost"))
			switch rapid.IntRange(0, 11).Draw(t, "what") {
			case 0:
				_ = s.Flush(context.Background())
			case 1:
				inner.away.Store(rapid.Bool().Draw(t, "away"))
			case 2:
				inner.mute.Store(rapid.Bool().Draw(t, "mute"))
			case 3:
				op.Stamp = states[0].Stamp
				units := min(op.Cost, admitted)
				// It may fail, and find less than it gives back where others have not written.
				_ = s.Settle(context.Background(), nil, []limit.Op{op}, []int64{-units})
				unsure += units
			default:
				if _, err := s.Take(context.Background(), []limit.Op{op}, states); err != nil {
					unsure += op.Cost
				} else if states[0].Fits {
					admitted += op.Cost
				}
			}
		}
		if most := op.Max + op.Overage + instances[0].Overshoot(&op) + unsure; admitted > most {
			t.Fatalf("admitted %d; want at most %d", admitted, most)
		}
		inner.away.Store(false)
		inner.mute.Store(false)
		for _, s := range instances {
			if err := s.Flush(context.Background()); err != nil {
				t.Fatal(err)
			}
			if pending := s.Stats().Pending; pending != 0 {
				t.Fatalf("%d pending after a flush", pending)
			}
		}
		if err := inner.Store.Peek(context.Background(), []limit.Op{op}, states); err != nil {
			t.Fatal(err)
		}
		if used := states[0].Used; used < admitted-unsure || used > admitted+unsure {
			t.Fatalf("used %d; admitted %d, not known of %d", used, admitted, unsure)
		}
	})
}

func TestSoftConformance(t *testing.T) {
	t.Parallel()
	limittest.Run(t, func(t testing.TB) (limit.Store, *limittest.Clock) {
		clock := limittest.NewClock()
		memory := limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace})
		return newSoft(t, memory, limit.SoftOptions{Now: clock.Now}), clock
	})
}
