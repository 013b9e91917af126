package cmd

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/gen/gentest"
)

// loginSite is a site with a login of its own: APP, LOGIN, LISTEN are addresses,
// LOCATION is where it is asked, and ROUTES are the locations.
const loginSite = `user root; # else the workers may not read a temporary folder
worker_processes 2;
pid nginx.pid;
error_log stderr warn;
events { worker_connections 512; }
http {
  client_body_temp_path temp_body; proxy_temp_path temp_proxy; fastcgi_temp_path temp_fastcgi;
  uwsgi_temp_path temp_uwsgi; scgi_temp_path temp_scgi;
  include sluice/real_ip.conf; include sluice/http.conf;
  access_log access.log sluice_access;
  upstream sluice_app { server APP; keepalive 8; }
  server {
    listen LISTEN;
    include sluice/server.conf;
    include login.conf;
    ROUTES
  }
  server { include sluice/chain.conf; include login.conf; }
}
`

// loginStack is a site with a login, run with the real service.
type loginStack struct {
	url     string
	service *service
	app     *app
	login   *loginStub
}

// startLogin renders a policy of a real site and runs it.
func startLogin(t *testing.T, policy, location, routes string) *loginStack {
	t.Helper()
	dir := t.TempDir()
	s := &loginStack{app: startApp(t), login: &loginStub{}, service: startService(t, policy, "memory")}
	stub := httptest.NewServer(s.login)
	t.Cleanup(stub.Close)
	cache := gentest.CacheDir(t)
	run(t, "render", policy, "--out", dir, "--authz", s.service.addr, "--cache-dir", cache, "--login-socket", "unix:"+cache+".sock")
	ask := filepath.Join(dir, "sluice/ask.conf")
	fill(t, ask, ask, "200ms", "10s")
	listen := gentest.FreePort(t)
	write(t, filepath.Join(dir, "login.conf"), "location = "+location+" { internal; proxy_pass "+stub.URL+"; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }\n")
	write(t, filepath.Join(dir, "nginx.conf"), strings.NewReplacer("APP", s.app.addr, "LISTEN", listen, "ROUTES", strings.ReplaceAll(routes, "LOGIN", stub.URL)).Replace(loginSite))
	gentest.Start(t, dir, "nginx.conf", listen)
	s.url = "http://" + listen
	return s
}

// loginStub stands in for an authenticator: who has a session is in, and is
// named by it. Its own pages say where to sign in.
type loginStub struct {
	mu    sync.Mutex
	down  bool
	asked int
}

func (l *loginStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	l.asked++
	down := l.down
	l.mu.Unlock()
	session, err := r.Cookie("session")
	switch {
	case strings.HasSuffix(r.URL.Path, "/sign_in"):
		fmt.Fprintln(w, "sign in here")
	case down:
		w.WriteHeader(500)
	case err != nil:
		w.Header().Set("WWW-Authenticate", `Session realm="site"`)
		w.WriteHeader(401)
	default:
		w.Header().Set("X-Auth-Request-User", session.Value)
		w.WriteHeader(202)
	}
}

func (l *loginStub) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
}

// TestOAuth2Proxy is the policy of a site behind oauth2-proxy, on real programs.
func TestOAuth2Proxy(t *testing.T) {
	t.Parallel()
	s := startLogin(t, "../policies/testdata/sites/oauth2-proxy.yaml", "/oauth2/auth", `
    location /oauth2/ { include sluice/routes/signin.conf; proxy_pass LOGIN; }
    location / { include sluice/routes/app.conf; include sluice/app.conf;
      error_page 401 = @sign_in; error_page 403 = $sluice_page_403; error_page 429 = $sluice_page_429; }
    location @sign_in { return 302 /oauth2/sign_in?rd=$request_uri; }`)
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	as := func(user string, more ...string) answer {
		return ask(t, c, "GET", s.url+"/inbox", append([]string{"Cookie", "session=" + user, "X-Auth-Request-User", "root"}, more...)...)
	}
	// Not logged in: the site's own redirect, and the application hears nothing.
	if a := ask(t, c, "GET", s.url+"/inbox?x=1", "X-Auth-Request-User", "root", "X-Sluice-Login", "1"); a.status != 302 || !strings.HasSuffix(a.header.Get("Location"), "/oauth2/sign_in?rd=/inbox?x=1") {
		t.Errorf("not logged in: %d to %q", a.status, a.header.Get("Location"))
	}
	if a := ask(t, c, "GET", s.url+"/oauth2/sign_in"); a.status != 200 || a.body != "sign in here\n" || s.app.requests() != 0 {
		t.Errorf("the page to sign in: %d %q, the application saw %d requests", a.status, a.body, s.app.requests())
	}
	// Each user has a bucket of 20, wherever he is.
	for i := range 20 {
		if a := as("ann"); a.status != 200 || s.app.header("X-Sluice-Plan") != "member" {
			t.Fatalf("request %d of ann: %d, plan %q", i, a.status, s.app.header("X-Sluice-Plan"))
		}
	}
	refused := answer{}
	for range 20 { // five come back each second
		if refused = as("ann"); refused.status == 429 {
			break
		}
	}
	if refused.status != 429 || refused.header.Get("X-Sluice-Limit") != "speed" || refused.header.Get("Retry-After") == "" {
		t.Errorf("over the limit ann gets %d %v", refused.status, refused.header)
	}
	if a := as("bob"); a.status != 200 || left(t, a) != 19 {
		t.Errorf("bob gets %d", a.status)
	}
	if a := as("ann", "X-Forwarded-For", "192.0.2.9"); a.status == 200 && left(t, a) > 2 {
		t.Errorf("from elsewhere ann has %d left", left(t, a))
	}
	// The service away: who is logged in gets in, nobody else.
	s.service.stop()
	if a := as("ann"); a.status != 200 || a.header.Get("X-Sluice-Degraded") != "1" {
		t.Errorf("the service away, logged in: %d", a.status)
	}
	if a := ask(t, c, "GET", s.url+"/inbox"); a.status != 302 {
		t.Errorf("the service away, not logged in: %d", a.status)
	}
	s.login.stop()
	if a := as("ann"); a.status != 503 {
		t.Errorf("the login away: %d", a.status)
	}
	if strings.Contains(s.service.log.text(), "ann") {
		t.Error("the service's log names a user")
	}
}

