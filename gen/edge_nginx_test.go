package gen

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sluice/gen/gentest"
)

// proxied is the beginning of policies whose tests choose the client's address.
const proxied = "version: 1\nclient_ip: {trusted_proxies: [127.0.0.1]}\n"

func count(statuses []int, want int) int {
	n := 0
	for _, s := range statuses {
		if s == want {
			n++
		}
	}
	return n
}

// TestEdgeRate: a burst is exactly so many at once (C021), and the refusal says
// when to come back: as long as the rate takes for one (C022).
func TestEdgeRate(t *testing.T) {
	t.Parallel()
	s := start(t, proxied+`
edge:
  limits:
    slow: {per: ip, rate: 6/m, burst: 4, routes: [slow]}
    single: {per: ip, rate: 1/m, burst: 1, routes: [single]}
    shaped: {per: ip, rate: 20/s, burst: 3, delay: all, routes: [shaped]}
    conn: {per: ip, connections: 2, routes: [conn]}
routes:
  - {name: slow, match: {prefix: /slow}}
  - {name: single, match: {prefix: /single}}
  - {name: shaped, match: {prefix: /shaped}}
  - {name: conn, match: {prefix: /conn}}
  - {name: free, match: {prefix: /}}
`)
	if got := s.statuses(6, "/slow/x"); !slices.Equal(got, []int{200, 200, 200, 200, 429, 429}) {
		t.Errorf("burst 4 gave %v", got)
	}
	got := s.get("/slow/x")
	if got.header.Get("Retry-After") != "10" || got.header.Get("X-Sluice-Reason") != "edge_rate" || !strings.Contains(got.body, `"retry_after":10`) ||
		got.header.Get("Content-Type") != "application/problem+json" || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("a refusal of the edge is %+v", got)
	}
	if got := s.statuses(2, "/single"); !slices.Equal(got, []int{200, 429}) {
		t.Errorf("burst 1 gave %v", got)
	}
	if got := s.get("/single"); got.header.Get("Retry-After") != "60" {
		t.Errorf("1/m says %q", got.header.Get("Retry-After"))
	}
	if got := s.statuses(8, "/shaped"); count(got, 200) != 8 {
		t.Errorf("one after the other, all shaped, gave %v", got)
	}
	if got := s.get("/slow/x", "X-Forwarded-For", "192.0.2.1"); got.status != 200 {
		t.Errorf("another client got %d", got.status)
	}
	results := make(chan answer)
	for range 4 {
		go func() { results <- s.get("/conn?wait=300ms") }()
	}
	var conns []int
	for range 4 {
		a := <-results
		conns = append(conns, a.status)
		if a.status == 429 && (a.header.Get("Retry-After") != "1" || a.header.Get("X-Sluice-Reason") != "edge_conn") {
			t.Errorf("a refused connection got %+v", a)
		}
	}
	if count(conns, 200) != 2 || count(conns, 429) != 2 {
		t.Errorf("two connections gave %v", conns)
	}
	if got := s.get("/free?status=429"); got.body != "app GET /free?status=429 body=0\n" {
		t.Errorf("the application's own 429 is %+v", got)
	}
	if paths, _ := s.authz.Asked(); len(paths) != 0 {
		t.Errorf("nobody needs the service here, and it was asked %v", paths)
	}
	s.noWarnings()
}

