package authz

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry is what /metrics shows: the engine's numbers, how reloading goes
// (r may be nil), the process, and which build this is.
func NewRegistry(e *Engine, r *Reloader, version string) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newEngineCollector(e),
	)
	if r != nil {
		registry.MustRegister(newReloadCollector(r))
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "The version of this build; always 1.",
		ConstLabels: prometheus.Labels{"version": labelText(version), "goversion": runtime.Version()},
	})
	build.Set(1)
	registry.MustRegister(build)
	return registry
}

// engineCollector reads an engine's numbers when they are asked for.
type engineCollector struct {
	engine *Engine

	requests, decisions, limited, wouldDeny, remaining   *prometheus.Desc
	seconds, tokens, storeErrors, degraded, skew, panics *prometheus.Desc
	policy, since, recalled, breaker, breakerOpened      *prometheus.Desc
	built                                                *prometheus.Desc
}

func newEngineCollector(e *Engine) *engineCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("sluice_"+name, help, labels, nil)
	}
	return &engineCollector{
		engine:        e,
		requests:      desc("requests_total", "Decisions by route, plan and verdict: allow, deny or degraded.", "route", "plan", "verdict"),
		decisions:     desc("decisions_total", "Decisions by verdict and the reason for it.", "verdict", "reason"),
		limited:       desc("rate_limited_total", "Requests that a limit refused. The busiest tenants have their own label, the rest is other.", "tenant", "route", "limit", "reason"),
		wouldDeny:     desc("would_deny_total", "Requests that passed and that a limit in shadow would have refused.", "tenant", "route", "limit", "reason"),
		remaining:     desc("remaining_tokens", "What the last decision left of a limit, for the busiest tenants.", "tenant", "limit"),
		seconds:       desc("decision_seconds", "How long decisions took, the store included, holding an answer excluded."),
		tokens:        desc("token_refused_total", "Signed tokens that were not good, by why: malformed, unknown_key, signature, expired, not_yet, audience or claims.", "why"),
		storeErrors:   desc("store_errors_total", "Decisions that the store left to the fail mode."),
		degraded:      desc("store_degraded", "1 when the store has left a decision to the fail mode within the last 10 seconds."),
		breaker:       desc("store_breaker_state", "Whether the store is asked: 0 yes, 1 by a few to see how it is, 2 no."),
		breakerOpened: desc("store_breaker_opened_total", "How often the store failed so much that it was not asked for a while."),
		skew:          desc("policy_skew_total", "Questions from a configuration that was rendered from another policy."),
		panics:        desc("panics_total", "Decisions that a mistake in this program left to the fail mode."),
		policy:        desc("policy_info", "The policy in force, by its hash; always 1.", "hash", "mode"),
		recalled:      desc("answers_recalled_total", "Answers given again without asking the store: to a visit that had its answer, or while a refusal is fresh.", "kind"),
		built:         desc("geo_database_built_timestamp_seconds", "When a database that says where clients are was built.", "database"),
		since:         desc("policy_loaded_timestamp_seconds", "When the policy in force was put in force."),
	}
}

// Describe implements prometheus.Collector.
func (c *engineCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.requests, c.decisions, c.limited, c.wouldDeny, c.remaining, c.seconds,
		c.tokens, c.storeErrors, c.degraded, c.skew, c.panics, c.policy, c.since, c.recalled, c.breaker, c.breakerOpened, c.built,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *engineCollector) Collect(ch chan<- prometheus.Metric) {
	now := time.Now()
	c.engine.metrics.accounts.rank(now)
	names := c.engine.metrics.labels.all()
	c.collectRequests(ch, names)
	for _, a := range c.engine.metrics.accounts.list() {
		c.collectAccount(ch, a, names)
	}
	c.collectTimes(ch)
	c.collectEngine(ch, now)
}

func counter(ch chan<- prometheus.Metric, d *prometheus.Desc, n uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, n float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, n, labels...)
}

func (c *engineCollector) collectRequests(ch chan<- prometheus.Metric, names []string) {
	c.engine.metrics.requests.each(func(key, n uint64) {
		if n > 0 {
			verdict := Verdict(key >> 48 & 0xff)
			counter(ch, c.requests, n, names[key>>24&0xffffff], names[key&0xffffff], verdict.String())
		}
	})
}

