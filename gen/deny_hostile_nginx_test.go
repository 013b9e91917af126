package gen

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/gen/gentest"
)

// What a client or the machine can do to the deny cache opens nothing.

// hostileDenyPolicy has all that can stand in a key.
const hostileDenyPolicy = `
version: 1
client_ip: {trusted_proxies: [127.0.0.1]}
identity: {sources: [{api_key: {header: X-API-Key}}, {api_key: {cookie: k}}], missing: {plan: p}}
plans: {p: {limits: {speed: {per: [ip, {header: X-Org}], rate: 1/m, burst: 1}, again: {per: ip, retries: 10/m}}}}
edge: {access: [{name: office, exempt: {user_agents: [office]}}]}
routes:
  - {name: pay, match: {prefix: /pay}, on_store_down: closed}
  - {name: read, match: {prefix: /read, methods: [GET]}}
  - {name: rest, match: {prefix: /}}
`

func startHostileDeny(t *testing.T, headers ...string) *stack {
	t.Helper()
	s := start(t, hostileDenyPolicy)
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Deny(429, append([]string{"Retry-After", "30", "X-Accel-Expires", "1"}, headers...)...)
	})
	return s
}

// TestDenyCacheLongKeys: NGINX has one buffer for the key and the head of the
// answer. However long the values are that a client chooses, there is room for
// both: else each question would fail, and be let pass.
func TestDenyCacheLongKeys(t *testing.T) {
	t.Parallel()
	s := startHostileDeny(t, "RateLimit-Policy", strings.Repeat("x", 12_000))
	for _, n := range []int{1, 32, 33, 200, 512, 1000, 3000, 7000} {
		long := func(most int) string { return strings.Repeat("A", min(n, most)) }
		for _, path := range []string{"/x", "/pay/x", "/read/" + long(7000)} {
			for range 2 {
				got := s.do(long(600), path, nil, "Host", long(7000), "X-Api-Key", long(512), "X-Org", long(200), "Cookie", "k="+long(512), "Idempotency-Key", long(200))
				if got.status != 429 || got.header.Get("X-Sluice-Degraded") != "" {
					t.Errorf("%.6s… with values of %d bytes: %d, degraded %q", path, n, got.status, got.header.Get("X-Sluice-Degraded"))
				}
			}
		}
	}
	s.noWarnings()
}

// TestDenyCacheLongURIs: what is too long for a key is not kept, and so not told
// to another.
func TestDenyCacheLongURIs(t *testing.T) {
	t.Parallel()
	s := startHostileDeny(t)
	s.asked()
	for i := range 3 {
		s.do("PUT", "/read/"+strings.Repeat("a", 3000)+string(rune('a'+i)), nil)
	}
	if n := s.asked(); n != 3 {
		t.Errorf("three long paths were asked about %d times", n)
	}
}

// TestDenyCacheStorm: many at once cost a question for each that came before the
// first answer, and then none; whatever methods and headers they have.
func TestDenyCacheStorm(t *testing.T) {
	t.Parallel()
	s := startHostileDeny(t)
	for _, method := range []string{"GET", "HEAD", "POST"} {
		s.do(method, "/x", nil)
		s.asked()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 10 {
					if got := s.do(method, "/other?y=1", []byte("body"), "Range", "bytes=5-9", "If-None-Match", "*", "If-Modified-Since", "Mon, 01 Jan 2024 00:00:00 GMT"); got.status != 429 {
						t.Errorf("%s: %d", method, got.status)
					}
				}
			})
		}
		wg.Wait()
		if n := s.asked(); n > 8 { // its second may end meanwhile
			t.Errorf("80 times %s cost %d questions", method, n)
		}
	}
}

// TestDenyCacheShared: what else is part of the key: exempt clients, retries,
// values that count, cookies.
func TestDenyCacheShared(t *testing.T) {
	t.Parallel()
	s := startHostileDeny(t)
	base := []string{"X-Api-Key", "k1"}
	for name, more := range map[string][]string{
		"an exempt client":      {"User-Agent", "office"},
		"a retry":               {"X-Retry-Attempt", "1"},
		"an idempotency key":    {"Idempotency-Key", "i"},
		"a value that counts":   {"X-Org", "o"},
		"a cookie":              {"Cookie", "k=k1"},
		"a key that is unfit":   {"X-Forwarded-For", "192.0.2.1", "X-Api-Key", "k 1"},
		"the bytes of a /64 v4": {"X-Forwarded-For", "32.1.13.184"},
	} {
		s.get("/x", base...)
		s.asked()
		if s.get("/x", append(append([]string{}, more...), base...)...); s.asked() != 1 {
			t.Errorf("%s was told what another was", name)
		}
	}
}