// TestEdgeKeys: what a limit counts by, and what stands in for it (C028, C016).
func TestEdgeKeys(t *testing.T) {
	t.Parallel()
	s := start(t, proxied+`
edge:
  limits:
    header: {per: {header: X-Api-Key}, rate: 1/m, burst: 1, routes: [header]}
    query: {per: {query: scope, capture: '^repository:([^/]+)/'}, rate: 1/m, burst: 1, routes: [query]}
    cookie: {per: {cookie: my-session}, rate: 1/m, burst: 1, routes: [cookie]}
    both: {per: [{header: A}, ip, {header: B}, server], rate: 1/m, burst: 1, routes: [both]}
    route: {per: [ip, route], rate: 1/m, burst: 1, routes: [one, two]}
    shared: {per: ip, rate: 1/m, burst: 1, routes: [three, four]}
    all: {per: global, rate: 1/m, burst: 1, routes: [all]}
    conns: {per: [{header: A}, {header: B}], connections: 1, routes: [conns]}
routes:
  - {name: header, match: {prefix: /header}}
  - {name: query, match: {prefix: /query}}
  - {name: cookie, match: {prefix: /cookie}}
  - {name: both, match: {prefix: /both}}
  - {name: one, match: {prefix: /one}}
  - {name: two, match: {prefix: /two}}
  - {name: three, match: {prefix: /three}}
  - {name: four, match: {prefix: /four}}
  - {name: all, match: {prefix: /all}}
  - {name: conns, match: {prefix: /conns}}
`)
	const a, b = "192.0.2.1", "2001:db8:1::1"
	f := func(want int, path, ip string, headers ...string) {
		t.Helper()
		if got := s.get(path, append(headers, "X-Forwarded-For", ip)...).status; got != want {
			t.Errorf("%s from %s with %.60q is %d; want %d", path, ip, headers, got, want)
		}
	}
	f(200, "/header", a, "X-Api-Key", "one")
	f(429, "/header", b, "X-Api-Key", "one")
	f(200, "/header", a, "X-Api-Key", "two")
	f(200, "/header", a, "X-Api-Key", "")
	f(429, "/header", a)                                        // blank is missing: by address
	f(429, "/header", a, "X-Api-Key", strings.Repeat("k", 201)) // longer than allowed: by address
	f(200, "/header", a, "X-Api-Key", strings.Repeat("k", 200)) // as long as allowed
	f(200, "/header", b, "X-Api-Key", "4abc")                   // no value is the key of an address
	f(200, "/query?scope=repository:acme/x:pull", a)
	f(429, "/query?x=1&scope=repository:acme/y:pull", b)
	f(200, "/query?xscope=1&scope=repository:other/y&scope=repository:acme/y", b) // the first, by its whole name
	f(200, "/query?scope=", a)
	f(429, "/query#?scope=repository:third/x", a)
	f(200, "/cookie", a, "Cookie", "x=1; my-session=s1")
	f(429, "/cookie", b, "Cookie", "my-session=s1; my-session=s2")
	f(200, "/cookie", a, "Cookie", "notmy-session=s1")
	f(200, "/both", a, "A", "x", "B", "y")
	f(429, "/both", a, "A", "x", "B", "y")
	f(200, "/both", b, "A", "x", "B", "y")
	f(200, "/both", a, "A", "xy", "B", "y")
	f(200, "/both", a, "A", strings.Repeat("x", 200), "B", strings.Repeat("y", 200)) // too long together: by address
	f(429, "/both", a, "A", strings.Repeat("x", 200), "B", strings.Repeat("z", 200))
	f(200, "/one", a)
	f(200, "/two", a)
	f(429, "/two", a)
	f(200, "/three", a)
	f(429, "/four", a)
	f(200, "/all", a)
	f(429, "/all", b)
	// limit_conn forgets a key of more than 255 bytes: ours are never so long.
	long, results := strings.Repeat("x", 200), make(chan int)
	for range 2 {
		go func() {
			results <- s.get("/conns?wait=300ms", "A", long, "B", long, "X-Forwarded-For", a).status
		}()
	}
	if got := []int{<-results, <-results}; count(got, 200) != 1 || count(got, 429) != 1 {
		t.Errorf("two connections with a long key gave %v", got)
	}
	s.noWarnings()
}

// TestEdgeConditions: only, except, when, exempt (C027, C029, C050).
func TestEdgeConditions(t *testing.T) {
	t.Parallel()
	s := start(t, proxied+`
edge:
  access:
    - {name: office, exempt: {cidrs: [198.18.0.0/16]}}
  limits:
    only: {per: ip, rate: 1/m, burst: 1, routes: [only], only: {cidrs: [10.0.0.0/8, "2001:db8::/32"]}, except: {user_agents: ['(?i)monitor']}}
    post: {per: ip, rate: 1/m, burst: 1, routes: [post], when: {methods: [POST, PUT], headers: {Referer: absent}, query: {q: '^[0-9]+$'}}}
    lan: {per: ip, rate: 1/m, burst: 1, routes: [lan], except: {cidrs: [private]}}
routes:
  - {name: only, match: {prefix: /only}}
  - {name: post, match: {prefix: /post}}
  - {name: lan, match: {prefix: /lan}}
`)
	f := func(want []int, method, path, ip string, headers ...string) {
		t.Helper()
		var got []int
		for range want {
			got = append(got, s.do(method, path, nil, append(headers, "X-Forwarded-For", ip)...).status)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s %s from %s is %v; want %v", method, path, ip, got, want)
		}
	}
	free, counted := []int{200, 200, 200}, []int{200, 429, 429}
	f(counted, "GET", "/only", "10.1.2.3")
	f(counted, "GET", "/only", "2001:db8:5::1")
	f(free, "GET", "/only", "192.0.2.1")
	f(free, "GET", "/only", "10.1.2.4", "User-Agent", "our-Monitor/1")
	f(free, "GET", "/only", "198.18.1.1")
	f(free, "GET", "/post?q=1", "192.0.2.1")
	f(free, "POST", "/post?q=1", "192.0.2.1", "Referer", "x")
	f(free, "POST", "/post?q=1a", "192.0.2.1")
	f(counted, "POST", "/post?a=b&q=1", "192.0.2.1")
	f(free, "GET", "/lan", "192.168.1.5")
	f(free, "GET", "/lan", "::ffff:10.1.2.3")
	f(free, "GET", "/lan", "64:ff9b::a01:203")
	f(counted, "GET", "/lan", "192.0.2.9")
	f([]int{429}, "GET", "/lan", "64:ff9b::192.0.2.9")
	f([]int{429}, "GET", "/lan", "::ffff:192.0.2.9")
	s.noWarnings()
}

