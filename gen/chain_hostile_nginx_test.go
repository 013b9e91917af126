package gen

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice/gen/gentest"
)

// startHostileChain runs a site whose http { } has settings that the server of
// chain.conf inherits.
func startHostileChain(t *testing.T, settings string) (*stack, *authenticator) {
	t.Helper()
	a := &authenticator{}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	s := startOwnOptions(t, chainPolicy, Options{LoginSocket: "unix:" + gentest.CacheDir(t) + ".sock"}, settings+`
upstream sluice_app { server APP; }
server {
	listen LISTEN;
	include sluice/server.conf;
	include login.conf;
	limit_req zone=sluice_none_req; limit_conn sluice_none_conn 100; auth_basic off; satisfy all; allow all;
	location /pay { include sluice/routes/pay.conf; include sluice/app.conf; }
	location / { include sluice/routes/app.conf; include sluice/app.conf; }
}
server { include sluice/chain.conf; include login.conf; }
`, map[string]string{"login.conf": "location = /oauth2/auth { internal; proxy_cache off; proxy_pass " + server.URL + "; proxy_pass_request_body off; proxy_set_header Content-Length \"\";\n" +
		"proxy_set_header X-Seen-Uri $request_uri; proxy_set_header X-Seen-Method $request_method; proxy_set_header X-Seen-Host $host; proxy_set_header X-Seen-Args $args; }\n" +
		"location /oauth2/ { return 200 \"the authenticator's own page\"; }\n"})
	return s, a
}

// TestChainHostile: whatever a site says for all of its servers, nobody gets in
// whom the authenticator did not let in.
func TestChainHostile(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"a rate limit":        "limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m; limit_req zone=z;",
		"a connection limit":  "limit_conn_zone $binary_remote_addr zone=c:1m; limit_conn c 1;",
		"satisfy any":         "satisfy any; allow all;",
		"a password":          "auth_basic x; auth_basic_user_file nobody;",
		"pages for errors":    "error_page 401 403 404 500 502 503 =200 /index.html; recursive_error_pages on; proxy_intercept_errors on;",
		"a cache":             "proxy_cache_path cache keys_zone=site:1m; proxy_cache site; proxy_cache_valid any 1m; proxy_cache_key x; proxy_buffer_size 1k; proxy_buffers 4 1k; proxy_busy_buffers_size 2k;",
		"addresses":           "deny all;",
		"other upstream ways": "proxy_method POST; proxy_next_upstream off; proxy_store off; proxy_hide_header X-Sluice-Decision; proxy_hide_header X-Sluice-Status; proxy_ignore_client_abort on; underscores_in_headers on;",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := startHostileChain(t, settings)
			for i := range 4 {
				if got := s.get("/x"); got.status != 401 || got.header.Get("WWW-Authenticate") != `Login realm="site"` {
					t.Errorf("request %d, not logged in: %d %v", i, got.status, got.header)
				}
				if got := s.do("POST", "/x", make([]byte, 5000), "Cookie", "session=ann"); got.status != 200 || got.header.Get("X-Sluice-Degraded") != "" {
					t.Errorf("request %d, logged in: %d %v", i, got.status, got.header)
				}
			}
			s.authz.Answers(func(string, http.Header) gentest.Answer {
				return gentest.Deny(429, "Retry-After", "7", "RateLimit-Policy", strings.Repeat("x", 4000))
			})
			if got := s.get("/x", "Cookie", "session=ann"); got.status != 429 || got.header.Get("Retry-After") != "7" {
				t.Errorf("over the limit: %d %v", got.status, got.header)
			}
			s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Answer{Code: 503, Bare: true} })
			if got := s.get("/x", "Cookie", "session=ann"); got.status != 200 || got.header.Get("X-Sluice-Degraded") != "1" {
				t.Errorf("the service away, open: %d %v", got.status, got.header)
			}
			if got := s.get("/x"); got.status != 401 {
				t.Errorf("the service away, not logged in: %d %v", got.status, got.header)
			}
		})
	}
}

// TestChainRequest: the authenticator is asked about the client's own request, as
// it is where it is asked without a chain: it may decide by path or method.
func TestChainRequest(t *testing.T) {
	t.Parallel()
	s, a := startHostileChain(t, "")
	for _, tc := range []struct{ method, uri string }{
		{"GET", "/admin/%2e%2e/x?a=1&b=%20"}, {"POST", "/pay?x"}, {"HEAD", "/x"}, {"DELETE", "/" + strings.Repeat("y", 7900)},
		{"GET", "/x?next=/_sluice/open/app"}, {"GET", "/y/oauth2/"},
	} {
		got := s.do(tc.method, tc.uri, []byte("body"), "Host", "Shop.example", "Cookie", "session=ann", "X-Sluice-Ask", "/oauth2/")
		a.mu.Lock()
		seen := a.last
		a.mu.Unlock()
		if got.status != 200 || seen.Get("X-Seen-Uri") != tc.uri || seen.Get("X-Seen-Method") != tc.method || seen.Get("X-Seen-Host") != "shop.example" {
			t.Errorf("%s %.40s: %d, and the authenticator saw %s %.40s on %s", tc.method, tc.uri, got.status, seen.Get("X-Seen-Method"), seen.Get("X-Seen-Uri"), seen.Get("X-Seen-Host"))
		}
		paths, heard := s.authz.Asked()
		if len(heard) != 1 || heard[0].Get("X-Sluice-Uri") != tc.uri || heard[0].Get("X-Sluice-Method") != tc.method || !strings.HasPrefix(paths[0], "/_sluice/") {
			t.Errorf("%s %.40s: the service heard %v", tc.method, tc.uri, paths)
		}
		if got := s.do(tc.method, tc.uri, nil); got.status != 401 {
			t.Errorf("%s %.40s, not logged in: %d", tc.method, tc.uri, got.status)
		}
		s.authz.Asked()
	}
	s.noWarnings()
}
