package authz

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// through asks as a proxy at an address does; the head ends with its last header.
func (s *site) through(peer, head string) answer {
	s.t.Helper()
	var ctx fasthttp.RequestCtx
	ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.ParseIP(peer), Port: 1}, nil)
	if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(head + "\r\n"))); err != nil {
		s.t.Fatalf("%q: %v", head, err)
	}
	s.handler.serve(&ctx)
	a := answer{status: ctx.Response.StatusCode(), header: map[string]string{}, raw: ctx.Response.String()}
	for name, value := range ctx.Response.Header.All() {
		a.header[string(name)] = string(value)
	}
	return a
}

const forwardShop = "client_ip: {trusted_proxies: [10.0.0.0/8]}\nresponses: {messages: {en: 'Come back in {retry_after} s.', de: 'Wieder in {retry_after} s.'}}\n" + shop

// get is a question of Caddy's or Traefik's for a client, with headers of his.
func (s *site) get(client, uri, headers string) answer {
	s.t.Helper()
	return s.through("10.0.0.1", "GET /authz HTTP/1.1\r\nHost: sluice\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: "+uri+
		"\r\nX-Forwarded-Host: api.example\r\nX-Forwarded-For: "+client+"\r\n"+headers)
}

// The same limits as by NGINX, for a route that the service finds, with the true
// status and a body.
func TestForward(t *testing.T) {
	s := newSite(t, forwardShop)
	s.get("192.0.2.1", "/search?q=1", "X-Api-Key: sk_a\r\n").want(t, "a key", 200, "X-Sluice-Tenant: globex", "X-Sluice-Plan: free",
		`RateLimit: "speed";r=5;t=3`, "Cache-Control: no-store", "X-Accel-Expires: ")
	s.get("192.0.2.1", "/x?a=b&api_key=sk_a&api_key=sk_web", "").want(t, "a query", 200, "X-Sluice-Tenant: globex", `RateLimit: "speed";r=4;t=3`)
	s.get("192.0.2.1", "/", "Cookie: a=b; session=sk_b\r\n").want(t, "a cookie", 200, "X-Sluice-Tenant: globex")
	s.get("192.0.2.1", "/", "Authorization: Bearer sk_web\r\n").want(t, "a scheme", 200, "X-Sluice-Tenant: acme", "X-Sluice-Priority: high")
	s.get("192.0.2.1", "/", "X-Api-Key: sk_nobody\r\n").want(t, "a wrong key", 401, "X-Sluice-Tenant: ", "Content-Type: application/problem+json")
	s.get("192.0.2.1", "/", "X-Api-Key: sk_a\r\nX-Api-Key: sk_a\r\n").want(t, "two keys", 401)
	s.get("192.0.2.1", "/reports", "").want(t, "a route for plans", 401)
	s.get("192.0.2.1", "/free", "X-Api-Key: sk_nobody\r\n").want(t, "an exempt route", 200)
	for i := range 3 {
		s.get("192.0.2.9", "/", "").want(t, fmt.Sprint("anonymous ", i), 200, "X-Sluice-Plan: anonymous")
	}
	a := s.get("192.0.2.9", "/", "")
	a.want(t, "anonymous", 429, "Retry-After: 1", "X-Sluice-Limit: speed", "X-Sluice-Reason: rate")
	if !strings.Contains(a.raw, `"detail":"Come back in 1 s.","retry_after":1,"limit":"speed","violated-policies":["speed"],"reason":"rate"}`) {
		t.Errorf("the body:\n%s", a.raw)
	}
	a = s.get("192.0.2.9", "/", "Accept: text/html,*/*\r\nAccept-Language: fr, de;q=0.5\r\n")
	a.want(t, "a browser", 429, "Content-Type: text/html; charset=utf-8", "Content-Language: de", "Vary: Accept, Accept-Language", "Cache-Control: no-store")
	if !strings.Contains(a.raw, `<p lang="de">Wieder in 1 s.</p>`) {
		t.Errorf("the page:\n%s", a.raw)
	}
	s.get("192.0.2.9", "/", "Content-Type: application/grpc\r\n").want(t, "gRPC", 429)
	// Envoy: the client's own method and path, behind ours.
	envoy := func(line, headers string) answer {
		return s.through("10.0.0.1", line+" HTTP/1.1\r\nHost: api.example\r\nX-Forwarded-For: 192.0.2.20\r\nX-Api-Key: sk_web\r\n"+headers)
	}
	envoy("POST /authz/items/7", "").want(t, "POST, by Envoy", 200, `RateLimit: "speed";r=77;t=1`)
	envoy("GET /authz/items/7", "X-Forwarded-Method: POST\r\nX-Forwarded-Uri: /search\r\n").want(t, "what a client says beside it", 200, `RateLimit: "speed";r=76;t=1`)
	envoy("OPTIONS /authz/items/7", "Origin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\n").want(t, "a preflight", 200, "RateLimit: ")
}

