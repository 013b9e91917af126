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

// Ways to send decisions, from many goroutines: -bench RedisSend -benchtime 1s.
// Each decision has a deadline, as those of the service have.
func BenchmarkRedisSend(b *testing.B) {
	addr := limittest.StartRedis(b)
	op := limit.Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:speed-1a2b3c4d"),
		Refill: limit.NewRefill(1_000_000*limit.Unit, time.Second), Burst: 1_000_000, Cost: 1}
	ways := []struct {
		name string
		set  func(*limit.Redis)
	}{
		{"single", limit.SendSingly},
		{"auto", func(r *limit.Redis) {
			auto, err := limit.ClientOf(r).AutoPipeline()
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = auto.Close() })
			limit.SendBy(r, auto.Process)
		}},
	}
	for _, single := range []int32{0, 1, 2, 4} {
		for _, lanes := range []int{1, 2} {
			ways = append(ways, struct {
				name string
				set  func(*limit.Redis)
			}{fmt.Sprintf("ours%d-%d", single, lanes), func(r *limit.Redis) { limit.Tune(r, single, lanes) }})
		}
	}
	for _, callers := range []int{1, 16, 64, 256} {
		for _, way := range ways {
			size := 0
			if way.name == "single" {
				size = 20 // what the client takes for two processors
			}
			store := openRedis(b, addr, limit.RedisOptions{PoolSize: size})
			way.set(store)
			takeOne(b, store, op)
			b.Run(fmt.Sprintf("callers=%d/%s", callers, way.name), func(b *testing.B) { storm(b, store, op, callers) })
			store.Close()
		}
	}
}

// storm shares b.N decisions between callers.
func storm(b *testing.B, store limit.Store, op limit.Op, callers int) {
	b.ReportAllocs()
	var left, failed atomic.Int64
	left.Store(int64(b.N))
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
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(failed.Load())/float64(b.N)*100, "%late")
}
