package limit_test

import (
	"testing"
	"time"

	"sluice/authz/limit"
)

// BenchmarkSoft is what a soft quota costs on top of a rate: on one hot key, and
// without it.
func BenchmarkSoft(b *testing.B) {
	rate := limit.Op{Tag: []byte("acme"), Key: []byte(speedKey), Refill: limit.NewRefill(limit.Unit, time.Microsecond), Burst: limit.MaxBurst, Cost: 1}
	quota := softOp("month", 1)
	quota.Max = limit.MaxCount
	for name, ops := range map[string][]limit.Op{"rate": {rate}, "rate+soft": {rate, quota}, "soft": {quota}} {
		b.Run(name, func(b *testing.B) {
			s := newSoft(b, limit.NewMemory(limit.MemoryOptions{}), limit.SoftOptions{Instances: 8})
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				states := make([]limit.State, len(ops))
				for pb.Next() {
					if _, err := s.Take(b.Context(), ops, states); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
