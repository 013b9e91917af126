package authz

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// settled is a policy whose limits want to hear of ends.
const settled = `client_ip: {trusted_proxies: [10.0.0.0/8]}
limits: {jobs: {per: ip, concurrency: 2, lease: 10m}}
routes:
  - {name: files, match: {prefix: /files}, cost: 2, cost_from: {response_header: X-Cost, max: 8}, limits: {units: {per: global, window: 20/1h}}}
  - {name: chat, match: {prefix: /chat}, cost: 2, cost_from: {report: 10m, max: 8}, limits: {spent: {per: global, window: 20/1h}}}
  - {name: login, match: {exact: /login}, limits: {failures: {per: ip, window: 2/1h, algorithm: log, count: {status: [401]}}}}
  - {name: all, match: {prefix: /}}
responses: {headers: [ratelimit-3]}
`

// TestForwardRelease: where no datagram tells of the end, the application may, by the
// id that the answer has for it: places come free, costs and counts are settled.
func TestForwardRelease(t *testing.T) {
	t.Parallel()
	s := newSite(t, settled)
	take := func(uri string, status int, want ...string) (id string) {
		t.Helper()
		a := s.get("192.0.2.1", uri, "X-Sluice-Request: mine\r\n")
		a.want(t, uri, status, want...)
		return a.header["X-Sluice-Request"]
	}
	release := func(what string, status int) {
		t.Helper()
		if got, _, _ := s.post("/v1/release", what); got != status {
			t.Errorf("release %s: %d, want %d", what, got, status)
		}
	}
	first, second := take("/", 200), take("/", 200)
	if len(first) < 20 || first == second {
		t.Errorf("ids are %q and %q", first, second)
	}
	if id := take("/", 429, "X-Sluice-Reason: concurrency"); id != "" {
		t.Errorf("a denial has the id %q", id)
	}
	release(`{"request":"mine"}`, 404)
	release(`{"request":"`+first+`"}`, 204)
	release(`{"request":"`+first+`"}`, 404)
	third := take("/", 200)
	release(`{"request":"`+second+`"}`, 204)
	release(`{"request":"`+third+`"}`, 204)

	id := take("/files/1", 200, "RateLimit-Remaining: 1") // of jobs
	release(`{"request":"`+id+`","cost":-1}`, 400)
	release(`{"request":"`+id+`","cost":70}`, 204) // 8 at most
	id = take("/files/1", 200)
	release(`{"request":"`+id+`","cost":0}`, 204)
	id = take("/files/1", 200)
	release(`{"request":"`+id+`"}`, 204) // the estimate stays: 10 in all
	for range 5 {
		release(`{"request":"`+take("/files/1", 200)+`"}`, 204)
	}
	take("/files/1", 429, "X-Sluice-Limit: units")

	id = take("/chat", 200)
	if got, _, _ := s.post("/v1/cost", `{"request":"`+id+`","cost":7}`); got != 200 {
		t.Errorf("a report: %d", got)
	}
	release(`{"request":"`+id+`"}`, 204)

	for i := range 4 {
		release(fmt.Sprintf(`{"request":"%s","status":200}`, take("/login", 200, "X-Sluice-Degraded: ")), 204)
		if i >= 2 {
			release(fmt.Sprintf(`{"request":"%s","status":401}`, take("/login", 200)), 204)
		}
	}
	take("/login", 429, "X-Sluice-Limit: failures")
}

// TestForwardNotApplied: what does not hold there is said: in the status, and in the
// log once somebody asks, and again when it has become something else.
func TestForwardNotApplied(t *testing.T) {
	t.Parallel()
	s := newSite(t, gated)
	warned := func(n int, words ...string) {
		t.Helper()
		var lines []string
		for line := range strings.Lines(s.log.String()) {
			if strings.Contains(line, "asked at /authz") {
				lines = append(lines, line)
			}
		}
		if len(lines) != n {
			t.Fatalf("%d warnings, want %d:\n%s", len(lines), n, lines)
		}
		for _, word := range words {
			if !strings.Contains(lines[n-1], word) {
				t.Errorf("the warning does not say %q:\n%s", word, lines[n-1])
			}
		}
	}
	if status := s.engine.forwardStatus(); status.Asked || len(status.NotApplied) != 3 {
		t.Errorf("status before the first question: %+v", status)
	}
	warned(0)
	s.get("192.0.2.1", "/", "")
	s.get("192.0.2.1", "/", "")
	warned(1, `"level":"WARN"`, "access rule away means countries", "--country-db FILE", "access rule hosters means autonomous systems", "access rule home")
	s.swap(strings.Replace(gated, "name: office", "name: bureau", 1))
	s.get("192.0.2.1", "/", "")
	warned(1)
	s.swap(strings.Replace(gated, "  limits:\n", "  limits:\n    open: {per: ip, connections: 5}\n    lands: {per: country, rate: 9/s, burst: 9}\n", 1))
	s.get("192.0.2.1", "/", "")
	warned(2, "edge limit open counts connections", "edge limit lands counts by country")
	if err := s.engine.Locate(PlacesOf(world(t, 64500))); err != nil {
		t.Fatal(err)
	}
	s.get("192.0.2.1", "/", "")
	warned(3)
	if status := s.engine.forwardStatus(); !status.Asked || len(status.NotApplied) != 1 {
		t.Errorf("status with databases: %+v", status)
	}
	s.swap(settled)
	s.get("192.0.2.1", "/", "")
	warned(4, "/v1/release")
}

// TestForwardOnUnixSocket: whoever the socket's permissions let connect speaks for
// clients, as he could as NGINX; but he must say who they are.
func TestForwardOnUnixSocket(t *testing.T) {
	t.Parallel()
	r := start(t, memoryEngine(t, strings.Replace(gated, "client_ip: {trusted_proxies: [10.0.0.0/8]}\n", "", 1), newMemory()),
		ServeOptions{Listen: "unix:" + filepath.Join(t.TempDir(), "s.sock")})
	const question = "GET /authz HTTP/1.1\r\nHost: a\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\nX-Forwarded-Host: a\r\n"
	for _, f := range []struct {
		hops   string
		status int
	}{
		{"X-Forwarded-For: 192.0.2.1\r\n", 200},
		{"X-Forwarded-For: 203.0.113.1\r\n", 403},               // a rule refuses him
		{"X-Forwarded-For: 192.0.2.1, 203.0.113.1\r\n", 403},    // whatever he says
		{"X-Forwarded-For: 198.51.100.1, 203.0.113.1\r\n", 403}, // no proxy is trusted to name another
		{"", 400},
	} {
		if resp, _, _ := r.exchange(t, question+f.hops+"\r\n"); resp.StatusCode != f.status {
			t.Errorf("%q: status %d, want %d", f.hops, resp.StatusCode, f.status)
		}
	}
}
