package limit_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// span is a decision that passed: it happened at some moment between two.
type span struct {
	from, to time.Duration
	units    int64
}

// Many callers at once, in real time: whatever the order in which their decisions
// happened, between any two moments no more passed than a bucket of this size and
// speed can have given. (A decision that lay wholly between them happened there.)
func TestParallelHistories(t *testing.T) {
	t.Parallel()
	const rate, burst = 400, 150
	for name, open := range map[string]func(t *testing.T) []limit.Store{
		"memory": func(*testing.T) []limit.Store { return []limit.Store{limit.NewMemory(limit.MemoryOptions{})} },
		"embedded": func(t *testing.T) []limit.Store {
			store, err := limit.OpenEmbedded(t.TempDir()+"/sluice.db", limit.EmbeddedOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = store.Close() })
			return []limit.Store{store}
		},
		"redis": func(t *testing.T) []limit.Store {
			addr := limittest.StartRedis(t)
			return []limit.Store{openRedis(t, addr, limit.RedisOptions{}), openRedis(t, addr, limit.RedisOptions{}), openRedis(t, addr, limit.RedisOptions{})}
		},
		"redis, leased": func(t *testing.T) []limit.Store {
			addr := limittest.StartRedis(t)
			var stores []limit.Store
			for range 3 {
				store := limit.NewLeased(openRedis(t, addr, limit.RedisOptions{}), limit.LeasedOptions{})
				t.Cleanup(func() { _ = store.Close() })
				stores = append(stores, store)
			}
			return stores
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stores := open(t)
			var all sync.WaitGroup
			var mu sync.Mutex
			var spans []span
			began := time.Now()
			for i := range 12 {
				all.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(i), 9))
					for time.Since(began) < 1500*time.Millisecond {
						op := limit.Op{Tag: []byte("all"), Key: []byte("sluice:{all}:shared"), Leased: true,
							Refill: limit.NewRefill(rate*limit.Unit, time.Second), Burst: burst, Cost: 1 + rng.Int64N(3)}
						ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
						from := time.Since(began)
						refused, err := stores[i%len(stores)].Take(ctx, []limit.Op{op}, make([]limit.State, 1))
						to := time.Since(began)
						cancel()
						if err == nil && refused < 0 {
							mu.Lock()
							spans = append(spans, span{from, to, op.Cost})
							mu.Unlock()
						}
						time.Sleep(time.Duration(rng.IntN(4)) * time.Millisecond)
					}
				})
			}
			all.Wait()
			slices.SortFunc(spans, func(a, b span) int { return int(a.to - b.to) })
			if len(spans) < burst/2 {
				t.Fatalf("%d decisions passed: nothing was tried", len(spans))
			}
			for _, first := range spans {
				units := int64(0)
				for _, s := range spans { // by their ends
					if s.from < first.from {
						continue
					}
					units += s.units
					// A microsecond is what a store's clock rounds.
					if most := burst + rate*(s.to-first.from+2*time.Microsecond).Seconds(); float64(units) > most+1e-6 {
						t.Fatalf("%d units passed between %v and %v, want at most %.2f", units, first.from, s.to, most)
					}
				}
			}
		})
	}
}
