package limit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func timingOps(count int) []Op {
	ops := make([]Op, count)
	for i := range ops {
		tag := fmt.Appendf(nil, "tenant-%d", i)
		ops[i] = Op{Tag: tag, Key: fmt.Appendf(nil, "sluice:{%s}:speed-1a2b3c4d:key-%d", tag, i), Refill: NewRefill(100*Unit, time.Second), Burst: 200, Cost: 1}
	}
	return ops
}

// One key, a million keys in random order, and both with all processors.
func BenchmarkMemoryTake(b *testing.B) {
	ctx := context.Background()
	for _, keys := range []int{1, 1000, 1_000_000} {
		ops := timingOps(keys)
		m := NewMemory(MemoryOptions{MaxKeys: 2_000_000})
		states := make([]State, 1)
		for i := range ops {
			_, _ = m.Take(ctx, ops[i:i+1], states)
		}
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				i := rng.IntN(keys)
				_, _ = m.Take(ctx, ops[i:i+1], states)
			}
		})
		b.Run(fmt.Sprintf("keys=%d/parallel", keys), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
				states := make([]State, 1)
				for pb.Next() {
					i := rng.IntN(keys)
					_, _ = m.Take(ctx, ops[i:i+1], states)
				}
			})
		})
	}
}

// Four limits of one tenant in one decision.
func BenchmarkMemoryTakeFour(b *testing.B) {
	m := NewMemory(MemoryOptions{})
	ops := timingOps(4)
	for i := range ops {
		ops[i].Tag = ops[0].Tag
	}
	states := make([]State, len(ops))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = m.Take(context.Background(), ops, states)
	}
}

// A new key each time: the storm of newcomers, with sweeping.
func BenchmarkMemoryNewcomer(b *testing.B) {
	m := NewMemory(MemoryOptions{MaxKeys: 100_000})
	states := make([]State, 1)
	key := make([]byte, 0, 40)
	i := 0
	op := timingOps(1)
	b.ReportAllocs()
	for b.Loop() {
		i++
		key = fmt.Appendf(key[:0], "sluice:{ip=%d}:speed", i)
		op[0].Tag, op[0].Key = key, key
		_, _ = m.Take(context.Background(), op, states)
	}
}