func (c *engineCollector) collectAccount(ch chan<- prometheus.Metric, a *account, names []string) {
	a.refuses.each(func(key, n uint64) {
		if n == 0 {
			return
		}
		r, desc := refusalOf(key), c.limited
		if r.shadow {
			desc = c.wouldDeny
		}
		counter(ch, desc, n, a.name, names[r.route], names[r.limit], r.reason.String())
	})
	if a.left != nil {
		a.left.each(func(key, n uint64) {
			gauge(ch, c.remaining, float64(int64(n)), a.name, names[key&0xffffff])
		})
	}
}

func (c *engineCollector) collectTimes(ch chan<- prometheus.Metric) {
	m := c.engine.metrics
	buckets, sum := map[float64]uint64{}, uint64(0)
	for i := range timeBuckets {
		sum += m.times[i].Load()
		buckets[float64(time.Microsecond<<i)/float64(time.Second)] = sum
	}
	sum += m.times[timeBuckets].Load()
	ch <- prometheus.MustNewConstHistogram(c.seconds, sum, float64(m.spent.Load())/float64(time.Second), buckets)
}

func (c *engineCollector) collectEngine(ch chan<- prometheus.Metric, now time.Time) {
	counts := c.engine.Counters()
	for f := range c.engine.counters.tokens {
		if why := tokenFault(f).String(); why != "" {
			counter(ch, c.tokens, c.engine.counters.tokens[f].Load(), why)
		}
	}
	for _, n := range counts.Requests {
		counter(ch, c.decisions, n.N, n.Verdict.String(), n.Reason.String())
	}
	counter(ch, c.storeErrors, counts.StoreErrors)
	counter(ch, c.skew, counts.Skew)
	counter(ch, c.panics, counts.Panics)
	counter(ch, c.recalled, counts.Visits, "visit")
	counter(ch, c.recalled, counts.Refusals, "refusal")
	degraded := 0.0
	if c.engine.storeTrouble.now(now) {
		degraded = 1
	}
	gauge(ch, c.degraded, degraded)
	if b := c.engine.breaker; b != nil {
		gauge(ch, c.breaker, float64(b.State()))
		counter(ch, c.breakerOpened, b.Opened())
	}
	for _, db := range c.engine.databases() {
		gauge(ch, c.built, seconds(db.Built), db.Knows)
	}
	if b := c.engine.state.Load(); b != nil {
		gauge(ch, c.policy, 1, b.policy.Hash, string(b.policy.Mode))
		gauge(ch, c.since, seconds(b.since))
	}
}

// seconds is a time as metrics have it.
func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// hashText is the text of a policy's hash: see hashNumber.
func hashText(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%016x", n)
}

// reloadCollector tells how reloading goes.
type reloadCollector struct {
	reloader              *Reloader
	reloads, last, lastAt *prometheus.Desc
}

func newReloadCollector(r *Reloader) *reloadCollector {
	return &reloadCollector{
		reloader: r,
		reloads:  prometheus.NewDesc("sluice_reloads_total", "How often the policy was read again, by result.", []string{"result"}, nil),
		last:     prometheus.NewDesc("sluice_reload_successful", "1 when the newest policy is in force, 0 when it is broken and the last good one serves.", nil, nil),
		lastAt:   prometheus.NewDesc("sluice_reload_timestamp_seconds", "When the policy was last read again; 0 for never.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *reloadCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.reloads
	ch <- c.last
	ch <- c.lastAt
}

// Collect implements prometheus.Collector.
func (c *reloadCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.reloader.Status()
	counter(ch, c.reloads, uint64(s.Loads-s.Failures), "success")
	counter(ch, c.reloads, uint64(s.Failures), "failure")
	good := 1.0
	if s.Err != nil {
		good = 0
	}
	gauge(ch, c.last, good)
	at := 0.0
	if !s.At.IsZero() {
		at = seconds(s.At)
	}
	gauge(ch, c.lastAt, at)
}
