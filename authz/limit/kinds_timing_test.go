package limit_test

import (
	"fmt"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// roomy are ops of every kind that always fit.
func roomy() []limit.Op {
	names := []string{"rate", "fixed", "sliding", "log", "quota", "concurrency", "retries"}
	ops := make([]limit.Op, len(names))
	for i, name := range names {
		ops[i] = limit.Op{
			Tag: []byte("acme"), Key: fmt.Appendf(nil, "sluice:{acme}:%s-1a2b3c4d:key-1", name), Kind: limit.Kind(i), Cost: 1,
			Refill: limit.NewRefill(limit.MaxBurst*limit.Unit, time.Second), Burst: 1_000_000, Max: limit.MaxCount, Length: time.Minute,
			Calendar: limit.NewCalendar(limit.Month, time.UTC, 1),
		}
	}
	ops[limit.LogWindow].Max, ops[limit.LogWindow].Length = limit.MaxLog, 10*time.Millisecond
	ops[limit.Concurrency].ID = []byte("request 1")
	return ops
}

// One op of each kind, on both stores: ns, and for Redis what its script takes.
func BenchmarkKinds(b *testing.B) {
	memory := limit.NewMemory(limit.MemoryOptions{})
	addr := limittest.StartRedis(b)
	redis, client := openRedis(b, addr, limit.RedisOptions{}), plainClient(b, addr)
	states := make([]limit.State, 1)
	for i, op := range roomy() {
		name := [...]string{"rate", "fixed", "sliding", "log", "quota", "concurrency", "retries"}[i]
		ops := []limit.Op{op}
		run := func(store limit.Store) func(b *testing.B) {
			return func(b *testing.B) {
				client.ConfigResetStat(b.Context())
				b.ReportAllocs()
				for b.Loop() {
					if _, err := store.Take(b.Context(), ops, states); err != nil {
						b.Fatal(err)
					}
				}
				var calls, usec int64
				if stats := client.InfoMap(b.Context(), "commandstats").Val()["Commandstats"]["cmdstat_evalsha"]; stats != "" {
					if _, err := fmt.Sscanf(stats, "calls=%d,usec=%d", &calls, &usec); err == nil && calls > 0 {
						b.ReportMetric(float64(usec)/float64(calls), "script-us/op")
					}
				}
			}
		}
		b.Run("memory/"+name, run(memory))
		b.Run("redis/"+name, run(redis))
	}
}
