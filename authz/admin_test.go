package authz

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/policies"
)

// office is an admin port on loopback, with a reader's and a writer's token.
type office struct {
	t       *testing.T
	site    *site
	admin   *Admin
	addr    string
	next    *policies.Compiled // what a reload finds
	found   policies.Diagnostics
	reloads int
}

const (
	readToken  = "reader-7f3b2a90"
	writeToken = "writer-c4d1e8f2"
)

func newOffice(t *testing.T) *office {
	t.Helper()
	return newOfficeOn(t, "127.0.0.1:0")
}

func newOfficeOn(t *testing.T, address string) *office {
	t.Helper()
	o := &office{t: t, site: newSite(t, shop)}
	o.next = o.site.engine.Policy()
	file := filepath.Join(t.TempDir(), "tokens")
	text := "# who may\n"
	for name, secret := range map[string]string{"ann read": readToken, "bob write": writeToken} {
		sum := sha256.Sum256([]byte(secret))
		text += name + " " + hex.EncodeToString(sum[:]) + " # a comment\n\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := new(Tokens)
	if err := tokens.Load(file); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(o.site.log, nil))
	reloader := NewReloader(o.site.engine, func() (*policies.Compiled, policies.Diagnostics) {
		o.reloads++
		return o.next, o.found
	}, log)
	o.admin = NewAdmin(AdminOptions{
		Engine: o.site.engine, Reloader: reloader, Registry: NewRegistry(o.site.engine, reloader, "v1"),
		Tokens: tokens, Store: "memory", Version: "v1", Log: log,
		Explain: func(q ExplainAsked) (any, error) {
			if q.URL == "" {
				return nil, Mistake(errors.New("want a URL"))
			}
			return map[string]any{"method": "GET", "url": q.URL, "at": "2026-02-03T00:00:00Z", "steps": []string{}, "status": 200, "denied": false, "headers": map[string]string{}}, nil
		},
	})
	ln, err := Listen(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	o.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.admin.Serve(ctx, ln) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return o
}

// ask sends a request; headers are "Name: value". Host is set as a header.
func (o *office) ask(method, path string, headers ...string) (status int, body string, header http.Header) {
	o.t.Helper()
	return o.send(method, path, nil, headers...)
}

func (o *office) send(method, path string, body io.Reader, headers ...string) (int, string, http.Header) {
	o.t.Helper()
	r, err := http.NewRequest(method, "http://"+o.addr+path, body)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Add(name, value)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

func bearer(secret string) string { return "Authorization: Bearer " + secret }

// Who may ask what: each attack beside its honest neighbour.
func TestWhoMayAsk(t *testing.T) {
	o := newOffice(t)
	f := func(what string, want int, method, path string, headers ...string) {
		t.Helper()
		reloads := o.reloads
		status, body, header := o.ask(method, path, headers...)
		if status != want {
			t.Errorf("%s: %s %s is %d, want %d\n%s", what, method, path, status, want, body)
		}
		if status >= 400 && status != 503 {
			var p Problem
			if err := json.Unmarshal([]byte(body), &p); err != nil && method != "HEAD" || header.Get("Content-Type") != "application/problem+json" || method != "HEAD" && p.Status != status {
				t.Errorf("%s: no problem+json: %q", what, body)
			}
			if o.reloads != reloads {
				t.Errorf("%s: refused, and yet it reloaded", what)
			}
		}
		if header.Get("Access-Control-Allow-Origin") != "" || header.Get("Cache-Control") != "no-store" || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", what, header)
		}
		for _, secret := range []string{readToken, writeToken, "guessed"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s: the answer repeats a token", what)
			}
		}
	}
	f("reading on loopback", 200, "GET", "/-/status")
	f("the head of it", 200, "HEAD", "/-/status")
	f("by name", 200, "GET", "/metrics", "Host: localhost:9181")
	f("by name in capitals", 200, "GET", "/metrics", "Host: LOCALHOST")
	f("by IPv6", 200, "GET", "/metrics", "Host: [::1]:9181")
	f("DNS rebinding", 401, "GET", "/-/status", "Host: evil.example")
	f("DNS rebinding with a port", 401, "GET", "/metrics", "Host: evil.example:9181")
	f("a name that begins well", 401, "GET", "/metrics", "Host: localhost.evil.example")
	f("an address that begins well", 401, "GET", "/metrics", "Host: 127.0.0.1.nip.io")
	f("a public address", 401, "GET", "/metrics", "Host: 192.0.2.1")
	f("DNS rebinding, with a token", 200, "GET", "/-/status", "Host: evil.example", bearer(readToken))
	f("health is everybody's", 200, "GET", "/healthz", "Host: evil.example", "Origin: http://evil.example", "Via: 1.1 x")
	f("readiness too", 503, "GET", "/readyz", "Host: 10.1.2.3:9181")

	f("a page reads", 401, "GET", "/-/status", "Origin: http://evil.example")
	f("a page in a sandbox reads", 401, "GET", "/-/status", "Origin: null")
	f("an image of a page", 401, "GET", "/-/status", "Sec-Fetch-Site: cross-site")
	f("an address typed into a browser", 200, "GET", "/-/status", "Sec-Fetch-Site: none")
	for _, proxy := range []string{"Forwarded: for=192.0.2.1", "X-Forwarded-For: 192.0.2.1", "Via: 1.1 proxy", "X-Forwarded-Host: x", "X-Real-IP: 192.0.2.1"} {
		f("through a proxy", 401, "GET", "/-/status", proxy)
		f("through a proxy, with a token", 200, "GET", "/-/status", proxy, bearer(readToken))
	}

	f("a page posts", 401, "POST", "/-/reload", "Origin: http://evil.example", "Content-Type: text/plain")
	f("a page asks for a way", 401, "POST", "/v1/explain", "Origin: http://evil.example", "Content-Type: text/plain")
	f("a name that points here asks for a way", 401, "POST", "/v1/explain", "Host: evil.example")
	f("a way of nothing", 400, "POST", "/v1/explain", bearer(readToken))
	f("what is like it", 401, "POST", "/v1/explain/")
	f("posting without a token", 401, "POST", "/-/reload")
	f("posting with a reader's", 403, "POST", "/-/reload", bearer(readToken))
	f("posting with a wrong one", 401, "POST", "/-/reload", bearer("guessed"))
	f("reading with a wrong one", 401, "GET", "/-/status", bearer("guessed"))
	f("posting with a long one", 401, "POST", "/-/reload", bearer(strings.Repeat("x", 4000)))
	f("posting with an empty one", 401, "POST", "/-/reload", "Authorization: Bearer ")
	f("posting by another scheme", 401, "POST", "/-/reload", "Authorization: Basic "+writeToken)
	f("two tokens", 401, "POST", "/-/reload", bearer(writeToken), bearer(readToken))
	f("posting with the hash", 401, "POST", "/-/reload", bearer(fmt.Sprintf("%x", sha256.Sum256([]byte(writeToken)))))
	f("a token in the query", 400, "POST", "/-/reload?token="+writeToken)
	f("a token in the query, spelled otherwise", 400, "GET", "/-/status?x=1&Access_T%6fken="+readToken)
	f("a token in both", 400, "POST", "/-/reload?access_token="+writeToken, bearer(writeToken))
	f("overriding the method", 401, "POST", "/-/status", "X-HTTP-Method-Override: GET")
	f("a reload by GET", 405, "GET", "/-/reload", bearer(writeToken))
	f("a preflight", 401, "OPTIONS", "/-/reload", "Origin: http://evil.example", "Access-Control-Request-Method: POST")
	f("a page that is not there", 404, "GET", "/wp-admin")
	f("not there for strangers", 401, "GET", "/wp-admin", "Host: evil.example")
	if o.reloads != 0 {
		t.Fatalf("%d reloads", o.reloads)
	}
	series, _ := scrape(t, o.admin.Registry)
	if n := series["sluice_admin_refused_total"]; n < 25 || strings.Count(o.site.log.String(), "admin: refused") > 5 {
		t.Errorf("%v refusals are counted, and too many logged", n)
	}
	f("posting with a writer's", 200, "POST", "/-/reload", "authorization: bearer "+writeToken)
	if log := o.site.log.String(); o.reloads != 1 || !strings.Contains(log, `"by":"bob"`) {
		t.Errorf("%d reloads, log\n%s", o.reloads, log)
	}
	if log := o.site.log.String(); strings.Contains(log, writeToken) || strings.Contains(log, readToken) {
		t.Errorf("a token is in the log")
	}
}

