package authz

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// gated is a policy with all kinds of access rules, and rates.
const gated = `client_ip: {trusted_proxies: [10.0.0.0/8]}
responses: {headers: [ratelimit-3]}
edge:
  access:
    - {name: office, exempt: {cidrs: [198.51.100.0/24]}}
    - {name: blocked, deny: {cidrs: [203.0.113.0/24, "2001:db8:bad::/48"]}}
    - {name: away, deny: {countries: [AT]}, status: 451}
    - {name: hosters, deny: {asns: [AS64500]}, routes: [hosted]}
    - {name: bots, deny: {user_agents: ['(?i)masscan']}, status: 444}
    - {name: home, allow: {countries: [DE]}, routes: [reports]}
    - {name: abroad, deny: all, routes: [reports]}
    - {name: no_anonymous_export, deny: all, routes: [files], when: {methods: [GET], cookies: {session: absent}}}
    - {name: candidate, deny: {cidrs: [192.0.2.66]}, mode: shadow}
  limits:
    knock: {per: ip, rate: 1/s, burst: 5}
    slow: {per: ip, rate: 60/m, burst: 3, delay: all, routes: [slow]}
plans:
  anonymous: {limits: {hourly: {per: ip, window: 10/1h}}}
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: anonymous}}
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: reports, match: {prefix: /reports}}
  - {name: files, match: {prefix: /files}}
  - {name: slow, match: {prefix: /slow}}
  - {name: hosted, match: {prefix: /hosted}}
  - {name: static, match: {prefix: /static}, service: false}
  - {name: all, match: {prefix: /}}
`