// TestAccess: the first rule that fits decides, whatever its kind, and networks
// within networks do not change that.
func TestAccess(t *testing.T) {
	t.Parallel()
	s := start(t, proxied+`
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: p}}
plans: {p: {limits: {speed: {per: ip, rate: 1/s, burst: 1}}}}
edge:
  access:
    - {name: office, exempt: {cidrs: [198.18.7.0/24]}}
    - {name: wide, deny: {cidrs: [198.18.0.0/16, 10.0.0.0/8]}}
    - {name: inner, allow: {cidrs: [10.1.0.0/16]}}
    - {name: watch, deny: {cidrs: [203.0.113.0/24]}, mode: shadow}
    - {name: law, deny: {cidrs: [192.0.2.128/25]}, status: 451}
    - {name: teapot, deny: {user_agents: ['(?i)zgrab']}, status: 418}
    - {name: gone, deny: {user_agents: ['masscan']}, status: 444}
    - {name: at_home, allow: {cidrs: [192.0.2.0/24]}, routes: [reports]}
    - {name: abroad, deny: all, routes: [reports]}
    - {name: no_anonymous, deny: all, routes: [files], when: {methods: [GET], cookies: {session: absent}, headers: {Referer: absent}}}
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: reports, match: {prefix: /reports}}
  - {name: files, match: {prefix: /files}}
  - {name: rest, match: {prefix: /}}
`)
	f := func(want int, path, ip string, headers ...string) {
		t.Helper()
		got := s.get(path, append(headers, "X-Forwarded-For", ip)...)
		if got.status != want {
			t.Errorf("%s from %s with %q is %d; want %d", path, ip, headers, got.status, want)
		}
		if want >= 400 && (got.header.Get("X-Sluice-Reason") != "access" || got.header.Get("Retry-After") != "") {
			t.Errorf("%s from %s: the refusal is %+v", path, ip, got)
		}
	}
	f(200, "/", "198.18.7.1")
	f(403, "/", "198.18.8.1")
	f(403, "/", "10.1.2.3")
	f(403, "/", "::ffff:10.1.2.3")
	f(200, "/", "203.0.113.5")
	f(451, "/", "192.0.2.200")
	f(418, "/", "1.2.3.4", "User-Agent", "ZGrab/2")
	f(0, "/", "1.2.3.4", "User-Agent", "masscan")
	f(200, "/reports", "192.0.2.1")
	f(403, "/reports", "1.2.3.4")
	f(403, "/files", "1.2.3.4")
	f(200, "/files", "1.2.3.4", "Cookie", "session=1")
	f(403, "/files", "1.2.3.4", "Cookie", "session=")
	f(200, "/healthz", "198.18.8.1", "User-Agent", "masscan")
	s.authz.Asked()
	f(200, "/", "198.18.7.1")
	f(200, "/", "1.2.3.4", "X-Sluice-Exempt", "1")
	_, asked := s.authz.Asked()
	if asked[0].Get("X-Sluice-Exempt") != "1" || asked[1].Get("X-Sluice-Exempt") != "" {
		t.Errorf("the service was told %v", asked)
	}
	s.noWarnings()
}

// TestDirect: who comes past the proxies is refused, but not where nothing applies.
func TestDirect(t *testing.T) {
	t.Parallel()
	s := start(t, `version: 1
client_ip: {trusted_proxies: [10.9.9.9], direct: deny}
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: rest, match: {prefix: /}}
`)
	if got := s.get("/", "X-Forwarded-For", "1.2.3.4"); got.status != 403 || got.header.Get("X-Sluice-Reason") != "access" {
		t.Errorf("a direct client got %+v", got)
	}
	if got := s.get("/healthz"); got.status != 200 {
		t.Errorf("a direct client of an exempt route got %d", got.status)
	}
}

