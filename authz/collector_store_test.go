package authz

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// What is not written yet is shown, and for how long.
func TestStoreCollectors(t *testing.T) {
	t.Parallel()
	embedded, err := limit.OpenEmbedded(filepath.Join(t.TempDir(), "sluice.db"), limit.EmbeddedOptions{FlushEvery: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	soft := limit.NewSoft(limit.NewMemory(limit.MemoryOptions{}), limit.SoftOptions{FlushEvery: time.Hour})
	for name, store := range map[string]limit.Store{"file_bytes": embedded, "doubtful_units": soft} {
		t.Cleanup(func() { _ = store.Close() })
		s := newSiteOn(t, `
limits: {daily: {per: ip, quota: 1000/day, accounting: soft}}
routes: [{name: rest, match: {prefix: /}}]
`, limittest.NewClock(), store)
		s.passes(3, "rest")
		registry := prometheus.NewRegistry()
		registry.MustRegister(StoreCollectors(store)...)
		series, _ := scrape(t, registry)
		if series["sluice_store_unwritten"] < 1 || series["sluice_store_flush_failures_total"] != 0 {
			t.Errorf("%T: %v", store, series)
		}
		if _, ok := series["sluice_store_"+name]; !ok || len(series) != 4 {
			t.Errorf("%T: no %s in %v", store, name, series)
		}
	}
	if StoreCollectors(limit.NewMemory(limit.MemoryOptions{})) != nil {
		t.Error("a store that writes nothing has something to write")
	}
}