// What a client writes makes him nobody else, frees him of nothing, and gets no
// question past its limit.
func TestForgedForward(t *testing.T) {
	s := newSite(t, forwardShop)
	forged := "X-Sluice-Exempt: 1\r\nX-Sluice-Ip: 203.0.113.%d\r\nX-Sluice-Login: 1\r\nX-Sluice-Login-Tenant: acme\r\nX-Sluice-Request: same\r\n" +
		"x-sluice-query-api_key: sk_web\r\nX-Sluice-Cookie-Session: sk_web\r\nX-Sluice-Method: GET\r\nX-Sluice-Uri: /free\r\nX-Sluice-Tenant: acme\r\nX-Request-Id: same\r\n"
	for i := range 5 {
		want := 200
		if i > 2 {
			want = 429
		}
		// What he writes himself stands left of what the proxy adds.
		a := s.get(fmt.Sprintf("203.0.113.%d, 192.0.2.1", i), "/", fmt.Sprintf(forged, i))
		a.want(t, fmt.Sprint("forged ", i), want)
		if strings.Contains(a.raw, "acme") {
			t.Errorf("taken for a tenant:\n%s", a.raw)
		}
	}
	one := "GET /authz HTTP/1.1\r\nHost: a\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /\r\nX-Forwarded-Host: a\r\nX-Forwarded-For: 192.0.2.77\r\n"
	for _, peer := range []string{"192.0.2.1", "127.0.0.1", "::1", "11.0.0.1"} {
		s.through(peer, one).want(t, "a peer that is no trusted proxy", 403, "X-Sluice-Decision: ")
		s.through(peer, strings.Replace(one, "/authz", "/authz/x", 1)).want(t, "nor below", 403)
	}
	s.through("::ffff:10.0.0.1", one).want(t, "a trusted one", 200)
	for _, bad := range []string{
		strings.Replace(one, "X-Forwarded-Uri: /\r\n", "", 1),
		strings.Replace(one, "X-Forwarded-Method: GET\r\n", "", 1),
		strings.Replace(one, "X-Forwarded-Host: a\r\n", "", 1),
		strings.Replace(one, "X-Forwarded-For: 192.0.2.77\r\n", "", 1),
		strings.Replace(one, "192.0.2.77", "192.0.2.77, unknown", 1), strings.Replace(one, "192.0.2.77", "192.0.2.77, fe80::1%eth0", 1),
		strings.Replace(one, "Uri: /", "Uri: http://a/free", 1), strings.Replace(one, "Uri: /", "Uri: *", 1), one + "X-Forwarded-Host: b\r\n",
		one + "X-Forwarded-Uri: /free\r\n", one + "X-Forwarded-Method: POST\r\n",
		strings.Replace(one, "Uri: /", "Uri: free", 1), strings.Replace(one, "Uri: /", "Uri: /%zz", 1), strings.Replace(one, "Uri: /", "Uri: /../..", 1),
		strings.Replace(one, "GET /authz", "GET /authz?x=/free", 1) + "X-Forwarded-Uri: /free\r\n",
	} {
		s.through("10.0.0.1", bad).want(t, bad, 400, "X-Sluice-Decision: ")
	}
	for _, path := range []string{"/authzx", "/authz%2f", "/Authz", "//authz", "/x/../authz"} {
		s.through("10.0.0.1", strings.Replace(one, "/authz", path, 1)).want(t, path, 404)
	}
	s.get("192.0.2.50", "/free/../reports", "").want(t, "a path with dots", 401)
}

// The store is away: the route's own line decides.
func TestForwardWithoutStore(t *testing.T) {
	s, store := newAskedSite(t, forwardShop)
	store.fail.Store(true)
	s.get("192.0.2.1", "/", "").want(t, "open", 200, "X-Sluice-Degraded: 1")
	s.get("192.0.2.1", "/closed", "").want(t, "closed", 503, "Retry-After: 1", "X-Sluice-Reason: store_down")
}