// TestLDAPAuth is the policy of a site whose authenticator names nobody: the
// cookie that it has just believed is the subject.
func TestLDAPAuth(t *testing.T) {
	t.Parallel()
	s := startLogin(t, "../policies/testdata/sites/ldap-auth.yaml", "/auth-proxy", `
    location /login { include sluice/routes/login.conf; proxy_pass LOGIN/sign_in; }
    location / { include sluice/routes/app.conf; include sluice/app.conf; }`)
	c, _ := clients()
	if a := ask(t, c, "GET", s.url+"/", "Cookie", "nginxauth=x"); a.status != 401 || a.header.Get("WWW-Authenticate") != `Session realm="site"` {
		t.Errorf("not logged in: %d %q", a.status, a.header.Get("WWW-Authenticate"))
	}
	passed := func(cookie string) (n int) {
		for range 40 {
			if a := ask(t, c, "GET", s.url+"/", "Cookie", "session=s; nginxauth="+cookie); a.status == 200 {
				n++
			}
		}
		return n
	}
	if n := passed("one"); n < 20 || n > 35 {
		t.Errorf("%d of 40 passed a bucket of 20", n)
	}
	if n := passed("two"); n < 20 {
		t.Errorf("%d of 40 passed the bucket of another cookie", n)
	}
	login := 0
	for range 10 {
		if a := ask(t, c, "POST", s.url+"/login"); a.status == 200 {
			login++
		}
	}
	if login != 5 {
		t.Errorf("%d logins passed; want 5", login)
	}
}

// TestStormCosts: whoever is over his limit and does not stop costs the service
// a question for each of NGINX's seconds, not one for each request.
func TestStormCosts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, `version: 1
client_ip: {trusted_proxies: [127.0.0.1]}
limits: {slow: {per: [ip, route], rate: 1/m, burst: 2}}
routes: [{name: a, match: {prefix: /a}}, {name: rest, match: {prefix: /}}]
`)
	svc, app, listen := startService(t, policy, "memory"), startApp(t), gentest.FreePort(t)
	run(t, "render", policy, "--out", dir, "--full", "--authz", svc.addr, "--upstream", app.addr, "--listen", listen, "--cache-dir", gentest.CacheDir(t))
	conf := filepath.Join(dir, "sluice/ask.conf")
	fill(t, conf, conf, "200ms", "10s")
	gentest.Start(t, dir, "nginx.conf", listen)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	subjects := []string{"192.0.2.1", "192.0.2.2"}
	var wg sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	began := time.Now()
	for i := range 8 {
		wg.Go(func() {
			for n := 0; time.Since(began) < 3*time.Second; n++ {
				a := ask(t, c, "GET", "http://"+listen+[]string{"/a/x", "/b"}[n%2], "X-Forwarded-For", subjects[i%2])
				if a.status == 429 && a.header.Get("Retry-After") == "" {
					t.Error("a denial says nothing of when to come back")
				}
				mu.Lock()
				statuses[a.status]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	svc.stop()
	decisions, _ := svc.log.await(t, "stopped")["decisions"].(map[string]any)
	// Two buckets of two for each of two subjects; four keys in three seconds, and
	// those that came before an answer was kept.
	denied, _ := decisions["deny_rate"].(float64)
	if allowed, _ := decisions["allow"].(float64); allowed != 8 || statuses[200] != 8 {
		t.Errorf("%v were allowed, and %d passed; want 8", decisions["allow"], statuses[200])
	}
	if statuses[429] < 500 || denied > 4*(4+8) {
		t.Errorf("%d refused requests cost the service %v decisions", statuses[429], denied)
	}
	log, err := os.ReadFile(filepath.Join(dir, "access.log"))
	if err != nil || !strings.Contains(string(log), `cache="HIT"`) {
		t.Errorf("the log tells nothing of what was kept: %v", err)
	}
}
