package cmd

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit/limittest"
)

// TestEndToEnd is the main job on real programs: a policy rendered into a site
// that does its best to be in the way, NGINX asking `sluice serve`, on the
// embedded store and on a real Redis.
func TestEndToEnd(t *testing.T) {
	for _, store := range []string{"embedded", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			url := "embedded:" + filepath.Join(t.TempDir(), "sluice.db")
			if store == "redis" {
				url = "redis://" + limittest.StartRedis(t)
			}
			s := startStack(t, url)
			http1, http2 := clients()
			t.Run("allowed", func(t *testing.T) { testAllowed(t, s, http1) })
			t.Run("refused by the bucket", func(t *testing.T) { testRefused(t, s, http1) })
			t.Run("refused by the edge", func(t *testing.T) { testEdge(t, s, http1) })
			t.Run("the app's own statuses", func(t *testing.T) { testOwnStatuses(t, s, http1) })
			t.Run("charged once", func(t *testing.T) { testChargedOnce(t, s, http1) })
			t.Run("HTTP/2", func(t *testing.T) { testHTTP2(t, s, http2) })
			t.Run("other kinds", func(t *testing.T) { testOtherKinds(t, s, http1) })
			t.Run("admin", func(t *testing.T) { testAdmin(t, s, http1) })
			t.Run("reload", func(t *testing.T) { testReload(t, s, http1) })
			t.Run("service away", func(t *testing.T) { testServiceAway(t, s, http1, url) })
			t.Run("secrets", func(t *testing.T) { testSecrets(t, s) })
		})
	}
}

// left is what RateLimit says remains.
func left(t *testing.T, a answer) int {
	t.Helper()
	_, rest, ok := strings.Cut(a.header.Get("RateLimit"), ";r=")
	number, _, _ := strings.Cut(rest, ";")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		t.Fatalf("status %d, RateLimit %q has no r", a.status, a.header.Get("RateLimit"))
	}
	return n
}

func testAllowed(t *testing.T, s *stack, c *http.Client) {
	a := ask(t, c, "GET", s.http1+"/v1/items", "X-API-Key", webKey)
	if a.status != 200 || a.body != "the app's own page\n" {
		t.Fatalf("status %d, body %q; want the app's page", a.status, a.body)
	}
	// C106: one value of each, ours.
	if got := a.header.Values("RateLimit"); len(got) != 1 || left(t, a) != 19 {
		t.Errorf("RateLimit = %q; want one with 19 left", got)
	}
	if got := a.header.Get("RateLimit-Policy"); !strings.Contains(got, `"speed";q=20;w=1200`) || !strings.Contains(got, `"org";q=1000;w=3600000`) {
		t.Errorf("RateLimit-Policy = %q; want both limits", got)
	}
	if got := a.header.Get("X-RateLimit-Limit"); got != "20" {
		t.Errorf("X-RateLimit-Limit = %q; want 20", got)
	}
	if got := a.header.Get("X-Frame-Options"); got != "DENY" {
		t.Errorf("the site's own header is %q; want DENY", got) // C010
	}
	if got := s.app.header("X-Sluice-Tenant") + "/" + s.app.header("X-Sluice-Plan"); got != "acme/free" {
		t.Errorf("the app sees tenant and plan %q; want acme/free", got)
	}
	// Weighted: a search takes five.
	if a = ask(t, c, "GET", s.http1+"/v1/search?q=x", "X-API-Key", webKey); left(t, a) != 14 {
		t.Errorf("after a search %d are left; want 14", left(t, a))
	}
	// A credential of another kind, and a client's own X-Sluice headers mean nothing.
	a = ask(t, c, "GET", s.http1+"/v1/items?x=1&api_key="+webKey, "X-Sluice-Exempt", "1", "X-Sluice-Tenant", "globex")
	if left(t, a) != 13 || s.app.header("X-Sluice-Tenant") != "acme" {
		t.Errorf("key in the query: %d left, tenant %q; want 13, acme", left(t, a), s.app.header("X-Sluice-Tenant"))
	}
	// No key: the address is the subject, a whole /64 of IPv6 is one. C056
	a = ask(t, c, "GET", s.http1+"/v1/items", "X-Forwarded-For", "2001:db8:1:2::1")
	b := ask(t, c, "GET", s.http1+"/v1/items", "X-Forwarded-For", "2001:db8:1:2:ffff::9")
	if left(t, a) != 9 || left(t, b) != 8 {
		t.Errorf("two addresses of one /64 have %d and %d left; want 9 and 8", left(t, a), left(t, b))
	}
	if a = ask(t, c, "GET", s.http1+"/healthz"); a.status != 200 || a.header.Get("RateLimit-Policy") != "" {
		t.Errorf("exempt route: status %d, RateLimit-Policy %q; want 200 and none", a.status, a.header.Get("RateLimit-Policy"))
	}
}

