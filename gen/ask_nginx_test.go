package gen

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"sluice/gen/gentest"
	"sluice/policies"
)

// TestCredentials: each credential reaches the service as it was shown, as `!`
// when it cannot be one, or not at all (C014, C119).
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := start(t, `version: 1
identity:
  sources:
    - api_key: {header: X-API-Key}
    - api_key: {header: Authorization, scheme: Bearer, prefix: sk_}
    - api_key: {query: api_key}
    - api_key: {cookie: the-key}
  missing: {plan: p}
plans: {p: {limits: {speed: {per: [{header: X-Org}, {query: scope, capture: 'a(.*)b'}, {cookie: c_d}, server], rate: 1/s, burst: 1}}}}
`)
	f := func(header, want, path string, headers ...string) {
		t.Helper()
		s.authz.Asked()
		s.get(path, headers...)
		_, asked := s.authz.Asked()
		if got := asked[0].Get(header); got != want {
			t.Errorf("for %s %.40q the service was sent %s: %.40q; want %.40q", path, headers, header, got, want)
		}
	}
	long := strings.Repeat("k", 512)
	f("X-Api-Key", "", "/")
	f("X-Api-Key", "", "/", "X-API-Key", "")
	f("X-Api-Key", "sk_1", "/", "X-API-Key", "sk_1")
	f("X-Api-Key", long, "/", "X-API-Key", long)
	f("X-Api-Key", "!", "/", "X-API-Key", long+"k")
	f("X-Api-Key", "!", "/", "X-API-Key", "two words")
	f("X-Api-Key", "!", "/", "X-API-Key", "sch\xc3\xb6n")
	f("Authorization", "", "/", "Authorization", "Basic dXNlcjpwYXNz")
	f("Authorization", "", "/", "Authorization", "Bearerx y")
	f("Authorization", "Bearer sk_1", "/", "Authorization", "Bearer sk_1")
	f("Authorization", "bearer sk_1", "/", "Authorization", "bearer sk_1")
	f("Authorization", "!", "/", "Authorization", "Bearer sk_1, Bearer sk_2")
	f("Authorization", "!", "/", "Authorization", "Bearer")
	f("Authorization", "!", "/", "Authorization", "Bearer  x")
	f("X-Sluice-Query-Api_key", "k1", "/?x=1&api_key=k1&api_key=k2")
	f("X-Sluice-Query-Api_key", "", "/?xapi_key=k1&API_KEY=k2&x=api_key=k3#api_key=k4")
	f("X-Sluice-Query-Api_key", "a%2Bb", "/?api_key=a%2Bb")
	f("X-Sluice-Query-Api_key", "!", "/?api_key="+long+"k")
	f("X-Sluice-Cookie-The-Key", "k1", "/", "Cookie", "a=b; the-key=k1; the-key=k2")
	f("X-Sluice-Cookie-The-Key", "!", "/", "Cookie", `the-key=a b`)
	f("X-Sluice-Header-X-Org", "an org", "/", "X-Org", "an org")
	f("X-Sluice-Header-X-Org", "", "/", "X-Org", strings.Repeat("o", 201))
	f("X-Sluice-Header-X-Org", "", "/", "X-Sluice-Header-X-Org", "mine")
	f("X-Sluice-Query-Scope", "axxb", "/?scope=axxb")
	f("X-Sluice-Cookie-C_d", "v", "/", "Cookie", "c_d=v")
	f("X-Sluice-Server", "_", "/", "Host", "anything.example")
	f("X-Sluice-Uri", "/a%20b?api_key=k", "/a%20b?api_key=k")
	f("X-Sluice-Method", "GET", "/")

	s.app.Requests()
	s.get("/", "Authorization", "Basic dXNlcjpwYXNz")
	if got := s.app.Requests()[0].Get("Authorization"); got != "Basic dXNlcjpwYXNz" {
		t.Errorf("another scheme reached the application as %q", got)
	}
	s.noWarnings()
}