// newGated is a site with gated, changed by pairs of old and new text, and databases.
func newGated(t *testing.T, changes ...string) *site {
	t.Helper()
	s := newSite(t, strings.NewReplacer(changes...).Replace(gated))
	if err := s.engine.Locate(PlacesOf(world(t, 64500))); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestGateAccess: access rules hold for proxies that are no NGINX: the first that
// fits decides, by network, country, system, user agent and request.
func TestGateAccess(t *testing.T) {
	t.Parallel()
	s := newGated(t)
	for _, f := range []struct {
		client, uri, headers string
		status               int
	}{
		{"192.0.2.1", "/", "", 200},
		{"203.0.113.9", "/", "", 403},
		{"203.0.113.9", "/healthz", "", 200}, // nothing applies there
		{"203.0.113.9", "/static/a.js", "", 403},
		{"192.0.2.1", "/static/a.js", "", 200},
		{"203.0.113.9", "/nowhere/../healthz/", "", 403},
		{"2001:db8:bad::1", "/", "", 403},
		{"::ffff:203.0.113.9", "/", "", 403},
		{"2a00::1", "/", "", 451},
		{"9.1.1.1", "/hosted", "", 403},
		{"9.1.1.2", "/", "", 200},
		{"9.1.1.2", "/reports/1", "", 200},
		{"192.0.2.2", "/reports/1", "", 403},
		{"192.0.2.2", "/reports%2f1", "", 403},
		{"192.0.2.2", "/x/../reports/1", "", 403},
		{"192.0.2.2", "//reports//1", "", 403},
		{"192.0.2.3", "/", "User-Agent: Masscan/1\r\n", 403},
		{"192.0.2.3", "/files/1", "", 403},
		{"192.0.2.3", "/files/1", "Cookie: session=\r\n", 403},
		{"192.0.2.3", "/files/1", "Cookie: a=b; session=1\r\n", 200},
		{"198.51.100.1", "/reports/1", "User-Agent: masscan\r\n", 200}, // exempt before
		{"192.0.2.66", "/", "", 200},                                   // in shadow
	} {
		a := s.get(f.client, f.uri, f.headers)
		want := []string{"X-Sluice-Decision: allow"}
		if f.status != 200 {
			want = []string{"X-Sluice-Decision: deny", "X-Sluice-Reason: access", "Retry-After: ", "Cache-Control: no-store"}
		}
		a.want(t, f.client+" "+f.uri+" "+f.headers, f.status, want...)
	}
	// Of rules and clients nothing but the reason is told.
	if a := s.get("203.0.113.9", "/", ""); strings.Contains(a.raw, "blocked") || strings.Contains(a.raw, "203.0.113") {
		t.Errorf("a denial tells too much:\n%s", a.raw)
	}
	s.quiet()
	if log := s.log.String(); !strings.Contains(log, `"msg":"denied","verdict":"deny","reason":"access","route":"all","status":403,"client":"203.0.113.9"`) ||
		!strings.Contains(log, `"msg":"would be denied","verdict":"allow","reason":"access","route":"all","client":"192.0.2.66"`) {
		t.Errorf("the log:\n%s", log)
	}
	if c := s.engine.Counters(); c.Of(Deny, ReasonAccess) != 15 || c.WouldDeny != 1 {
		t.Errorf("counters: %+v", c)
	}
}

// TestGateExempt: whom a rule exempts no limit counts, neither the gate's nor the
// service's; his credential is looked at all the same.
func TestGateExempt(t *testing.T) {
	t.Parallel()
	s := newGated(t)
	for i := range 20 {
		s.get("198.51.100.7", "/", "").want(t, fmt.Sprint(i), 200, "RateLimit-Limit: ", "X-Sluice-Plan: anonymous")
	}
	s.get("198.51.100.7", "/", "X-API-Key: sk_nobody\r\n").want(t, "a wrong key", 401)
	s.get("198.51.100.7, 203.0.113.7", "/", "").want(t, "what he says himself", 403)
	s.get("192.0.2.1", "/", "X-Sluice-Exempt: 1\r\n").want(t, "what he says of it", 200, "RateLimit-Limit: 10")
}

// TestGateWithoutPlaces: without databases every public client is somewhere unknown.
func TestGateWithoutPlaces(t *testing.T) {
	t.Parallel()
	s := newSite(t, gated)
	s.get("2a00::1", "/", "").want(t, "a denied country", 200)
	s.get("9.1.1.1", "/reports/1", "").want(t, "an allowed country", 403)
	if err := s.engine.Locate(PlacesOf(world(t, 64500))); err != nil {
		t.Fatal(err)
	}
	s.get("2a00::1", "/", "").want(t, "a denied country", 451)
	s.get("9.1.1.1", "/reports/1", "").want(t, "an allowed country", 200)
}

// TestGateRates: edge rates hold as in NGINX: per address, before the service, a
// preflight counts, and what was counted lives through a reload.
func TestGateRates(t *testing.T) {
	t.Parallel()
	s := newGated(t)
	for i := range 3 {
		s.get("192.0.2.1", "/", "").want(t, fmt.Sprint(i), 200, fmt.Sprint("RateLimit-Remaining: ", 9-i))
	}
	preflight := strings.NewReplacer("GET", "OPTIONS").Replace("GET /authz HTTP/1.1\r\nHost: sluice\r\nX-Forwarded-Method: GET\r\n" +
		"X-Forwarded-Uri: /\r\nX-Forwarded-Host: api.example\r\nX-Forwarded-For: 192.0.2.1\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: PUT\r\n")
	s.through("10.0.0.1", preflight).want(t, "a preflight", 200, "RateLimit-Limit: ", "X-Sluice-Plan: ")
	s.get("192.0.2.1", "/static/a.js", "").want(t, "a route without the service", 200, "RateLimit-Limit: ")
	for range 2 {
		s.get("192.0.2.1", "/", "").want(t, "the sixth", 429, "X-Sluice-Limit: knock", "X-Sluice-Reason: edge_rate", "Retry-After: 1", "RateLimit-Limit: ")
	}
	s.through("10.0.0.1", preflight).want(t, "one preflight more", 429)
	s.get("192.0.2.2", "/", "").want(t, "another client", 200)
	s.swap(strings.Replace(gated, "name: office", "name: bureau", 1))
	s.get("192.0.2.1", "/", "").want(t, "after a reload", 429)
	s.clock.Advance(time.Second)
	s.get("192.0.2.1", "/", "").want(t, "a second later", 200, "RateLimit-Remaining: 6")
	s.get("192.0.2.1", "/", "").want(t, "and at once", 429)
	if c := s.engine.Counters(); c.Of(Deny, ReasonEdgeRate) != 5 {
		t.Errorf("counters: %+v", c)
	}
	series, _ := scrape(t, NewRegistry(s.engine, nil, "v1.2.3"))
	wantSeries(t, series, map[string]float64{`sluice_rate_limited_total{limit="knock",reason="edge_rate",route="all",tenant=""}`: 5})
}

// TestGateShapes: a rate with a delay holds the request, and no more of them than
// there is room for.
func TestGateShapes(t *testing.T) {
	t.Parallel()
	s := newGated(t, "burst: 3, delay: all", "burst: 12, delay: 8", "burst: 5", "burst: 50")
	for range 8 {
		s.get("192.0.2.1", "/slow", "").want(t, "undelayed", 200)
	}
	began := time.Now()
	s.get("192.0.2.1", "/slow", "").want(t, "delayed", 200)
	if took := time.Since(began); took < time.Second {
		t.Errorf("held for %s, want a second", took)
	}
	s.handler.held.Add(maxHeld)
	s.get("192.0.2.2", "/slow", "").want(t, "nothing to hold", 200)
	s.get("192.0.2.1", "/slow", "").want(t, "one too many held", 503, "X-Sluice-Reason: overload", "Retry-After: 1")
	s.handler.held.Add(-maxHeld)
}

// TestGateShadow: a policy that only watches refuses nothing, and one that is
// disabled does not even look.
func TestGateShadow(t *testing.T) {
	t.Parallel()
	s := newGated(t, "client_ip:", "mode: shadow\nclient_ip:")
	for range 7 {
		s.get("203.0.113.9", "/", "").want(t, "in shadow", 200)
	}
	if c := s.engine.Counters(); c.WouldDeny != 7+2 {
		t.Errorf("would deny %d, want 7 by a rule and 2 by a rate", c.WouldDeny)
	}
	s.swap("mode: disabled\n" + gated)
	for range 7 {
		s.get("203.0.113.9", "/", "").want(t, "disabled", 200)
	}
}

// TestGateDirect: where only trusted proxies may connect, they may only connect to
// the proxy that asks, too; and only they may name the client in the policy's header.
func TestGateDirect(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.Replace(gated, "trusted_proxies: [10.0.0.0/8]", "trusted_proxies: [10.0.0.0/8], header: CF-Connecting-IP, direct: deny", 1))
	s.get("10.0.0.7", "/", "CF-Connecting-IP: 192.0.2.1\r\n").want(t, "through the trusted one", 200)
	s.get("10.0.0.7", "/", "CF-Connecting-IP: 203.0.113.1\r\n").want(t, "a blocked client of his", 403)
	s.get("192.0.2.1", "/", "CF-Connecting-IP: 198.51.100.1\r\n").want(t, "past it", 403)
	s.get("10.0.0.7, 192.0.2.1", "/", "CF-Connecting-IP: 198.51.100.1\r\n").want(t, "past it, with a forged hop", 403)
	s.swap(strings.Replace(gated, "trusted_proxies: [10.0.0.0/8]", "trusted_proxies: [10.0.0.0/8], header: CF-Connecting-IP", 1))
	s.get("203.0.113.1", "/", "CF-Connecting-IP: 198.51.100.1\r\n").want(t, "a header that nobody trusted wrote", 403)
	s.swap(strings.Replace(gated, "trusted_proxies: [10.0.0.0/8]", "trusted_proxies: [10.0.0.0/8], header: proxy_protocol", 1))
	s.get("203.0.113.1", "/", "Proxy: 198.51.100.1\r\nX-Forwarded-For: 198.51.100.1, 203.0.113.1\r\n").want(t, "a PROXY line that is a header", 403)
	s.get("10.0.0.7", "/reports", "Proxy: 198.51.100.1\r\n").want(t, "through a trusted one", 403)
}

