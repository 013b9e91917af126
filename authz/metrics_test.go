package authz

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sluice/authz/limit"
	"sluice/policies"
)

// scrape is what /metrics shows: series by name and labels.
func scrape(t testing.TB, r *prometheus.Registry) (series map[string]float64, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("scrape: status %d\n%s", w.Code, w.Body)
	}
	series = map[string]float64{}
	for _, line := range strings.Split(w.Body.String(), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		var n float64
		if _, err := fmt.Sscan(line[i+1:], &n); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		series[line[:i]] = n
	}
	return series, w.Body.String()
}

func wantSeries(t *testing.T, got map[string]float64, want map[string]float64) {
	t.Helper()
	for name, n := range want {
		if g, ok := got[name]; !ok || g != n {
			t.Errorf("%s is %v (there: %t), want %v", name, g, ok, n)
		}
	}
}

func TestMetrics(t *testing.T) {
	s := newSite(t, strings.Replace(shop, "routes:\n", "limits: {watch: {per: global, rate: 1/h, burst: 1, mode: shadow}}\nroutes:\n", 1))
	registry := NewRegistry(s.engine, nil, "v1.2.3")
	s.passes(5, "rest")                               // 3 pass
	s.passes(2, "rest", key("sk_a"))                  // free
	s.decide("rest", key("sk_nobody"))                // a bad key
	s.decide("search", key("sk_a"))                   // 5 of its 10
	s.decide("search", key("sk_a"))                   // refused: 3 are left
	s.decide("nobody_knows", uri("/search?q=secret")) // skew, and refused: matched by path
	got, text := scrape(t, registry)
	wantSeries(t, got, map[string]float64{
		`sluice_requests_total{plan="anonymous",route="rest",verdict="allow"}`:                  3,
		`sluice_requests_total{plan="anonymous",route="rest",verdict="deny"}`:                   2,
		`sluice_requests_total{plan="free",route="rest",verdict="allow"}`:                       2,
		`sluice_requests_total{plan="",route="rest",verdict="deny"}`:                            1,
		`sluice_requests_total{plan="free",route="search",verdict="deny"}`:                      1,
		`sluice_rate_limited_total{limit="speed",reason="rate",route="rest",tenant=""}`:         2,
		`sluice_rate_limited_total{limit="speed",reason="rate",route="search",tenant="globex"}`: 1,
		`sluice_would_deny_total{limit="watch",reason="rate",route="rest",tenant=""}`:           3, // one refusal was not asked about
		`sluice_answers_recalled_total{kind="refusal"}`:                                         1,
		`sluice_remaining_tokens{limit="speed",tenant="globex"}`:                                3,
		`sluice_decisions_total{reason="credential",verdict="deny"}`:                            1,
		`sluice_policy_skew_total`:      1,
		`sluice_panics_total`:           0,
		`sluice_store_errors_total`:     0,
		`sluice_store_degraded`:         0,
		`sluice_decision_seconds_count`: 11,
		fmt.Sprintf(`sluice_policy_info{hash="%s",mode="enforce"}`, s.engine.Policy().Hash):   1,
		fmt.Sprintf(`sluice_build_info{goversion="%s",version="v1.2.3"}`, goVersion(t, text)): 1,
		`sluice_decision_seconds_bucket{le="+Inf"}`:                                           11,
	})
	// C119, C120: no key, address, path or method.
	for _, bad := range []string{"sk_", "192.0.2", "secret", "/search", "GET", "api.example", "globex-a"} {
		if strings.Contains(text, bad) {
			t.Errorf("metrics contain %q", bad)
		}
	}
}

func goVersion(t *testing.T, text string) string {
	t.Helper()
	_, rest, _ := strings.Cut(text, `goversion="`)
	v, _, _ := strings.Cut(rest, `"`)
	return v
}

// A store that is away is counted, and shown as degraded for a while.
func TestMetricsOfTrouble(t *testing.T) {
	memory := limit.NewMemory(limit.MemoryOptions{})
	s := newSiteOn(t, shop, newSite(t, "").clock, memory)
	registry := NewRegistry(s.engine, nil, "")
	memory.Close()
	s.decide("rest")
	s.decide("closed")
	got, _ := scrape(t, registry)
	wantSeries(t, got, map[string]float64{
		`sluice_store_errors_total`: 2, `sluice_store_degraded`: 1,
		`sluice_requests_total{plan="anonymous",route="rest",verdict="degraded"}`: 1,
		`sluice_requests_total{plan="anonymous",route="closed",verdict="deny"}`:   1,
	})
	if s.engine.storeTrouble.now(time.Now().Add(troubleFor)) {
		t.Error("degraded for ever")
	}
}

