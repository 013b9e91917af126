package limit_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// How decisions are sent, from many goroutines, each with a deadline as the
// service's have: one command each, the client's own auto-pipelining, ours. They
// take turns, so that a busy machine is busy for all of them; the ratios are to
// single commands. Try -bench RedisSend -benchtime 40x.
func BenchmarkRedisSend(b *testing.B) {
	addr := limittest.StartRedis(b)
	open := func(pool int, set func(*limit.Redis)) *limit.Redis {
		store := openRedis(b, addr, limit.RedisOptions{PoolSize: pool})
		set(store)
		return store
	}
	ways := []*limit.Redis{
		open(20, limit.SendSingly), // what the client takes for two processors
		open(0, func(r *limit.Redis) {
			auto, err := limit.ClientOf(r).AutoPipeline()
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = auto.Close() })
			limit.SendBy(r, auto.Process)
		}),
		open(0, func(*limit.Redis) {}),
	}
	for _, callers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			spent := make([]time.Duration, len(ways))
			late := make([]int64, len(ways))
			turn := 250 + 10*callers
			for range b.N {
				for i, store := range ways {
					start := time.Now()
					late[i] += storm(store, turn, callers)
					spent[i] += time.Since(start)
				}
			}
			n := float64(turn) * float64(b.N)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(n/spent[0].Seconds(), "single/s")
			b.ReportMetric(spent[0].Seconds()/spent[1].Seconds(), "auto:single")
			b.ReportMetric(spent[0].Seconds()/spent[2].Seconds(), "ours:single")
			b.ReportMetric(float64(late[2])/n*100, "%late")
		})
	}
}

// storm shares n decisions between callers, and counts those that fail.
func storm(store limit.Store, n, callers int) int64 {
	op := limit.Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:speed-1a2b3c4d"),
		Refill: limit.NewRefill(1_000_000*limit.Unit, time.Second), Burst: 1_000_000, Cost: 1}
	var left, failed atomic.Int64
	left.Store(int64(n))
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			states := make([]limit.State, 1)
			for left.Add(-1) >= 0 {
				ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
				if _, err := store.Take(ctx, []limit.Op{op}, states); err != nil {
					failed.Add(1)
				}
				cancel()
			}
		})
	}
	wait.Wait()
	return failed.Load()
}