// TestGateAtOnce: many questions, reloads and databases at once; exactly a burst passes.
func TestGateAtOnce(t *testing.T) {
	t.Parallel()
	s := newGated(t, "window: 10/1h", "window: 1000/1h", "rate: 1/s, burst: 5", "rate: 1/s, burst: 40")
	policy, tables := compile(t, strings.NewReplacer("window: 10/1h", "window: 1000/1h", "rate: 1/s, burst: 5", "rate: 1/s, burst: 40").Replace(gated)), world(t, 64500)
	var wg sync.WaitGroup
	var passed sync.Map
	for i := range 8 {
		wg.Go(func() {
			n := 0
			for j := range 20 {
				if i == 0 && j%5 == 0 {
					if err := s.engine.Locate(PlacesOf(tables)); err != nil {
						t.Error(err)
					}
				}
				if i == 1 && j%5 == 0 {
					if err := s.engine.Swap(policy); err != nil {
						t.Error(err)
					}
				}
				if s.get("192.0.2.1", "/", "").status == fasthttp.StatusOK {
					n++
				}
			}
			passed.Store(i, n)
		})
	}
	wg.Wait()
	sum := 0
	passed.Range(func(_, n any) bool { sum += n.(int); return true })
	if sum != 40 {
		t.Errorf("%d passed, want the burst of 40", sum)
	}
}

// TestGateOnce: the gate is made once for a policy and its databases.
func TestGateOnce(t *testing.T) {
	t.Parallel()
	s := newGated(t)
	b, places := s.engine.state.Load(), s.engine.places.Load()
	if first := s.engine.gateOf(b, places); s.engine.gateOf(b, places) != first {
		t.Error("the gate is made anew for each question")
	}
}
