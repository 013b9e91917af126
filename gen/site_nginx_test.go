package gen

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
)

const sitePolicy = `version: 1
client_ip: {trusted_proxies: [127.0.0.1]}
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: p}}
plans: {p: {limits: {speed: {per: ip, rate: 1/s, burst: 1}}}}
edge:
  access: [{name: office, exempt: {cidrs: [198.18.0.0/16]}}]
  limits: {flood: {per: ip, rate: 100/s, burst: 500, routes: [api]}}
routes:
  - {name: docs, match: {prefix: /docs}}
  - {name: pay, match: {prefix: /pay}, on_store_down: closed}
  - {name: api, match: {prefix: /api}}
responses: {messages: {de: "Noch {retry_after} s: 100 % zu früh…\nbitte"}}
`

// hostileSite is a site of its own that adopted the files, with settings that
// would break or open a limiter that trusts what it inherits.
const hostileSite = `%s
events { worker_connections 256; }
http {
%s
  default_type application/octet-stream;
  types { text/html html; image/png png; }
  include sluice/real_ip.conf; include sluice/http.conf;
  access_log off;
  upstream sluice_app { server %s; keepalive 4; }
  proxy_cache_path cache keys_zone=site_cache:1m;
  limit_req_zone $server_name zone=site_req:1m rate=1r/m;
  limit_conn_zone $server_name zone=site_conn:1m;
  server {
    listen %s; listen %s http2;
    server_name site.test; root html; client_max_body_size 1m;
    proxy_intercept_errors on; recursive_error_pages on;
    proxy_cache site_cache; proxy_cache_valid any 1m; proxy_cache_key $host; proxy_busy_buffers_size 64k; proxy_buffers 8 64k;
    proxy_set_header X-Site 1; proxy_method POST; proxy_hide_header X-Sluice-Status; proxy_next_upstream off; proxy_ignore_headers Vary;
    proxy_read_timeout 30s; proxy_store off; proxy_pass_header Date; client_body_buffer_size 1k;
    limit_req zone=site_req; limit_conn site_conn 1;
    add_header X-Frame-Options DENY always;
    error_page 404 /404.html;
    satisfy any;
    include sluice/server.conf;
    location = /404.html { internal; return 404 "site 404\n"; }
    location /api/ { include sluice/routes/api.conf; client_max_body_size 10m; proxy_cache off; proxy_method $request_method; include sluice/app.conf; }
    location /pay/ { include sluice/routes/pay.conf; limit_req zone=sluice_none_req; limit_conn sluice_none_conn 9; proxy_cache off; proxy_method $request_method; include sluice/app.conf; }
    location /docs/ { include sluice/routes/docs.conf; limit_req zone=sluice_none_req; limit_conn sluice_none_conn 9; index index.html; try_files $uri $uri/ =404; }
    location /fall/ { include sluice/routes/docs.conf; limit_req zone=sluice_none_req; limit_conn sluice_none_conn 9; try_files $uri /docs/index.html; }
    location /accel/ { include sluice/routes/docs.conf; limit_req zone=sluice_none_req; limit_conn sluice_none_conn 9; proxy_cache off; proxy_method GET; include sluice/app.conf; }
    location /own/ { include sluice/routes/api.conf; add_header X-Own 1 always; include sluice/headers.conf; proxy_cache off; proxy_method GET; include sluice/app.conf; }
    location /any/ { include sluice/routes/api.conf; allow all; proxy_cache off; proxy_method GET; include sluice/app.conf; }
    location /closed/ { limit_req zone=sluice_none_req; deny all; }
    location ~ \.php$ { deny all; }
    location ~ ^/_sluice { return 200 "opened\n"; }
  }
}
`

type site struct {
	*stack
	h2 string
}