func testRefused(t *testing.T, s *stack, c *http.Client) {
	for i := range 4 {
		if a := ask(t, c, "GET", s.http1+"/v1/search", "X-API-Key", batchKey); a.status != 200 {
			t.Fatalf("search %d: status %d; want 200", i, a.status)
		}
	}
	before := s.app.requests()
	reused := false
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
	req, _ := http.NewRequest("GET", s.http1+"/v1/search", nil)
	req.Header.Set("X-API-Key", batchKey)
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	// C001: a true 429. The fifth token of 60 an hour is five minutes away.
	if resp.StatusCode != 429 {
		t.Fatalf("status %d; want 429", resp.StatusCode)
	}
	for name, want := range map[string]string{
		"X-Sluice-Limit": "speed", "X-Sluice-Reason": "rate", "Cache-Control": "no-store", "Content-Type": "application/problem+json",
		"X-RateLimit-Remaining": "0", "X-Sluice-Tenant": "",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s = %q; want %q", name, got, want)
		}
	}
	// C103: whole seconds, the time until this cost fits.
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err != nil || seconds < 295 || seconds > 300 {
		t.Errorf("Retry-After = %q; want some 300 s", resp.Header.Get("Retry-After"))
	}
	if !strings.Contains(string(body), `"status":429`) && !strings.Contains(string(body), `"status": 429`) {
		t.Errorf("body %q; want problem+json", body)
	}
	if got := s.app.requests(); got != before {
		t.Errorf("the app saw %d requests of the refused one", got-before)
	}
	// Keep-alive is kept after a denial.
	a := ask(t, c, "GET", s.http1+"/v1/items", "X-API-Key", "sk_nobody")
	if !reused || a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("after a denial: connection reused %t; unknown key: status %d, WWW-Authenticate %q", reused, a.status, a.header.Get("WWW-Authenticate"))
	}
	if a = ask(t, c, "HEAD", s.http1+"/v1/search", "X-API-Key", batchKey); a.status != 429 || a.body != "" {
		t.Errorf("HEAD: status %d, body %q; want 429 without", a.status, a.body)
	}
	testLargeBody(t, s)
}

// testLargeBody announces 50 MB, sends none of it, and is refused at once. C005
func testLargeBody(t *testing.T, s *stack) {
	conn := s.dial(t)
	fmt.Fprintf(conn, "POST /v1/search HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: 52428800\r\n\r\n", batchKey)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 429 {
		t.Fatalf("a large upload over the limit: %v, %v; want 429", resp, err)
	}
}

func testEdge(t *testing.T, s *stack, c *http.Client) {
	for i := range 3 {
		if a := ask(t, c, "GET", s.http1+"/signup", "X-Forwarded-For", "192.0.2.1"); a.status != 200 {
			t.Errorf("signup %d: status %d; want 200", i, a.status)
		}
	}
	// C021 C022: 429 with Retry-After from the edge too.
	a := ask(t, c, "GET", s.http1+"/signup", "X-Forwarded-For", "192.0.2.1")
	if a.status != 429 || a.header.Get("Retry-After") != "60" || a.header.Get("X-Sluice-Reason") != "edge_rate" {
		t.Errorf("edge: status %d, Retry-After %q, reason %q; want 429, 60, edge_rate", a.status, a.header.Get("Retry-After"), a.header.Get("X-Sluice-Reason"))
	}
	if a = ask(t, c, "GET", s.http1+"/signup", "X-Forwarded-For", "192.0.2.2"); a.status != 200 {
		t.Errorf("another address: status %d; want 200", a.status)
	}
	if a = ask(t, c, "GET", s.http1+"/v1/items", "X-Forwarded-For", "198.51.100.9"); a.status != 403 || a.header.Get("X-Sluice-Reason") != "access" {
		t.Errorf("blocked network: status %d, reason %q; want 403, access", a.status, a.header.Get("X-Sluice-Reason"))
	}
	if a = ask(t, c, "GET", s.http1+"/", "X-Forwarded-For", "203.0.113.9"); a.status != 451 {
		t.Errorf("sanctioned network: status %d; want 451", a.status)
	}
	// C051: what the client itself wrote in front is not believed.
	if a = ask(t, c, "GET", s.http1+"/", "X-Forwarded-For", "198.51.100.9, 192.0.2.77"); a.status != 200 {
		t.Errorf("spoofed address: status %d; want 200", a.status)
	}
	if strings.Contains(s.services[0].log.text(), `"route":"signup"`) {
		t.Error("the service was asked about signup; the edge was to do it")
	}
}

