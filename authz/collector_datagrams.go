package authz

import "github.com/prometheus/client_golang/prometheus"

// datagramCollector tells what came of NGINX's datagrams.
type datagramCollector struct {
	datagrams *Datagrams
	total     *prometheus.Desc
}

// Collector is what /metrics shows of the datagrams.
func (l *Datagrams) Collector() prometheus.Collector {
	return &datagramCollector{l, prometheus.NewDesc("sluice_datagrams_total",
		"NGINX's messages about ends of requests: settled, unknown (another instance's, or nothing to settle), bad, stranger, lost, failed (the store).",
		[]string{"result"}, nil)}
}

// Describe implements prometheus.Collector.
func (c *datagramCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.total }

// Collect implements prometheus.Collector.
func (c *datagramCollector) Collect(ch chan<- prometheus.Metric) {
	n := c.datagrams.Counts()
	counter(ch, c.total, n.Settled, "settled")
	counter(ch, c.total, n.Unknown, "unknown")
	counter(ch, c.total, n.Bad, "bad")
	counter(ch, c.total, n.Strangers, "stranger")
	counter(ch, c.total, n.Lost, "lost")
	counter(ch, c.total, n.Failed, "failed")
}
