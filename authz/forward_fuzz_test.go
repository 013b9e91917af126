package authz

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// shut is a policy that lets nobody pass but whom it exempts, and those with a key.
const shut = `client_ip: {trusted_proxies: [10.0.0.0/8], header: %s}
edge:
  access:
    - {name: office, exempt: {cidrs: [198.51.100.0/24, "2001:db8:77::/48"]}}
    - {name: elsewhere, deny: all}
routes:
  - {name: admin, match: {prefix: /admin, hosts: [admin.example]}}
  - {name: all, match: {prefix: /}}
`

// TestForwardHops: the last address that the proxy wrote is who connected to it,
// however many lines and lists a client sends before.
func TestForwardHops(t *testing.T) {
	t.Parallel()
	s := newSite(t, fmt.Sprintf(shut, "X-Forwarded-For"))
	const head = "GET /authz HTTP/1.1\r\nHost: sluice\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\nX-Forwarded-Host: a.example\r\n"
	for _, f := range []struct {
		hops   string
		status int
	}{
		{"X-Forwarded-For: 198.51.100.1\r\n", 200},
		{"X-Forwarded-For: 198.51.100.1:4711\r\n", 200},
		{"X-Forwarded-For: [2001:db8:77::1]:4711\r\n", 200},
		{"X-Forwarded-For: 198.51.100.1, 10.0.0.3\r\n", 200},
		{"X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 10.0.0.3, 10.0.0.4\r\n", 200},
		{"X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 192.0.2.1\r\n", 403},
		{"X-Forwarded-For: 198.51.100.1, 192.0.2.1\r\n", 403},
		{"X-Forwarded-For: 198.51.100.1, 192.0.2.1, 10.0.0.3\r\n", 403},
		{"X-Forwarded-For: 198.51.100.1, unknown, 10.0.0.3\r\n", 403},
		{"x-forwarded-for: 198.51.100.1\r\nX-FORWARDED-FOR: 192.0.2.1\r\n", 403},
		{"X-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: \r\n", 400},
		{"X-Forwarded-For: 198.51.100.1, \r\n", 200}, // NGINX reads it so
		{"X-Forwarded-For: 198.51.100.1, x\r\n", 400},
		{"X-Forwarded-For: 198.51.100.1;192.0.2.1\r\n", 400},
		{"X-Forwarded-For: 255.255.255.255\r\n", 400},
		{"X_Forwarded_For: 198.51.100.1\r\nX-Real-IP: 198.51.100.1\r\nForwarded: for=198.51.100.1\r\n", 400},
		// Connection makes proxies drop what it names.
		{"Connection: X-Forwarded-For\r\n", 400},
		{"X-Forwarded-For: 192.0.2.1\r\nX-Sluice-Ip: 198.51.100.1\r\nX-Real-IP: 198.51.100.1\r\nTrue-Client-IP: 198.51.100.1\r\nForwarded: for=198.51.100.1\r\n", 403},
	} {
		s.through("10.0.0.1", head+f.hops).want(t, f.hops, f.status)
	}
	s.through("10.0.0.1", head+strings.Repeat("A: \r\n", 300)+"X-Forwarded-For: 198.51.100.1\r\n").want(t, "hundreds of headers", 431)
	// Envoy puts its own address behind.
	envoy := "GET /authz/ HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: "
	s.through("10.0.0.1", envoy+"198.51.100.1, 10.0.0.9\r\n").want(t, "Envoy", 200)
	s.through("10.0.0.1", envoy+"198.51.100.1, 192.0.2.1, 10.0.0.9\r\n").want(t, "a forged hop before Envoy's", 403)
	s.swap(fmt.Sprintf(shut, "CF-Connecting-IP"))
	s.through("10.0.0.1", envoy+"10.0.0.7, 10.0.0.9\r\nCF-Connecting-IP: 198.51.100.1\r\n").want(t, "Envoy behind a trusted one", 200)
	s.through("10.0.0.1", envoy+"192.0.2.1, 10.0.0.9\r\nCF-Connecting-IP: 198.51.100.1\r\n").want(t, "Envoy, and a client who says so", 403)
}

