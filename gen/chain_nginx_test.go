package gen

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"sluice/gen/gentest"
)

// authenticator stands in for oauth2-proxy: who has a cookie is in.
type authenticator struct {
	mu     sync.Mutex
	asked  int
	status int // 0: by the cookie
	last   http.Header
}

func (a *authenticator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	a.last = r.Header.Clone()
	cookie, err := r.Cookie("session")
	switch {
	case a.status != 0:
		w.WriteHeader(a.status)
	case err != nil:
		w.Header().Set("WWW-Authenticate", `Login realm="site"`)
		w.WriteHeader(401)
	default:
		w.Header().Set("X-Auth-Request-User", cookie.Value)
		w.Header().Set("X-Auth-Request-Org", "org-of-"+cookie.Value)
		w.WriteHeader(202)
	}
}

func (a *authenticator) times() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.asked
	a.asked = 0
	return n
}

func (a *authenticator) answers(status int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status = status
}

const chainPolicy = `
version: 1
identity:
  sources:
    - api_key: {header: X-API-Key}
    - auth_request: {location: /oauth2/auth, user_header: X-Auth-Request-User, tenant_header: X-Auth-Request-Org}
  unlisted: {plan: member}
plans: {member: {limits: {speed: {per: user, rate: 1/s, burst: 5}, by: {per: {query: job_id}, rate: 1/s, burst: 5}}}}
routes:
  - {name: pay, match: {prefix: /pay}, on_store_down: closed}
  - {name: app, match: {prefix: /}}
`

// startChained runs a site with an authenticator of its own.
func startChained(t *testing.T) (*stack, *authenticator) {
	t.Helper()
	a := &authenticator{}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	socket := filepath.Join(gentest.CacheDir(t) + ".sock")
	s := startOwnOptions(t, chainPolicy, Options{LoginSocket: "unix:" + socket}, `
upstream sluice_app { server APP; }
server {
	listen LISTEN;
	include sluice/server.conf;
	include login.conf;
	location = /sign_in { return 200 "sign in here\n"; }
	location /pay { include sluice/routes/pay.conf; include sluice/app.conf; }
	location /page { include sluice/routes/app.conf; error_page 401 = /sign_in; include sluice/app.conf; }
	location / { include sluice/routes/app.conf; include sluice/app.conf; }
}
server { include sluice/chain.conf; include login.conf; }
`, map[string]string{"login.conf": "location = /oauth2/auth { internal; proxy_pass " + server.URL + "; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; proxy_set_header X-Real-IP $remote_addr; }\n"})
	return s, a
}

func TestChainedAuthenticator(t *testing.T) {
	s, a := startChained(t)
	// Logged in: the service hears who it is, from the authenticator alone.
	got := s.get("/x?job_id=7", "Cookie", "session=ann", "X-Sluice-Login", "1", "X-Sluice-Login-User", "root", "X-Auth-Request-User", "root", "X-Sluice-Header-A", "b")
	_, heard := s.authz.Asked()
	if got.status != 200 || a.times() != 1 || len(heard) != 1 {
		t.Fatalf("status %d, the service heard %v", got.status, heard)
	}
	for name, want := range map[string]string{
		"X-Sluice-Login": "1", "X-Sluice-Login-User": "ann", "X-Sluice-Login-Tenant": "org-of-ann", "X-Sluice-Ip": "127.0.0.1",
		"X-Sluice-Uri": "/x?job_id=7", "X-Sluice-Method": "GET", "X-Sluice-Query-Job_id": "7", "Cookie": "", "X-Sluice-Header-A": "",
	} {
		if h := heard[0].Get(name); h != want {
			t.Errorf("the service heard %s: %q; want %q", name, h, want)
		}
	}
	a.mu.Lock()
	if ip := a.last.Get("X-Real-Ip"); ip != "127.0.0.1" {
		t.Errorf("the authenticator saw the address %q; want the client's", ip)
	}
	a.mu.Unlock()
	// Not logged in: 401 as the authenticator says it, the site's page for it, and
	// the service is not asked.
	got = s.get("/x")
	if got.status != 401 || got.header.Get("WWW-Authenticate") != `Login realm="site"` {
		t.Errorf("not logged in: %d, WWW-Authenticate %q", got.status, got.header.Get("WWW-Authenticate"))
	}
	if got = s.get("/page"); got.status != 200 || got.body != "sign in here\n" {
		t.Errorf("the site's own sign-in page: %d %q", got.status, got.body)
	}
	a.answers(403)
	if got = s.get("/x", "Cookie", "session=ann"); got.status != 403 {
		t.Errorf("the authenticator's 403 is %d", got.status)
	}
	if _, heard = s.authz.Asked(); len(heard) != 0 {
		t.Errorf("the service was asked about %d who are not logged in", len(heard))
	}
	// Another credential is the first: the authenticator is not asked.
	a.times()
	if got = s.get("/x", "X-API-Key", "sk_a", "Cookie", "session=ann"); got.status != 200 || a.times() != 0 {
		t.Errorf("an API key: status %d, or the authenticator was asked", got.status)
	}
	if _, heard = s.authz.Asked(); len(heard) != 1 || heard[0].Get("X-Sluice-Login") != "" {
		t.Errorf("an API key is told as %v", heard)
	}
	s.noWarnings()
}

// TestChainFails: a login never fails open, a limit fails as the route says.
func TestChainFails(t *testing.T) {
	s, a := startChained(t)
	for _, status := range []int{500, 502, 302, 429} {
		a.answers(status)
		if got := s.get("/x", "Cookie", "session=ann"); got.status != 503 || got.header.Get("Retry-After") == "" {
			t.Errorf("the authenticator answers %d, and the client gets %d; want 503", status, got.status)
		}
	}
	a.answers(0)
	s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Answer{Code: 500} })
	if got := s.get("/x", "Cookie", "session=ann"); got.status != 200 || got.header.Get("X-Sluice-Degraded") != "1" {
		t.Errorf("the service fails, open: %d, degraded %q", got.status, got.header.Get("X-Sluice-Degraded"))
	}
	if got := s.get("/pay", "Cookie", "session=ann"); got.status != 503 {
		t.Errorf("the service fails, closed: %d", got.status)
	}
	if got := s.get("/x"); got.status != 401 {
		t.Errorf("the service fails, not logged in: %d; want 401", got.status)
	}
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Deny(429, "Retry-After", "7", "X-Sluice-Reason", "rate", "X-Accel-Expires", "1")
	})
	for range 2 {
		if got := s.get("/x", "Cookie", "session=ann"); got.status != 429 || got.header.Get("Retry-After") != "7" {
			t.Errorf("a denial: %d, Retry-After %q", got.status, got.header.Get("Retry-After"))
		}
	}
	s.noWarnings()
}

// TestChainMissing: without the server of chain.conf nobody can be asked who it
// is, and nobody gets in, on any route.
func TestChainMissing(t *testing.T) {
	s := startOwnOptions(t, chainPolicy, Options{LoginSocket: "unix:" + filepath.Join(os.TempDir(), "sluice-nobody-listens.sock")}, `
upstream sluice_app { server APP; }
server { listen LISTEN; include sluice/server.conf;
	location / { include sluice/routes/app.conf; include sluice/app.conf; }
}
`, nil)
	if got := s.get("/x", "Cookie", "session=ann"); got.status != 503 {
		t.Errorf("status %d; want 503", got.status)
	}
	if n := len(s.app.Requests()); n != 0 {
		t.Errorf("the application saw %d requests", n)
	}
}