// Off loopback everything but health needs a token, whatever Host says.
func TestOffLoopback(t *testing.T) {
	g := guard{tokens: new(Tokens)}
	f := func(local, remote net.Addr, want bool) {
		t.Helper()
		r, _ := http.NewRequest("GET", "http://localhost/-/status", nil)
		r.RemoteAddr = remote.String()
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		if _, problem := g.identify(r); (problem == "") != want {
			t.Errorf("%v asks %v: problem %q", remote, local, problem)
		}
	}
	tcp := func(s string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	f(tcp("127.0.0.1:9181"), tcp("127.0.0.1:40000"), true)
	f(tcp("[::1]:9181"), tcp("[::1]:40000"), true)
	f(tcp("192.0.2.1:9181"), tcp("192.0.2.7:40000"), false)
	f(tcp("192.0.2.1:9181"), tcp("192.0.2.1:40000"), false) // this machine by its public address
	f(tcp("192.0.2.1:9181"), tcp("127.0.0.1:40000"), false)
	f(&net.UnixAddr{Name: "/run/a.sock", Net: "unix"}, &net.UnixAddr{Name: "@", Net: "unix"}, true)
	if _, problem := g.identify(&http.Request{Host: "localhost", RemoteAddr: "127.0.0.1:1"}); problem == "" {
		t.Error("an unknown connection is taken for a local one")
	}
}

// Too much, too slow, too strange: refused within the timeouts, and others are
// served meanwhile.
func TestAdminFloods(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	status, _, _ := o.send("POST", "/-/reload", strings.NewReader(strings.Repeat("x", adminBody+1)), bearer(writeToken))
	if status != 413 || o.reloads != 0 {
		t.Errorf("a large body: status %d, %d reloads", status, o.reloads)
	}
	status, _, _ = o.send("POST", "/-/reload", io.MultiReader(strings.NewReader(strings.Repeat("x", adminBody)), strings.NewReader("xx")), bearer(writeToken))
	if status != 413 {
		t.Errorf("a large body in chunks: status %d", status)
	}
	// The connection may be cut before the answer is read.
	r, _ := http.NewRequest("GET", "http://"+o.addr+"/-/status", nil)
	r.Header.Set("X-Large", strings.Repeat("x", 2*adminHead))
	if resp, err := new(http.Client).Do(r); err == nil && resp.StatusCode != 431 {
		t.Errorf("a large head: status %d", resp.StatusCode)
	}
	if testing.Short() {
		return
	}
	// Slowloris: heads that never end.
	var slow []net.Conn
	for range adminConns - 8 {
		conn, err := net.Dial("tcp", o.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprint(conn, "GET /-/status HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		slow = append(slow, conn)
	}
	if status, _, _ := o.ask("GET", "/healthz"); status != 200 {
		t.Errorf("while slow ones wait: status %d", status)
	}
	began := time.Now()
	for _, conn := range slow {
		_ = conn.SetReadDeadline(time.Now().Add(3 * adminHeadTimeout))
		if _, err := io.ReadAll(conn); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Fatal("a slow head is waited for")
		}
	}
	if took := time.Since(began); took > 2*adminHeadTimeout {
		t.Errorf("slow heads took %s", took)
	}
}

func TestStatus(t *testing.T) {
	o := newOffice(t)
	read := func() (s Status) {
		t.Helper()
		_, body, _ := o.ask("GET", "/-/status")
		if err := json.Unmarshal([]byte(body), &s); err != nil {
			t.Fatalf("%v in\n%s", err, body)
		}
		return s
	}
	hash := o.site.engine.Policy().Hash
	s := read()
	if s.Ready || s.Policy.Hash != hash || s.Policy.Tenants != 4 || s.Store.Kind != "memory" || s.Store.Degraded || s.Skew.Count != 0 || s.Version != "v1" {
		t.Errorf("at first: %+v", s)
	}
	if status, body, _ := o.ask("GET", "/readyz"); status != 503 || !strings.Contains(body, "starting") {
		t.Errorf("readyz before serving: %d %s", status, body)
	}
	o.admin.Serving(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9180})
	if status, _, _ := o.ask("GET", "/readyz"); status != 200 {
		t.Errorf("readyz while serving: %d", status)
	}

	// Skew: NGINX has another policy.
	o.site.decide("rest", policies.HeaderPolicy+": 0123456789abcdef")
	o.site.decide("rest", policies.HeaderPolicy+": "+hash)
	// A broken policy: the last good one serves, and both are told.
	o.next, o.found = nil, policies.Diagnostics{{Pos: policies.Pos{File: "policy.yaml", Line: 3, Col: 5}, Path: "plans.x", Message: "is wrong", Rule: "r"}}
	status, body, _ := o.ask("POST", "/-/reload", bearer(writeToken))
	if status != 422 || !strings.Contains(body, `"line": 3`) || !strings.Contains(body, "the last good policy serves") {
		t.Errorf("a broken policy: %d %s", status, body)
	}
	// The store is away.
	o.site.store.Close()
	o.site.decide("rest")
	s = read()
	if !s.Ready || s.Skew.Count != 1 || s.Skew.Policy != "0123456789abcdef" || s.Skew.Last == nil || s.Listeners["authz"] != "tcp:127.0.0.1:9180" {
		t.Errorf("skew, listeners: %+v", s)
	}
	if s.Reload.Failures != 1 || len(s.Reload.Findings) != 1 || s.Reload.Findings[0].Severity != "error" || s.Policy.Hash != hash {
		t.Errorf("reload: %+v", s.Reload)
	}
	if !s.Store.Degraded || s.Store.Errors != 1 || s.Store.LastError == "" || s.Store.LastAt == nil {
		t.Errorf("store: %+v", s.Store)
	}
	if status, body, _ := o.ask("GET", "/readyz"); status != 200 || !strings.Contains(body, `"store_degraded": true`) {
		t.Errorf("readyz without a store: %d %s", status, body)
	}
	o.next, o.found = o.site.engine.Policy(), nil
	if status, _, _ := o.ask("POST", "/-/reload", bearer(writeToken)); status != 200 {
		t.Errorf("a good policy again: %d", status)
	}
	if s = read(); s.Reload.Error != "" || s.Reload.Loads != 2 {
		t.Errorf("after a good reload: %+v", s.Reload)
	}
	o.admin.Stopping()
	if status, body, _ := o.ask("GET", "/readyz"); status != 503 || !strings.Contains(body, "stopping") {
		t.Errorf("readyz while stopping: %d %s", status, body)
	}
	if status, _, _ := o.ask("GET", "/healthz"); status != 200 {
		t.Errorf("healthz while stopping: %d", status)
	}
}

// FuzzGuard: whatever is said, nobody without a token of his own writes.
func FuzzGuard(f *testing.F) {
	f.Add("POST", "localhost", "Bearer x", "token=1", "Origin", "null")
	f.Add("GET", "[::1]:1", "", "%zz&;=", "Via", "")
	g := guard{tokens: new(Tokens)}
	if err := g.tokens.Issue(filepath.Join(f.TempDir(), "t")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, host, authorization, query, name, value string) {
		r := &http.Request{Method: method, Host: host, RemoteAddr: "127.0.0.1:1", Header: http.Header{}}
		r.URL = mustURL(query)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		r.Header.Set(name, value)
		r = r.WithContext(context.WithValue(context.Background(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1})))
		w := new(muxAnswer)
		g.wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) })).ServeHTTP(w, r)
		if w.status == 299 && method != "GET" && method != "HEAD" {
			t.Errorf("%s passes", method)
		}
		if w.status == 299 && r.Header.Get("Authorization") != "" {
			t.Error("a wrong token passes")
		}
	})
}