// FuzzForward: whatever a client sends through a proxy, nothing panics, and nobody is
// let pass whom the policy shuts out: the proxy's own words stand.
func FuzzForward(f *testing.F) {
	s := newSite(f, fmt.Sprintf(shut, "X-Forwarded-For"))
	for _, headers := range []string{
		"X-Sluice-Exempt: 1\nX-Sluice-Ip: 198.51.100.1", "x-forwarded-for: 198.51.100.1\nX-FORWARDED-FOR:198.51.100.1", "X-Forwarded-Uri: /x\nX-Forwarded-Method: OPTIONS",
		"Origin: https://a\nAccess-Control-Request-Method: GET", "X-Forwarded-Host: admin.example", "Proxy: 198.51.100.1", "Host: \xff", "Cookie: =;;a=\x01\xfe", "\x80: \x80",
		"User-Agent: " + strings.Repeat("a", 9000), "X-Forwarded-For : 198.51.100.1", " X-Forwarded-For: 198.51.100.1", "Transfer-Encoding: chunked", "Content-Length: 5",
	} {
		f.Add("GET", "/", "a.example", headers)
	}
	f.Add("OPTIONS", "/admin/%2e%2e/%2F", "ADMIN.example.:80", "")
	f.Add("\xff", "*", "[::1", "")
	f.Add("GET", "http://admin.example/admin", "", "")
	f.Fuzz(func(t *testing.T, method, uri, host, headers string) {
		line := func(s string) string { return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(s) }
		var b strings.Builder
		b.WriteString("GET /authz HTTP/1.1\r\nHost: sluice\r\n")
		for h := range strings.SplitSeq(headers, "\n") {
			// A proxy overwrites these three, and adds to the fourth.
			if name, _, ok := strings.Cut(h, ":"); !ok || strings.TrimSpace(name) == "" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(name)), "x-forwarded-") && !strings.EqualFold(name, "X-Forwarded-For") {
				continue
			}
			b.WriteString(line(h) + "\r\n")
		}
		fmt.Fprintf(&b, "X-Forwarded-Method: %s\r\nX-Forwarded-Uri: %s\r\nX-Forwarded-Host: %s\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n", line(method), line(uri), line(host))
		s.refuses(t, "10.0.0.1", []byte(b.String()))
	})
}

// FuzzForwardHead: no head at all makes anything panic, or is an allow under a policy
// that has none.
func FuzzForwardHead(f *testing.F) {
	s := newSite(f, strings.Replace(fmt.Sprintf(shut, "X-Forwarded-For"), "    - {name: office, exempt: {cidrs: [198.51.100.0/24, \"2001:db8:77::/48\"]}}\n", "", 1))
	for _, head := range []string{
		"GET /authz HTTP/1.1\r\nHost: a\r\n\r\n", "POST /authz/x?y HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n", "GET /authz? HTTP/1.0\r\n\r\n",
		"CONNECT /authz HTTP/1.1\r\nX-Forwarded-For: ,,,\r\n\r\n", "GET http://a/authz HTTP/1.1\r\nHost: a\r\n\r\n", "GET /authz/\xff%zz HTTP/1.1\r\nHost:\r\n\r\n",
	} {
		f.Add("10.0.0.1", []byte(head))
	}
	f.Fuzz(func(t *testing.T, peer string, head []byte) {
		if net.ParseIP(peer) == nil {
			peer = "10.0.0.1"
		}
		s.refuses(t, peer, head)
	})
}

// refuses asks with any head, if it is one.
func (s *site) refuses(t *testing.T, peer string, head []byte) {
	t.Helper()
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.ParseIP(peer), Port: 1}, nil)
	if err := ctx.Request.Header.Read(bufio.NewReader(bytes.NewReader(head))); err != nil || !isForward(ctx.Request.Header.RequestURI()) {
		return
	}
	s.handler.serve(&ctx)
	if status := ctx.Response.StatusCode(); status != 400 && status != 403 && status != 431 {
		t.Errorf("%q is answered %d", head, status)
	}
	if panics := s.engine.Counters().Panics; panics > 0 {
		t.Fatalf("%q made %d decisions panic:\n%s", head, panics, s.log)
	}
}
