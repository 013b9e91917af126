package cmd

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
)

// startCaddy starts the Caddy of the examples on a free port, and waits for it.
func startCaddy(t *testing.T, service, app string) (url string) {
	t.Helper()
	binary, err := exec.LookPath("caddy")
	if err != nil {
		t.Skip("caddy is missing (apt-get install caddy)")
	}
	listen, home := gentest.FreePort(t), t.TempDir()
	cmd := exec.Command(binary, "run", "--config", "../examples/forward-auth/Caddyfile", "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "LISTEN="+listen, "SLUICE="+service, "APP="+app,
		"HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	var log logLines
	cmd.Stderr = writerFunc(func(p []byte) { log.mu.Lock(); log.raw.Write(p); log.mu.Unlock() })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", listen); err == nil {
			conn.Close()
			return "http://" + listen
		}
		if time.Now().After(end) {
			t.Fatalf("caddy does not listen:\n%s", log.text())
		}
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// TestCaddy: the shipped configuration, on a real Caddy, limits as NGINX would, and
// nothing that a client writes makes him somebody else.
func TestCaddy(t *testing.T) {
	t.Parallel()
	dir, app := t.TempDir(), startApp(t)
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, `version: 1
client_ip: {trusted_proxies: [127.0.0.1]}
identity: {sources: [{api_key: {header: X-API-Key}}, {api_key: {query: api_key}}], missing: {plan: anonymous}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1/h, burst: 3}}}
  free: {limits: {speed: {per: key, rate: 1/h, burst: 10}}}
tenants:
  # of sk_demo_acme_web
  - {id: acme, plan: free, keys: [{id: acme-web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]}
routes:
  - {name: search, match: {prefix: /search, methods: [POST]}, cost: 4}
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: all, match: {prefix: /}}
responses: {headers: [ratelimit-3]}
`)
	service := startService(t, policy, "memory")
	url := startCaddy(t, service.addr, app.addr)
	c, _ := clients()

	a := ask(t, c, "POST", url+"/search?q=a%20b", "X-API-Key", webKey)
	if a.status != 200 || app.header("X-Sluice-Tenant") != "acme" || app.header("X-Sluice-Plan") != "free" {
		t.Errorf("a tenant: %d %q; the application saw %q %q", a.status, a.body, app.header("X-Sluice-Tenant"), app.header("X-Sluice-Plan"))
	}
	for i, want := range []int{200, 429} { // 4 of 10 are gone
		if a = ask(t, c, "POST", url+"/search?api_key="+webKey); a.status != want {
			t.Errorf("search %d: %d, want %d", i+2, a.status, want)
		}
	}
	if a.header.Get("Retry-After") == "" || a.header.Get("X-Sluice-Limit") != "speed" || a.header.Get("RateLimit-Remaining") != "2" ||
		a.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(a.body, `"reason":"rate"`) {
		t.Errorf("a denial: %v %s", a.header, a.body)
	}
	if a = ask(t, c, "GET", url+"/", "X-API-Key", "sk_nobody"); a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("a wrong key: %d, %v", a.status, a.header)
	}

	// Anonymous clients have three, whatever they write about themselves.
	seen := app.requests()
	forged := []string{
		"X-Sluice-Exempt", "1", "X-Sluice-Login", "1", "X-Sluice-Login-Tenant", "acme", "X-Sluice-Request", "same", "X-Sluice-Tenant", "acme",
		"X-Sluice-Plan", "free", "X-Forwarded-Uri", "/healthz", "X-Forwarded-Method", "POST", "X-Forwarded-Host", "evil.example",
		"X-Sluice-Query-Api_key", webKey, "X-Request-Id", "same",
	}
	for i := range 5 {
		want := 200
		if i > 2 {
			want = 429
		}
		address := "203.0.113." + string(rune('1'+i))
		a = ask(t, c, "GET", url+"/", append(forged, "X-Forwarded-For", address, "X-Sluice-Ip", address, "Forwarded", "for="+address)...)
		if a.status != want {
			t.Errorf("forged %d: %d, want %d", i, a.status, want)
		}
		if got := app.header("X-Sluice-Tenant") + app.header("X-Sluice-Plan"); want == 200 && got != "anonymous" {
			t.Errorf("forged %d: the application believes %q", i, got)
		}
	}
	if got := app.requests() - seen; got != 3 {
		t.Errorf("%d forged requests reached the application, want 3", got)
	}
	if a = ask(t, c, "GET", url+"/healthz"); a.status != 200 {
		t.Errorf("an exempt route: %d", a.status)
	}
	if a = ask(t, http.DefaultClient, "GET", "http://"+service.addr+"/authz", "X-Forwarded-Method", "GET"); a.status != 400 {
		t.Errorf("a question that says no path: %d", a.status)
	}
}