// testOwnStatuses: what the application answers by itself passes untouched.
func testOwnStatuses(t *testing.T, s *stack, c *http.Client) {
	for _, status := range []int{401, 403, 404, 429, 500, 503} {
		a := ask(t, c, "GET", fmt.Sprintf("%s/v1/items?status=%d", s.http1, status), "X-Forwarded-For", "192.0.2.40")
		if a.status != status || a.body != "the app's own page\n" || a.header.Get("RateLimit") == "" {
			t.Errorf("app's %d: status %d, body %q, RateLimit %q", status, a.status, a.body, a.header.Get("RateLimit"))
		}
	}
	// Where the site replaces error pages, it is still its own page that comes.
	if a := ask(t, c, "GET", s.http1+"/no?status=404"); a.status != 404 || a.body != "the site's own 404\n" {
		t.Errorf("intercepted 404: status %d, body %q", a.status, a.body)
	}
	if a := ask(t, c, "GET", s.http1+"/_sluice/open/api"); a.status != 404 {
		t.Errorf("the internal location answers %d from outside; want 404", a.status)
	}
}

func testHTTP2(t *testing.T, s *stack, c *http.Client) {
	address := []string{"X-Forwarded-For", "192.0.2.60"}
	for i := range 10 {
		if a := ask(t, c, "GET", s.http2+"/v1/items", address...); a.status != 200 || left(t, a) != 9-i {
			t.Fatalf("request %d: status %d, %d left", i, a.status, left(t, a))
		}
	}
	a := ask(t, c, "GET", s.http2+"/v1/items", address...)
	if a.status != 429 || a.header.Get("Retry-After") == "" || a.header.Get("X-Sluice-Limit") != "speed" {
		t.Errorf("status %d, headers %v; want 429 with Retry-After", a.status, a.header)
	}
}

// testOtherKinds: leases that the end of a request frees, failures that are
// counted by the answer's status, and a quota.
func testOtherKinds(t *testing.T, s *stack, c *http.Client) {
	address := []string{"X-Forwarded-For", "192.0.2.90"}
	var wg sync.WaitGroup
	var passed, refused atomic.Int64
	for range 6 {
		wg.Go(func() {
			switch a := ask(t, c, "GET", s.http1+"/v1/jobs?sleep=300ms", address...); a.status {
			case 200:
				passed.Add(1)
			case 429:
				refused.Add(1)
			}
		})
	}
	wg.Wait()
	if passed.Load() != 2 || refused.Load() != 4 {
		t.Errorf("of 6 requests at a time %d passed and %d were refused; want 2 and 4", passed.Load(), refused.Load())
	}
	eventually(t, "the slots are free again", func() bool {
		return ask(t, c, "GET", s.http1+"/v1/jobs", address...).status == 200
	})

	// A key whose own bucket is large enough for all of this.
	login := append([]string{"X-API-Key", globexKey}, address...)
	// Successes do not count: each is given back when NGINX tells of its end.
	for range 10 {
		eventually(t, "a login passes after many that succeeded", func() bool {
			return ask(t, c, "POST", s.http1+"/login", login...).status == 200
		})
	}
	for range 3 {
		eventually(t, "a failure within the limit passes", func() bool {
			return ask(t, c, "POST", s.http1+"/login?status=401", login...).status == 401
		})
	}
	if a := ask(t, c, "POST", s.http1+"/login", login...); a.status != 429 || a.header.Get("X-Sluice-Limit") != "failures" {
		t.Errorf("after three failures: status %d, limit %q; want 429, failures", a.status, a.header.Get("X-Sluice-Limit"))
	}

	for range 3 {
		ask(t, c, "GET", s.http1+"/v1/sold", address...)
	}
	a := ask(t, c, "GET", s.http1+"/v1/sold", address...)
	if a.status != 402 || a.header.Get("X-Sluice-Reason") != "quota" || a.header.Get("Retry-After") == "" {
		t.Errorf("over the quota: status %d, reason %q, Retry-After %q; want 402", a.status, a.header.Get("X-Sluice-Reason"), a.header.Get("Retry-After"))
	}
}

// eventually waits for what NGINX's datagrams bring about.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !happened(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// testAdmin: what the service counted is to be seen, and nobody without a token
// changes anything.
func testAdmin(t *testing.T, s *stack, c *http.Client) {
	admin := s.services[0].admin
	metrics := ask(t, c, "GET", admin+"/metrics")
	for _, want := range []string{`sluice_requests_total{`, `route="search"`, `verdict="deny"`, `sluice_rate_limited_total{`, `tenant="acme"`} {
		if !strings.Contains(metrics.body, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	if a := ask(t, c, "GET", admin+"/readyz"); a.status != 200 {
		t.Errorf("/readyz is %d", a.status)
	}
	status := ask(t, c, "GET", admin+"/-/status")
	if status.status != 200 || !strings.Contains(status.body, `"policy"`) {
		t.Errorf("/-/status is %d %s", status.status, status.body)
	}
	// C119, C120: no credential, address, path or host of a client.
	for _, secret := range []string{webKey, batchKey, globexKey, "sk_nobody", "192.0.2.", "2001:db8", "/v1/search", "/v1/projects", "acme-web"} {
		if strings.Contains(metrics.body+status.body, secret) {
			t.Errorf("the admin port shows %q", secret)
		}
	}
	if a := ask(t, c, "POST", admin+"/-/reload"); a.status != 401 {
		t.Errorf("a reload without a token is %d; want 401", a.status)
	}
}