func startSite(t *testing.T) *site {
	t.Helper()
	gentest.Binary(t)
	s := &stack{t: t, authz: gentest.StartAuthz(t), app: gentest.StartApp(t), addr: gentest.FreePort(t)}
	files, err := Render(compiled(t, sitePolicy), Options{Version: "test", CacheDir: gentest.CacheDir(t), Authz: []string{s.authz.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	s.files = files
	h2 := gentest.FreePort(t)
	main, http := gentest.Hermetic()
	files["nginx.conf"] = fmt.Appendf(nil, hostileSite, main, http, s.app.Addr, s.addr, h2)
	files["html/docs/index.html"] = []byte("docs\n")
	dir := t.TempDir()
	// Debian's nginx gives its workers to another user, who must be let in.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != "/" && strings.Contains(d, "Test"); d = filepath.Dir(d) {
		_ = os.Chmod(d, 0o755)
	}
	gentest.WriteFiles(t, dir, files)
	s.nginx = gentest.Start(t, dir, "nginx.conf", s.addr)
	return &site{s, h2}
}

// TestHostileSite: settings of the site neither open nor break the limiter, and
// the limiter does not change the site (C004, C005, C009, C010, C012).
func TestHostileSite(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	one := func(want int, got answer, what string) {
		t.Helper()
		paths, _ := s.authz.Asked()
		if got.status != want || len(paths) != 1 {
			t.Errorf("%s is %d and asked %v; want %d and one question", what, got.status, paths, want)
		}
	}
	got := s.get("/api/x", "If-None-Match", `"x"`, "If-Modified-Since", "Mon, 01 Jan 2024 00:00:00 GMT", "Range", "bytes=0-1", "Upgrade", "x")
	one(200, got, "an allowed request")
	if got.header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("the site's header is gone: %v (C010)", got.header)
	}
	one(200, s.do("POST", "/api/x", make([]byte, 2_000_000)), "an upload (C004)")
	_, _ = s.authz.Asked()
	s.get("/api/x", "If-None-Match", `"x"`, "Range", "bytes=0-1")
	_, asked := s.authz.Asked()
	for _, name := range []string{"If-None-Match", "If-Modified-Since", "Range", "Upgrade", "Connection", "X-Site", "User-Agent", "Cookie"} {
		if v := asked[0].Get(name); v != "" {
			t.Errorf("the service was sent %s: %q (C012)", name, v)
		}
	}
	if asked[0].Get("Method") != "GET" || asked[0].Get("Body-Length") != "0" {
		t.Errorf("the service was asked by %s with %s bytes (C005, C006)", asked[0].Get("Method"), asked[0].Get("Body-Length"))
	}
	for range 3 { // no edge limit of ours counts him, and none of the site's reaches the subrequest
		one(200, s.get("/api/x", "X-Forwarded-For", "198.18.0.1"), "an exempt client")
	}
	s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Deny(429, "Retry-After", "3") })
	for range 3 {
		got = s.get("/api/x.png")
		one(429, got, "a denial")
		if got.header.Get("X-Frame-Options") != "DENY" || got.header.Get("Retry-After") != "3" {
			t.Errorf("a denial has the headers %v (C009, C010)", got.header)
		}
	}
	got = s.get("/own/x")
	one(429, got, "a denial beside the site's own header")
	one(429, s.get("/any/x"), "a denial where the site says satisfy any")
	if got = s.get("/docs/nope"); got.status != 429 {
		t.Errorf("a missing file behind a denial is %d", got.status)
	}
	s.authz.Answers(nil)
	s.authz.Asked()
	got = s.get("/docs/nope")
	one(404, got, "a missing file")
	if got.body != "site 404\n" {
		t.Errorf("the site's 404 is %q", got.body)
	}
	if got = s.get("/x.php"); got.status != 403 || strings.Contains(got.body, "sluice") {
		t.Errorf("the site's own 403 is %+v", got)
	}
	got = s.get("/own/x")
	if got.header.Get("X-Own") != "1" {
		t.Errorf("the location's own header is gone: %v", got.header)
	}
	for _, path := range []string{"/_sluice/open/api", "/_sluice/closed/pay"} {
		if got := s.get(path); got.status != 404 {
			t.Errorf("%s from outside is %d", path, got.status)
		}
	}
	s.noWarnings()
}

// TestChargedOnce: an internal redirect within one route is not a second charge.
func TestChargedOnce(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Answer{Headers: map[string]string{"RateLimit": `"x";r=1;t=1`}}
	})
	for path, want := range map[string]int{"/docs/": 1, "/docs/index.html": 1, "/fall/x": 1, "/accel/x?redirect=/docs/index.html": 1} {
		s.authz.Asked()
		got := s.get(path)
		paths, _ := s.authz.Asked()
		if got.status != 200 || len(paths) != want {
			t.Errorf("%s is %d and asked %v; want %d", path, got.status, paths, want)
		}
		if got.header.Get("RateLimit") != `"x";r=1;t=1` {
			t.Errorf("%s: the second pass lost what the first was told: %v", path, got.header)
		}
	}
}

