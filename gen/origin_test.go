package gen

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCut(t *testing.T) {
	t.Parallel()
	f := func(text, want string, spans ...span) {
		t.Helper()
		clean, got := cut([]byte(text))
		if string(clean) != want {
			t.Errorf("%q gives %q, want %q", text, clean, want)
		}
		if diff := cmp.Diff(spans, got, cmp.AllowUnexported(span{})); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
	f("a\nb\n", "a\nb\n")
	f("a\n\x00p\x00b\n\x00\x00c\n", "a\nb\nc\n", span{2, 2, "p"})
	f("\x00p\x00a\n\x00q\x00b;\x00\x00\nc\x00\x00\nd", "a\nb;\nc\nd", span{1, 3, "p"}, span{2, 2, "q"})
	f("\x00p\x00\x00\x00", "", span{1, 1, "p"})
}

// TestOrigins: lines know the place of the policy that they come from, and no
// mark stays in a file (C041).
func TestOrigins(t *testing.T) {
	t.Parallel()
	files, origins, err := RenderTraced(compiled(t, `version: 1
client_ip: {trusted_proxies: [10.0.0.0/8]}
identity: {sources: [{api_key: {query: key}}], missing: {plan: p}}
edge:
  access:
    - {name: a, deny: {cidrs: [192.0.2.0/24]}}
    - {name: b, deny: all, when: {headers: {X-B: absent}, query: {bb: 'y+'}}}
  limits:
    v1.5: {per: {cookie: cc}, rate: 7/s, burst: 5}
    conn: {per: ip, connections: 5}
plans: {p: {limits: {speed: {per: ip, rate: 2/s, burst: 10}}}}
routes:
  - {name: one, match: {hosts: [one.example], exact: /one}}
  - {name: two, match: {regex: '^/two'}}
responses: {messages: {en: x, de: z}}
`), Options{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if bytes.IndexByte(content, 0) >= 0 {
			t.Errorf("%s holds a mark", name)
		}
	}
	f := func(file, line, want string) {
		t.Helper()
		found := false
		n := 0
		for text := range strings.Lines(string(files[file])) {
			n++
			if strings.Contains(text, line) {
				found = true
				if got := origins.Path(file, n); got != want {
					t.Errorf("%s:%d %q comes from %q, want %q", file, n, line, got, want)
				}
			}
		}
		if !found {
			t.Errorf("%s has no line with %q", file, line)
		}
	}
	const http = "sluice/http.conf"
	f(http, "192.0.2.0/24 1;", "edge.access[0]")
	f(http, "$http_x_b $sluice_access_b", "edge.access[1]")
	f(http, "y+", "edge.access[1]")
	f(http, "# First match of", "edge.access")
	f(http, "rate=7r/s", `edge.limits."v1.5"`)
	f(http, "limit_conn_zone $sluice_ip", "edge.limits.conn")
	f(http, "$sluice_cred_", "identity.sources")
	f(http, "upstream sluice_authz", "")
	f(http, "log_format sluice_access", "")
	f("sluice/real_ip.conf", "set_real_ip_from", "client_ip")
	f("sluice/routes/one.conf", "limit_req zone=", `edge.limits."v1.5"`)
	f("sluice/routes/one.conf", "limit_conn sluice_conn", "edge.limits.conn")
	f("sluice/routes/one.conf", "auth_request ", "routes[0]")
	f("sluice/locations.conf", "^/two", "routes[1]")
	f("nginx.conf", "server_name \"one.example\"", "routes")
	f("nginx.conf", "events {", "")
}