// Reloads lose no count, whatever comes and goes.
func TestCountersOutliveReloads(t *testing.T) {
	s := newSite(t, shop)
	registry := NewRegistry(s.engine, nil, "")
	last := map[string]float64{}
	for i := range 60 {
		s.passes(20, "rest", key("sk_a"))
		s.passes(5, "search")
		got, _ := scrape(t, registry)
		for name, n := range last {
			if counts(name) && got[name] < n {
				t.Fatalf("reload %d: %s fell from %v to %v", i, name, n, got[name])
			}
		}
		last = maps.Clone(got)
		s.swap([]string{
			shop,
			strings.Replace(shop, "name: search", fmt.Sprintf("name: search%d", i), 1),
			strings.ReplaceAll(shop, "globex", fmt.Sprintf("globex%d", i)),
		}[i%3])
	}
	if n := last[`sluice_rate_limited_total{limit="org",reason="rate",route="rest",tenant="globex"}`] + last[`sluice_rate_limited_total{limit="speed",reason="rate",route="rest",tenant="globex"}`]; n < 500 {
		t.Errorf("globex was refused %v times, want all of some 700", n)
	}
}

// counts tells whether a series is a counter's.
func counts(name string) bool {
	name, _, _ = strings.Cut(name, "{")
	return strings.HasPrefix(name, "sluice_") && (strings.HasSuffix(name, "_total") || strings.HasSuffix(name, "_count") || strings.HasSuffix(name, "_bucket"))
}

// C120: 100,000 tenants, and whatever clients send, leave the series bounded;
// the busiest tenants are told by name.
func TestSeriesAreBounded(t *testing.T) {
	c := *compile(t, shop)
	tenant := c.Tenants[1]
	c.Tenants = nil
	for i := range 100_000 {
		tenant.ID = fmt.Sprintf("tenant-%d", i)
		c.Tenants = append(c.Tenants, tenant)
	}
	s := newSite(t, "")
	if err := s.engine.Swap(&c); err != nil {
		t.Fatal(err)
	}
	registry := NewRegistry(s.engine, nil, "")
	b := s.engine.state.Load()
	ask := func(tenant, times int) {
		for range times {
			d := Decision{Tenant: c.Tenants[tenant].ID, Verdict: Deny, Reason: ReasonRate, routeLabel: uint32(tenant % 5), meter: b.tenants[tenant].meter, bound: b}
			r := &b.tenants[tenant].rules[0]
			d.rules, d.ops, d.states = []*rule{r}, []limit.Op{r.op}, []limit.State{{}}
			s.engine.metrics.count(&d, 0)
		}
	}
	for i := range 100_000 {
		ask(i, 1)
		s.decide("rest", ip(fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)), uri(fmt.Sprintf("/%d?%d", i, i)),
			method(fmt.Sprintf("M%d", i)), policies.HeaderHost+": "+fmt.Sprintf("h%d.example\xff", i),
			policies.HeaderPolicy+": "+fmt.Sprintf("%016x", i), fmt.Sprintf("X-Api-Key: k%d", i))
	}
	for i := range 300 {
		s.decide(fmt.Sprintf("route%d", i), uri("/x"))
	}
	ask(77_777, 500)
	scrape(t, registry)
	ask(77_777, 5) // from now on by name
	got, _ := scrape(t, registry)
	n := 0
	for name := range got {
		if strings.HasPrefix(name, "sluice_") {
			n++
		}
	}
	if n > 1000 {
		t.Errorf("%d series", n)
	}
	named := 0.0
	for name, n := range got {
		if strings.HasPrefix(name, "sluice_rate_limited_total{") && strings.HasSuffix(name, `tenant="tenant-77777"}`) {
			named += n
		}
	}
	if named != 5 {
		t.Errorf("the busiest tenant was refused %v times under his name, want 5", named)
	}
	if n := len(s.engine.metrics.accounts.named); n != maxAccounts {
		t.Errorf("%d accounts, want %d", n, maxAccounts)
	}
}

// A table that is full counts under other, and loses nothing.
func TestTallyFull(t *testing.T) {
	tl := newTally(64)
	rest := uint64(1)<<63 | 1
	tl.reserve(rest)
	for i := range uint64(1000) {
		tl.add(1<<63|(i+2), rest, 1)
	}
	sum, keys := uint64(0), 0
	tl.each(func(_, n uint64) { sum += n; keys++ })
	if sum != 1000 || keys > 43 {
		t.Errorf("%d counted under %d keys, want 1000 under at most 43", sum, keys)
	}
}

// promtool knows what metrics should look like.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("promtool is not installed")
		}
		t.Skip("promtool is not installed")
	}
	s := newSite(t, shop)
	registry := NewRegistry(s.engine, NewReloader(s.engine, nil, s.engine.log), "v1")
	for _, q := range questions() {
		s.decide(q[0], q[1:]...)
	}
	_, text := scrape(t, registry)
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	var out bytes.Buffer
	check.Stdout, check.Stderr = &out, &out
	if err := check.Run(); err != nil || out.Len() > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out.String())
	}
}

// Times of decisions fall into the bucket whose bound they do not exceed.
func TestTimeBuckets(t *testing.T) {
	m := newMetrics()
	for _, d := range []time.Duration{-1, 0, time.Microsecond, time.Microsecond + 1, 2 * time.Microsecond, 3 * time.Microsecond, 131072 * time.Microsecond, 131073 * time.Microsecond, time.Hour} {
		m.observe(d)
	}
	want := map[int]uint64{0: 3, 1: 2, 2: 1, 17: 1, 18: 2}
	for i := range m.times {
		if n := m.times[i].Load(); n != want[i] {
			t.Errorf("bucket %d has %d, want %d", i, n, want[i])
		}
	}
}