// TestDenyCacheBroken: a folder that is somebody else's, or gone, opens nothing
// and shuts nobody out: the service is asked without it, and the fail modes are
// what they were.
func TestDenyCacheBroken(t *testing.T) {
	t.Parallel()
	s := startHostileDeny(t)
	f := func(what string) {
		t.Helper()
		s.authz.Answers(func(string, http.Header) gentest.Answer {
			return gentest.Deny(429, "Retry-After", "30", "X-Accel-Expires", "1")
		})
		s.asked()
		for _, path := range []string{"/x", "/pay/x"} {
			// NGINX may drop the connection of whose denial it cannot write.
			if got := s.get(path, "X-Api-Key", what); got.status != 429 && got.status != 0 || s.asked() < 1 {
				t.Errorf("%s, a denial: %d", what, got.status)
			}
		}
		s.authz.Answers(nil)
		for _, path := range []string{"/x", "/pay/x"} {
			if got := s.get(path, "X-Api-Key", what+"2"); got.status != 200 || got.header.Get("X-Sluice-Degraded") != "" {
				t.Errorf("%s, an allow: %d %v", what, got.status, got.header)
			}
		}
		s.authz.Answers(func(string, http.Header) gentest.Answer {
			return gentest.Answer{Code: 401, Headers: map[string]string{"WWW-Authenticate": "ApiKey"}}
		})
		if got := s.get("/x", "X-Api-Key", what+"3"); got.status != 401 || got.header.Get("WWW-Authenticate") != "ApiKey" {
			t.Errorf("%s, a 401: %d %v", what, got.status, got.header)
		}
		s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Answer{Code: 500, Bare: true} })
		if open, closed := s.get("/x"), s.get("/pay"); open.status != 200 || closed.status != 503 {
			t.Errorf("%s, the fail modes: %d and %d", what, open.status, closed.status)
		}
	}
	f("whole")
	if err := os.Chmod(s.cacheDir, 0); err != nil {
		t.Fatal(err)
	}
	f("shut")
	if err := os.RemoveAll(s.cacheDir); err != nil {
		t.Fatal(err)
	}
	f("gone")
}

// TestDenyCacheReload: denials outlive a reload, also one that moves the folder:
// NGINX would refuse one name for two folders.
func TestDenyCacheReload(t *testing.T) {
	t.Parallel()
	s := startHostileDeny(t)
	s.get("/x")
	s.nginx.Reload()
	time.Sleep(300 * time.Millisecond)
	s.asked()
	if s.get("/x"); s.asked() != 0 {
		t.Error("after a reload the denial is gone")
	}
	files, err := Render(compiled(t, hostileDenyPolicy), Options{Version: "test", CacheDir: s.cacheDir + "2",
		Authz: []string{s.authz.Addr}, Upstreams: []string{s.app.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	gentest.WriteFiles(t, s.nginx.Dir, files)
	s.nginx.Reload()
	time.Sleep(500 * time.Millisecond)
	s.get("/x")
	if _, err := os.Stat(filepath.Join(filepath.Dir(s.cacheDir), "deny2")); err != nil {
		t.Errorf("NGINX did not take another folder: %v", err)
	}
	s.noWarnings()
}

// TestDenyCacheFolders: NGINX makes the folder, not what it lies in, and is given a
// plain path.
func TestDenyCacheFolders(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"a$b", "/", ".", "a/../b", "/x/"} {
		if _, err := Render(compiled(t, hostileDenyPolicy), Options{CacheDir: bad}); err == nil {
			t.Errorf("the folder %q is taken", bad)
		}
	}
	for dir, want := range map[string]bool{"there/deny": true, "not/there": false} {
		files, err := Render(compiled(t, hostileDenyPolicy), Options{Full: true, CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		gentest.Binary(t)
		folder := t.TempDir()
		gentest.WriteFiles(t, folder, files)
		if err := os.Mkdir(filepath.Join(folder, "there"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := gentest.Test(t.Context(), t, folder, "nginx.conf"); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
