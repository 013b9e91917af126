package gen

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
)

const denyPolicy = `
version: 1
client_ip: {trusted_proxies: [127.0.0.1], header: X-Forwarded-For}
identity:
  sources: [{api_key: {header: X-API-Key}}, {api_key: {query: key}}]
  missing: {plan: anonymous}
plans: {anonymous: {limits: {speed: {per: ip, rate: 1/h, burst: 1}}}}
routes:
  - {name: pay, match: {prefix: /pay}, on_store_down: closed}
  - {name: read, match: {prefix: /read, methods: [GET]}}
  - {name: all, match: {prefix: /}}
`

// denyStack denies everything, and lets it be kept.
func denyStack(t *testing.T) *stack {
	t.Helper()
	s := start(t, denyPolicy)
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Deny(429, "Retry-After", "30", "X-Accel-Expires", "1", "RateLimit", `"speed";r=0;t=30`, "X-Sluice-Limit", "speed", "X-Sluice-Reason", "rate")
	})
	return s
}

// asked is how often the service was asked since the last time.
func (s *stack) asked() int {
	paths, _ := s.authz.Asked()
	return len(paths)
}

// TestDenyCache: a storm of refused requests costs one question, and all look alike.
func TestDenyCache(t *testing.T) {
	s := denyStack(t)
	first := s.get("/x", "X-Forwarded-For", "192.0.2.1")
	for range 30 {
		again := s.get("/x?other", "X-Forwarded-For", "192.0.2.1")
		if again.status != 429 || again.body != first.body || again.header.Get("RateLimit") != `"speed";r=0;t=30` || again.header.Get("Retry-After") != "30" ||
			again.header.Get("X-Sluice-Reason") != "rate" || again.header.Get("X-Sluice-Degraded") != "" {
			t.Fatalf("a kept denial is %+v; want what the first was: %+v", again, first)
		}
	}
	if n := s.asked(); n != 1 {
		t.Errorf("the service was asked %d times; want once", n)
	}
	if got := s.do("POST", "/x", []byte("body"), "X-Forwarded-For", "192.0.2.1"); got.status != 429 {
		t.Errorf("POST is %d", got.status)
	}
	if n := s.asked(); n != 1 {
		t.Errorf("another method was asked about %d times; want once", n)
	}
	// It ends by itself, in two seconds at most.
	time.Sleep(2100 * time.Millisecond)
	s.get("/x", "X-Forwarded-For", "192.0.2.1")
	if n := s.asked(); n != 1 {
		t.Errorf("after two seconds the service was asked %d times; want once", n)
	}
	s.noWarnings()
}

// TestDenyCacheKey: who or what differs in anything that decides is asked about anew.
func TestDenyCacheKey(t *testing.T) {
	s := denyStack(t)
	type request struct {
		method, path string
		headers      []string
	}
	base := request{"GET", "/x", []string{"X-Forwarded-For", "2001:db8:1:2::1", "X-API-Key", "sk_a"}}
	s.do(base.method, base.path, nil, base.headers...)
	s.asked()
	for _, tc := range []struct {
		name  string
		r     request
		asked int
	}{
		{"the same", base, 0},
		{"another path of the route", request{"GET", "/y?z=1", base.headers}, 0},
		{"another address of one client (C056)", request{"GET", "/x", []string{"X-Forwarded-For", "2001:db8:1:2::9", "X-API-Key", "sk_a"}}, 0},
		{"another client", request{"GET", "/x", []string{"X-Forwarded-For", "2001:db8:1:3::1", "X-API-Key", "sk_a"}}, 1},
		{"another key", request{"GET", "/x", []string{"X-Forwarded-For", "2001:db8:1:2::1", "X-API-Key", "sk_b"}}, 1},
		{"no key", request{"GET", "/x", []string{"X-Forwarded-For", "2001:db8:1:2::1"}}, 1},
		{"the key elsewhere", request{"GET", "/x?key=sk_a", []string{"X-Forwarded-For", "2001:db8:1:2::1"}}, 1},
		{"a key in both places", request{"GET", "/x?key=sk_a", base.headers}, 1},
		{"another method", request{"DELETE", "/x", base.headers}, 1},
		{"another route", request{"GET", "/pay", base.headers}, 1},
		{"another host", request{"GET", "/x", append([]string{"Host", "other.example"}, base.headers...)}, 1},
		{"a method that the route takes", request{"GET", "/read/a", base.headers}, 1},
		{"a method that the route takes, again", request{"GET", "/read/b", base.headers}, 0},
		{"one that it does not take: the URI decides", request{"PUT", "/read/a", base.headers}, 1},
		{"and another URI", request{"PUT", "/read/b", base.headers}, 1},
	} {
		if got := s.do(tc.r.method, tc.r.path, nil, tc.r.headers...); got.status != 429 {
			t.Errorf("%s: status %d", tc.name, got.status)
		}
		if n := s.asked(); n != tc.asked {
			t.Errorf("%s: asked %d times; want %d", tc.name, n, tc.asked)
		}
	}
}

// TestDenyCacheKeepsNothingElse: no allow, whatever it says, and no denial that
// the service does not offer.
func TestDenyCacheKeepsNothingElse(t *testing.T) {
	s := start(t, denyPolicy)
	for name, answer := range map[string]gentest.Answer{
		"an allow":                 {Headers: map[string]string{"X-Accel-Expires": "60"}},
		"an answer of nobody":      {Code: 200, Bare: true, Headers: map[string]string{"X-Accel-Expires": "60"}},
		"a denial not to be kept":  gentest.Deny(429, "Retry-After", "1", "X-Accel-Expires", "0"),
		"a denial that says none":  gentest.Deny(403),
		"a denial with a cookie's": gentest.Deny(429, "Cache-Control", "max-age=60", "Expires", "Thu, 31 Dec 2037 23:55:55 GMT"),
	} {
		s.authz.Answers(func(string, http.Header) gentest.Answer { return answer })
		s.asked()
		for range 3 {
			s.get("/x")
		}
		if n := s.asked(); n != 3 {
			t.Errorf("%s: asked %d times of 3", name, n)
		}
	}
}

// TestDenyCacheHoldsTheSecretsAlone: the folder is the workers' own, and gone
// with --no-deny-cache.
func TestDenyCacheHoldsTheSecretsAlone(t *testing.T) {
	s := denyStack(t)
	s.get("/x", "X-API-Key", "sk_secret_of_somebody")
	info, err := os.Stat(s.cacheDir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v; want mode 0700", info, err)
	}
	kept := 0
	err = filepath.WalkDir(s.cacheDir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			kept++
		}
		return err
	})
	if err != nil || kept != 1 {
		t.Errorf("%d entries, %v; want 1", kept, err)
	}
	files, err := Render(compiled(t, denyPolicy), Options{NoDenyCache: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if strings.Contains(string(content), "sluice_deny ") || strings.Contains(string(content), "proxy_cache_path") {
			t.Errorf("%s keeps denials in spite of NoDenyCache", name)
		}
	}
}