// TestFailModes: when the service is away or speaks nonsense NGINX does what the
// route says; a client cannot bring that about.
func TestFailModes(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	f := func(want int, path string, headers ...string) {
		t.Helper()
		got := s.get(path, headers...)
		if got.status != want {
			t.Errorf("%s is %d; want %d", path, got.status, want)
		}
		if got.header.Get("X-Sluice-Degraded") != "1" && (want == 200 || want == 503) {
			t.Errorf("%s does not say degraded: %v", path, got.header)
		}
		if want == 503 && (got.header.Get("Retry-After") != "1" || got.header.Get("X-Sluice-Reason") != "store_down") {
			t.Errorf("%s says %v", path, got.header)
		}
	}
	answer := func(a gentest.Answer) {
		s.authz.Answers(func(string, http.Header) gentest.Answer { return a })
	}
	answer(gentest.Answer{Code: 500, Bare: true})
	f(200, "/api/x")
	f(503, "/pay/x")
	// The application's own 403 stays one after a fail mode let the request pass.
	answer(gentest.Answer{Code: 503, Bare: true})
	if got := s.get("/api/x?status=403"); got.status != 403 || got.header.Get("X-Sluice-Reason") != "" {
		t.Errorf("the application's own 403 is %+v", got)
	}
	// 400 and 431 a client could provoke: they open nothing.
	for _, code := range []int{400, 431, 404, 301, 429} {
		answer(gentest.Answer{Code: code, Bare: true})
		for _, path := range []string{"/api/x", "/pay/x"} {
			if got := s.get(path); got.status < 400 {
				t.Errorf("an answer of %d opened the limiter: %d", code, got.status)
			}
		}
	}
	// What is no answer of the service is told apart, if it allows.
	answer(gentest.Answer{Code: 200, Bare: true})
	f(200, "/api/x")
	s.authz.Answers(nil)
	if got := s.get("/api/x", "X-Big", strings.Repeat("x", 5000), "X-Api-Key", strings.Repeat("k", 3000)); got.status != 200 {
		t.Errorf("a long header made %d", got.status)
	}
	_, asked := s.authz.Asked()
	if last := asked[len(asked)-1]; last.Get("X-Api-Key") != "!" {
		t.Errorf("a key that is too long was sent as %.20q", last.Get("X-Api-Key"))
	}
	// Too late is away; and after some failures NGINX does not wait any more.
	answer(gentest.Answer{Wait: 600 * time.Millisecond})
	began := time.Now()
	for range 6 {
		f(200, "/api/x")
		f(503, "/pay/x")
	}
	if took := time.Since(began); took < 200*time.Millisecond || took > 1500*time.Millisecond {
		t.Errorf("twelve questions without an answer took %v", took)
	}
}

// TestAway: nothing listens where the service should.
func TestAway(t *testing.T) {
	t.Parallel()
	s := startWith(t, sitePolicy, func(f Files, _ string) {
		conf := string(f["sluice/http.conf"])
		at := strings.Index(conf, "upstream sluice_authz")
		f["sluice/http.conf"] = []byte(conf[:at] + strings.ReplaceAll(conf[at:], "max_fails=2", "down max_fails=2"))
	})
	if got := s.get("/api/x"); got.status != 200 || got.header.Get("X-Sluice-Degraded") != "1" {
		t.Errorf("open is %+v", got)
	}
	if got := s.get("/pay/x"); got.status != 503 || got.header.Get("X-Sluice-Degraded") != "1" {
		t.Errorf("closed is %+v", got)
	}
}

// TestUploadDenied: an upload is refused before it is read, and the connection
// stays usable.
func TestUploadDenied(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	s.authz.Answers(func(_ string, h http.Header) gentest.Answer {
		if h.Get("X-Sluice-Method") == "POST" {
			return gentest.Deny(429, "Retry-After", "3")
		}
		return gentest.Answer{}
	})
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, err = fmt.Fprint(conn, "POST /api/up HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 429 {
		t.Fatalf("before the body was sent there came %v, %v", resp, err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	if _, err := conn.Write(bytes.Repeat([]byte("x"), 3_000_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(conn, "GET /api/x HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, err = http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
		t.Fatalf("on the same connection there came %v, %v", resp, err)
	}
}

// TestHTTP2: a denial and an answer look the same there.
func TestHTTP2(t *testing.T) {
	s := startSite(t)
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &protocols}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	for _, deny := range []bool{false, true} {
		want := 200
		if deny {
			want = 429
			s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Deny(429, "Retry-After", "3") })
		}
		resp, err := client.Get("http://" + s.h2 + "/api/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.ProtoMajor != 2 || resp.StatusCode != want || (deny && resp.Header.Get("Retry-After") != "3") {
			t.Errorf("over HTTP/2 there came %+v; want %d", resp, want)
		}
	}
}

// TestWebSocket: one charge for the handshake, none for what follows (C013).
func TestWebSocket(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := fmt.Fprint(conn, "GET /api/ws HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("the handshake got %v, %v", resp, err)
	}
	if _, err := fmt.Fprint(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := r.ReadString('\n'); err != nil || line != "echo hello\n" {
		t.Errorf("the connection answers %q, %v", line, err)
	}
	if paths, _ := s.authz.Asked(); len(paths) != 1 {
		t.Errorf("the service was asked %v", paths)
	}
}

// TestPreflight: browsers ask first without credentials; that is no question to
// the service.
func TestPreflight(t *testing.T) {
	t.Parallel()
	s := startSite(t)
	s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Deny(429) })
	got := s.do("OPTIONS", "/api/x", nil, "Origin", "https://x.example", "Access-Control-Request-Method", "POST")
	if paths, _ := s.authz.Asked(); got.status != 200 || len(paths) != 0 || got.header.Get("X-Sluice-Degraded") != "" {
		t.Errorf("a preflight got %+v, and the service was asked %v", got, paths)
	}
	for _, headers := range [][]string{nil, {"Origin", "https://x.example"}, {"Access-Control-Request-Method", "POST"}} {
		if got := s.do("OPTIONS", "/api/x", nil, headers...); got.status != 429 {
			t.Errorf("OPTIONS with %v is %d", headers, got.status)
		}
	}
	if got := s.get("/api/x", "Origin", "https://x.example", "Access-Control-Request-Method", "POST"); got.status != 429 {
		t.Errorf("GET with the headers of a preflight is %d", got.status)
	}
}
