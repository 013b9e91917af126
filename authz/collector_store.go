package authz

import (
	"github.com/prometheus/client_golang/prometheus"

	"sluice/authz/limit"
)

// flushing is how a store that writes later does with it.
type flushing struct {
	lag                float64 // seconds
	waiting            float64
	failures, doubtful float64
	bytes              float64
}

// StoreCollectors show how far a store that writes later is behind: an embedded one
// its file, soft quotas their Redis. Other stores have none.
func StoreCollectors(s limit.Store) []prometheus.Collector {
	switch store := s.(type) {
	case *limit.Embedded:
		return flushCollectors(func() flushing {
			st := store.Stats()
			return flushing{lag: st.Lag.Seconds(), waiting: float64(st.Waiting), failures: float64(st.Failures), bytes: float64(st.Bytes)}
		}, "Quotas that have changed and are not on disk yet.", prometheus.GaugeOpts{Name: "sluice_store_file_bytes", Help: "The size of the embedded store's file."},
			func(f flushing) float64 { return f.bytes })
	case *limit.Soft:
		return flushCollectors(func() flushing {
			st := store.Stats()
			return flushing{lag: st.Lag.Seconds(), waiting: float64(st.Pending), failures: float64(st.Failures), doubtful: float64(st.Doubtful)}
		}, "Units of soft quotas that were admitted and are not written yet.", prometheus.GaugeOpts{Name: "sluice_store_doubtful_units", Help: "Units of soft quotas that were given up: nobody said whether they were written."},
			func(f flushing) float64 { return f.doubtful })
	}
	return nil
}

func flushCollectors(read func() flushing, waiting string, own prometheus.GaugeOpts, value func(flushing) float64) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_store_flush_lag_seconds", Help: "How long ago all was written; a few seconds while all is well."}, func() float64 { return read().lag }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_store_unwritten", Help: waiting}, func() float64 { return read().waiting }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "sluice_store_flush_failures_total", Help: "Writes that failed, and are repeated."}, func() float64 { return read().failures }),
		prometheus.NewGaugeFunc(own, func() float64 { return value(read()) }),
	}
}