// from is a client that connects from an address of its own.
func from(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
}

// TestCaddyEdge: a real Caddy that asks through a unix socket is what NGINX would be:
// access rules and rates hold for who connects to it, browsers get the page, and the
// application frees what is held. Without the service Caddy refuses.
func TestCaddyEdge(t *testing.T) {
	t.Parallel()
	dir, app := t.TempDir(), startApp(t)
	policy, socket := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "s.sock")
	write(t, policy, `version: 1
edge:
  access:
    - {name: office, exempt: {cidrs: [127.0.0.77]}}
    - {name: blocked, deny: {cidrs: [127.0.0.66]}, status: 451}
    - {name: bots, deny: {user_agents: ['(?i)masscan']}}
  limits: {knock: {per: ip, rate: 1/m, burst: 3}}
limits: {jobs: {per: ip, concurrency: 1, lease: 1h}}
responses: {messages: {en: "Wait.", de: "Warte."}}
`)
	service := startServiceOn(t, "unix:"+socket, policy, "memory")
	url := startCaddy(t, "unix/"+socket, app.addr)

	a := ask(t, from("127.0.0.66"), "GET", url+"/", "Accept", "text/html", "X-Forwarded-For", "127.0.0.77")
	if a.status != 451 || !strings.Contains(a.body, "<h1>Unavailable For Legal Reasons</h1>") || a.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("a blocked address: %d %v %s", a.status, a.header, a.body)
	}
	if a = ask(t, from("127.0.0.5"), "GET", url+"/", "User-Agent", "Masscan"); a.status != 403 || !strings.Contains(a.body, `"reason":"access"`) {
		t.Errorf("a bot: %d %s", a.status, a.body)
	}
	for i := range 5 {
		if a = ask(t, from("127.0.0.77"), "GET", url+"/"); a.status != 200 {
			t.Errorf("exempt %d: %d", i, a.status)
		}
	}
	if a = ask(t, from("127.0.0.5"), "GET", url+"/"); a.status != 200 {
		t.Errorf("the first: %d %s", a.status, a.body)
	}
	id := app.header("X-Sluice-Request")
	if a = ask(t, from("127.0.0.5"), "GET", url+"/", "Accept-Language", "de"); a.status != 429 || !strings.Contains(a.body, `"detail":"Warte."`) || !strings.Contains(a.body, `"reason":"concurrency"`) {
		t.Errorf("the second, beside the first: %d %s", a.status, a.body)
	}
	local := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	resp, err := local.Post("http://sluice/v1/release", "application/json", strings.NewReader(`{"request":"`+id+`"}`))
	if err != nil || resp.StatusCode != 204 {
		t.Fatalf("the application says that %q has ended: %v, %v", id, resp, err)
	}
	_ = resp.Body.Close()
	for i, want := range []int{200, 429} {
		if a = ask(t, from("127.0.0.5"), "GET", url+"/", "X-Sluice-Request", "mine"); a.status != want {
			t.Errorf("%d after that: %d %s", i, a.status, a.body)
		}
	}
	if a.header.Get("X-Sluice-Reason") != "edge_rate" || app.header("X-Sluice-Request") == "mine" {
		t.Errorf("the last denial is for %q, and the application saw the id %q", a.header.Get("X-Sluice-Reason"), app.header("X-Sluice-Request"))
	}
	seen := app.requests()
	service.stop()
	if a = ask(t, from("127.0.0.77"), "GET", url+"/"); a.status != 502 || app.requests() != seen {
		t.Errorf("without the service: %d", a.status)
	}
}
