package directory

import "github.com/prometheus/client_golang/prometheus"

// collector tells what came of reads.
type collector struct {
	directory *Directory
	reads     *prometheus.Desc
	refused   *prometheus.Desc
	heard     *prometheus.Desc
}

// Collector is what /metrics shows of the directory.
func (d *Directory) Collector() prometheus.Collector {
	return &collector{
		d,
		prometheus.NewDesc("sluice_tenant_reads_total", "Records of tenants and keys that were read from Redis, by result: found, nobody, failed.", []string{"result"}, nil),
		prometheus.NewDesc("sluice_tenant_records_refused_total", "Records of tenants and keys in Redis that let nobody in: they cannot be read, or the policy lacks what they name.", nil, nil),
		prometheus.NewDesc("sluice_tenant_changes_heard", "1 when somebody listens to changes of tenants, 0 before the first time.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.reads
	ch <- c.refused
	ch <- c.heard
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	found, nobody, failed := c.directory.Counts()
	for _, n := range []struct {
		count  uint64
		result string
	}{{found, "found"}, {nobody, "nobody"}, {failed, "failed"}} {
		ch <- prometheus.MustNewConstMetric(c.reads, prometheus.CounterValue, float64(n.count), n.result)
	}
	ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(c.directory.Refused()))
	heard := 0.0
	if c.directory.heard.Load() {
		heard = 1
	}
	ch <- prometheus.MustNewConstMetric(c.heard, prometheus.GaugeValue, heard)
}