// TestTokenCredentials: a signed token is longer than a key, and reaches the
// service whole wherever it is carried; a key in the same place is still a key.
func TestTokenCredentials(t *testing.T) {
	t.Parallel()
	const set = `{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	p, ds := policies.Parse("policy.yaml", []byte(`version: 1
identity:
  sources:
    - api_key: {header: Authorization, scheme: Bearer, prefix: sk_}
    - jwt: {header: authorization, jwks_file: jwks.json, issuer: i}
    - jwt: {header: X-Token, jwks_file: jwks.json, issuer: i}
    - jwt: {query: token, jwks_file: jwks.json, issuer: i}
    - jwt: {cookie: session, jwks_file: jwks.json, issuer: i}
    - api_key: {header: X-API-Key}
  missing: {plan: p}
plans: {p: {limits: {speed: {per: ip, rate: 1/s, burst: 1}}}}
`), func(policies.FileName) ([]byte, error) { return []byte(set), nil })
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	s := startCompiled(t, policies.Compile(p), func(Files, string) {})
	f := func(header, want, path string, headers ...string) {
		t.Helper()
		s.authz.Asked()
		s.get(path, headers...)
		_, asked := s.authz.Asked()
		if len(asked) != 1 {
			t.Fatalf("for %.40q the service was asked %d times", headers, len(asked))
		}
		if got := asked[0].Get(header); got != want {
			t.Errorf("for %.40q the service was sent %s of %d bytes, %.20q; want %d bytes, %.20q", headers, header, len(got), got, len(want), want)
		}
	}
	for _, n := range []int{513, 2000, policies.MaxToken} {
		token := "eyJ" + strings.Repeat("t", n-3)
		f("Authorization", "Bearer "+token, "/", "Authorization", "Bearer "+token)
		f("X-Token", token, "/", "X-Token", token)
		f("X-Sluice-Query-Token", token, "/?token="+token)
		f("X-Sluice-Cookie-Session", token, "/", "Cookie", "session="+token)
		f("X-Api-Key", "!", "/", "X-API-Key", token)
	}
	long := "eyJ" + strings.Repeat("t", policies.MaxToken-2)
	f("Authorization", "!", "/", "Authorization", "Bearer "+long)
	f("X-Token", "!", "/", "X-Token", long)
	f("Authorization", "Bearer sk_1", "/", "Authorization", "Bearer sk_1")
	f("Authorization", "", "/", "Authorization", "Basic "+long[:100])
	// A denial with the longest token fits into what NGINX keeps, and is kept.
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Deny(429, "X-Accel-Expires", "1", "Retry-After", "9")
	})
	for _, token := range []string{long[:policies.MaxToken], long[:policies.MaxToken-1]} {
		s.authz.Asked()
		for range 2 {
			if got := s.get("/", "Authorization", "Bearer "+token, "X-Token", token); got.status != 429 {
				t.Errorf("a denial of a long token is %d", got.status)
			}
		}
		if paths, _ := s.authz.Asked(); len(paths) > 2 || len(paths) == 0 {
			t.Errorf("a token was asked about %d times", len(paths))
		}
	}
	s.noWarnings()
}

// TestAddress: the service is told the address that NGINX resolved, from the
// right past trusted proxies (C020, C051, C053).
func TestAddress(t *testing.T) {
	t.Parallel()
	s := start(t, `version: 1
client_ip: {trusted_proxies: [127.0.0.1, 198.51.100.0/24]}
limits: {x: {per: ip, rate: 1/s, burst: 1}}
`)
	for forwarded, want := range map[string]string{
		"":                                   "127.0.0.1",
		"203.0.113.9":                        "203.0.113.9",
		"6.6.6.6, 203.0.113.9":               "203.0.113.9",
		"6.6.6.6, 203.0.113.9, 198.51.100.7": "203.0.113.9",
		"203.0.113.9, unknown, 198.51.100.7": "198.51.100.7",
		"203.0.113.9, unknown":               "127.0.0.1",
		"[2001:db8::1]:443":                  "2001:db8::1",
		"::ffff:203.0.113.9":                 "::ffff:203.0.113.9",
	} {
		s.authz.Asked()
		s.get("/", "X-Forwarded-For", forwarded)
		_, asked := s.authz.Asked()
		if got := asked[0].Get("X-Sluice-Ip"); got != want {
			t.Errorf("X-Forwarded-For %q is the client %q; want %q", forwarded, got, want)
		}
	}
}

// TestOwnNames: everything that is defined has a name of ours (C124), and
// what is in a file belongs at its level.
func TestOwnNames(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{keyedPolicy, matrixPolicy(map[string]int{"identity": 2, "limits": 1, "access": 1, "edge": 1, "routes": 1, "responses": 1, "client": 1})} {
		for name, content := range rendered(t, policy) {
			if name == "nginx.conf" {
				continue
			}
			for _, re := range []string{`(?m)^ *(?:map|geo) .*?\$(\w+) \{`, `zone=(\w+)`, `(?m)^limit_conn (\w+)`, `(?m)^ *upstream (\w+)`, `log_format (\w+)`, `\(\?<(\w+)>`, `location @(\w+)`, `(?m)\bset \$(\w+)`, `auth_request_set \$(\w+)`} {
				for _, m := range regexp.MustCompile(re).FindAllStringSubmatch(string(content), -1) {
					if !strings.HasPrefix(m[1], "sluice_") {
						t.Errorf("%s defines %s", name, m[1])
					}
				}
			}
		}
	}
}
