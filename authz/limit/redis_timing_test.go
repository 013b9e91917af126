package limit_test

import (
	"fmt"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// One round trip for each decision, alone and with 64 callers.
func BenchmarkRedisTake(b *testing.B) {
	addr := limittest.StartRedis(b)
	store := openRedis(b, addr, limit.RedisOptions{})
	for _, n := range []int{1, 2, 4} {
		ops := make([]limit.Op, n)
		for i := range ops {
			ops[i] = limit.Op{Tag: []byte("acme"), Key: fmt.Appendf(nil, "sluice:{acme}:speed-1a2b3c4d:key-%d", i),
				Refill: limit.NewRefill(1_000_000*limit.Unit, time.Second), Burst: 1_000_000, Cost: 1}
		}
		b.Run(fmt.Sprintf("ops=%d", n), func(b *testing.B) {
			states := make([]limit.State, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := store.Take(b.Context(), ops, states); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("ops=%d/parallel", n), func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				states := make([]limit.State, n)
				for pb.Next() {
					if _, err := store.Take(b.Context(), ops, states); err != nil {
						b.Fatal(err)
					}
				}
			})
			client := plainClient(b, addr)
			b.Log(client.Info(b.Context(), "commandstats").Val())
		})
	}
}
