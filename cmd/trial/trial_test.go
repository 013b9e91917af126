package trial_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/cmd/trial"
	"sluice/policies"
	"sluice/policies/edge"
)

func compiled(t testing.TB, src string) *policies.Compiled {
	t.Helper()
	p, ds := policies.Parse("policy.yaml", []byte(src), nil)
	if ds.HasErrors() {
		t.Fatalf("the policy of the test is not good: %v", ds)
	}
	return policies.Compile(p)
}

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func newTrial(t testing.TB, src string, keys ...string) (*trial.Trial, map[string]*trial.Key) {
	t.Helper()
	c, named, err := trial.Keys(compiled(t, src), keys)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trial.New(c, trial.Options{Start: start()})
	if err != nil {
		t.Fatal(err)
	}
	return tr, named
}

func get(at time.Duration, path string) *trial.Request {
	return &trial.Request{
		Request: edge.Request{Peer: netip.MustParseAddr("192.0.2.7"), URI: path, Host: "example.com"},
		At:      start().Add(at),
	}
}

// line is an outcome in short.
func line(o *trial.Outcome) string {
	return strings.TrimSpace(fmt.Sprintf("%s %d %s %s %s", o.At.Sub(start()), o.Status, o.By, o.Reason, o.Limit))
}

const twoFloors = `version: 1
identity:
  sources: [{api_key: {header: X-API-Key}}]
  missing: {plan: anonymous}
edge: {limits: {per_ip: {per: ip, rate: 1/s, burst: 4}}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1/s, burst: 2}}}
  pro: {limits: {speed: {per: key, rate: 1/s, burst: 100}}}
tenants:
  - id: acme
    plan: pro
    keys: [{id: acme-web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]
`

// TestBothFloors: the edge refuses what the service would let pass, and the
// other way round.
func TestBothFloors(t *testing.T) {
	t.Parallel()
	tr, keys := newTrial(t, twoFloors, "acme-web")
	var got []string
	note := func(o *trial.Outcome) { got = append(got, line(o)+" "+o.Tenant) }
	for range 3 {
		tr.Submit(get(0, "/"), note)
	}
	for range 2 {
		r := get(0, "/")
		r.Key = keys["acme-web"]
		tr.Submit(r, note)
		if len(r.Header) != 0 {
			t.Errorf("the request keeps the credential: %v", r.Header)
		}
	}
	want := []string{"0s 200 ", "0s 200 ", "0s 429 service rate speed ", "0s 200 acme", "0s 429 edge edge_rate per_ip "}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRealKeys: a credential that is shown counts beside those that stand in.
func TestRealKeys(t *testing.T) {
	t.Parallel()
	tr, _ := newTrial(t, twoFloors, "acme-web")
	r := get(0, "/")
	r.Header = []edge.Field{{Name: "X-API-Key", Value: "sk_demo_acme_web"}}
	tr.Run(r, func(o *trial.Outcome) {
		if o.Tenant != "acme" || o.Key != "acme-web" || o.Plan != "pro" {
			t.Errorf("tenant %q, key %q, plan %q", o.Tenant, o.Key, o.Plan)
		}
	})
}

// TestHeld: what the edge holds reaches the service later than what came after it.
func TestHeld(t *testing.T) {
	t.Parallel()
	tr, _ := newTrial(t, `version: 1
edge: {limits: {shape: {per: ip, rate: 2/s, burst: 3, delay: all, routes: [slow]}}}
limits: {all: {per: global, rate: 1/s, burst: 3}}
routes: [{name: slow, match: {prefix: /slow}}, {name: rest, match: {prefix: /}}]
`)
	var got []string
	submit := func(at time.Duration, path string) {
		tr.Submit(get(at, path), func(o *trial.Outcome) { got = append(got, path+" "+line(o)) })
	}
	submit(0, "/slow")
	submit(0, "/slow")
	submit(0, "/slow")
	submit(100*time.Millisecond, "/a")
	tr.Drain()
	want := []string{"/slow 0s 200", "/a 100ms 200", "/slow 500ms 200", "/slow 1s 200"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTakes: connections and leases are free when requests end, and an answer
// whose status does not count is given back.
func TestTakes(t *testing.T) {
	t.Parallel()
	tr, _ := newTrial(t, `version: 1
edge: {limits: {conns: {per: ip, connections: 2, routes: [edge]}}}
routes:
  - {name: edge, match: {prefix: /edge}}
  - name: jobs
    match: {prefix: /jobs}
    limits: {jobs: {per: ip, concurrency: 1, lease: 1m}}
  - name: login
    match: {exact: /login}
    limits: {failures: {per: ip, window: 1/1h, algorithm: fixed, count: {status: [401]}}}
`)
	var got []string
	submit := func(at time.Duration, path string, takes time.Duration, status int) {
		r := get(at, path)
		r.Takes, r.Status = takes, status
		tr.Submit(r, func(o *trial.Outcome) { got = append(got, path+" "+line(o)) })
	}
	submit(0, "/edge", time.Second, 0)
	submit(0, "/edge", 3*time.Second, 0)
	submit(0, "/edge", 0, 0)
	submit(0, "/jobs", time.Second, 0)
	submit(0, "/jobs", 0, 0)
	submit(time.Second, "/edge", 0, 0)
	submit(time.Second, "/jobs", 0, 0)
	submit(time.Second, "/jobs", 0, 0)
	submit(2*time.Second, "/login", 0, 200)
	submit(2*time.Second, "/login", 0, 401)
	submit(2*time.Second, "/login", 0, 200)
	want := []string{
		"/edge 0s 200", "/edge 0s 200", "/edge 0s 429 edge edge_conn conns",
		"/jobs 0s 200", "/jobs 0s 429 service concurrency jobs",
		"/edge 1s 200", "/jobs 1s 200", "/jobs 1s 200",
		"/login 2s 200", "/login 2s 401", "/login 2s 429 service window failures",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
