package limit_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"sluice/authz/limit"
)

// BenchmarkEmbedded charges quotas that a thousand tenants share: hard ones by many
// clients at once, who share commits, and soft ones, who wait for nothing.
func BenchmarkEmbedded(b *testing.B) {
	for _, clients := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("hard/clients=%d", clients), func(b *testing.B) { benchmarkEmbedded(b, clients, false) })
	}
	b.Run("soft/clients=2", func(b *testing.B) { benchmarkEmbedded(b, 2, true) })
}

func benchmarkEmbedded(b *testing.B, clients int, soft bool) {
	store := openEmbedded(b, filepath.Join(b.TempDir(), "sluice.db"), limit.EmbeddedOptions{})
	var tags, keys [1000][]byte
	for i := range keys {
		tags[i] = fmt.Appendf(nil, "tenant-%d", i)
		keys[i] = fmt.Appendf(nil, "sluice:{tenant-%d}:month", i)
	}
	var next atomic.Int64
	b.SetParallelism(max(1, clients/2)) // two processors
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		op := limit.Op{Kind: limit.Quota, Soft: soft, Max: 1 << 40, Cost: 1, Calendar: utcMonths}
		ops, states := []limit.Op{op}, make([]limit.State, 1)
		for pb.Next() {
			i := next.Add(7) % 1000
			ops[0].Tag, ops[0].Key = tags[i], keys[i]
			if _, err := store.Take(b.Context(), ops, states); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/float64(max(1, store.Stats().Commits)), "charges/commit")
}