// TestShadow: a policy in shadow refuses nothing.
func TestShadow(t *testing.T) {
	t.Parallel()
	s := start(t, `version: 1
mode: shadow
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: p}}
plans: {p: {limits: {speed: {per: ip, rate: 1/s, burst: 1}}}}
edge:
  access: [{name: nobody, deny: all}]
  limits:
    slow: {per: ip, rate: 1/m, burst: 1}
    conn: {per: ip, connections: 1}
routes: [{name: all, match: {prefix: /}, on_store_down: closed}]
`)
	if got := s.statuses(3, "/"); count(got, 200) != 3 {
		t.Errorf("a policy in shadow gave %v", got)
	}
	would := map[string]string{"X-Sluice-Decision": "allow", "X-Sluice-Reason": "shadow", "X-Sluice-Limit": "speed", "RateLimit": `"speed";r=0;t=1`}
	s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Answer{Headers: would} })
	got := s.get("/")
	for name, want := range would {
		if name != "X-Sluice-Decision" && got.header.Get(name) != want {
			t.Errorf("what would be refused says %s: %q, want %q", name, got.header.Get(name), want)
		}
	}
	if got.status != 200 || got.header.Get("Retry-After") != "" || got.header.Get("Cache-Control") != "" {
		t.Errorf("what would be refused: status %d, headers %v", got.status, got.header)
	}
	s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Answer{} })
	if got := s.get("/"); got.header.Get("X-Sluice-Reason")+got.header.Get("X-Sluice-Limit") != "" {
		t.Errorf("what would pass says %v", got.header)
	}
	s.authz.Answers(func(string, http.Header) gentest.Answer { return gentest.Answer{Code: 500} })
	if got := s.get("/"); got.status != 200 {
		t.Errorf("a policy in shadow, without the service, gave %d", got.status)
	}
}

// TestAccessParts: any entry of any list, and every line of when.
func TestAccessParts(t *testing.T) {
	t.Parallel()
	s := start(t, proxied+`
edge:
  access:
    - {name: both, deny: {cidrs: [192.0.2.0/24], user_agents: ['zgrab']}, when: {methods: [GET], query: {q: ['^1$', '^2$'], r: absent}}}
  limits:
    some: {per: ip, rate: 1/m, burst: 1, only: {cidrs: [10.0.0.0/8], user_agents: ['curl']}, except: {cidrs: [10.1.0.0/16], user_agents: ['curl/9']}}
`)
	f := func(want int, path, ip string, headers ...string) {
		t.Helper()
		if got := s.get(path, append(headers, "X-Forwarded-For", ip)...).status; got != want {
			t.Errorf("%s from %s with %q is %d; want %d", path, ip, headers, got, want)
		}
	}
	f(403, "/?q=1", "192.0.2.1")
	f(403, "/?q=2", "1.1.1.1", "User-Agent", "zgrab")
	f(200, "/?q=3", "192.0.2.1")
	f(200, "/?q=1&r=1", "192.0.2.1")
	f(200, "/?q=1", "1.1.1.1")
	if got := s.do("POST", "/?q=1", nil, "X-Forwarded-For", "192.0.2.1"); got.status != 200 {
		t.Errorf("POST is %d", got.status)
	}
	for range 2 {
		f(200, "/", "2.2.2.2")
		f(200, "/", "10.1.0.1")
		f(200, "/", "2.2.2.2", "User-Agent", "curl/9")
	}
	f(200, "/", "10.2.0.1")
	f(429, "/", "10.2.0.1")
	f(200, "/", "2.2.2.2", "User-Agent", "curl/8")
	f(429, "/", "2.2.2.2", "User-Agent", "curl/8")
	s.noWarnings()
}

// TestFullZone: a zone that is full forgets its oldest clients; it never refuses
// a new one because his key is longer or shorter than theirs (C031).
func TestFullZone(t *testing.T) {
	t.Parallel()
	s := start(t, `version: 1
edge:
  limits:
    small: {per: {header: X-Key}, rate: 1000/s, burst: 1000, expect: 1}
    named: {per: [server, route], rate: 1000/s, burst: 1000, expect: 1}
`)
	for i := range 400 {
		key := strings.Repeat("k", (i*37)%200) + strconv.Itoa(i)
		if got := s.get("/", "X-Key", key[:min(len(key), 200)]); got.status != 200 {
			t.Fatalf("client %d with a key of %d bytes got %d", i, len(key), got.status)
		}
	}
	if strings.Contains(s.nginx.ErrorLog(), "could not allocate") {
		t.Errorf("nginx says %s", s.nginx.ErrorLog())
	}
}
