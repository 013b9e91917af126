package replay

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/cmd/accesslog"
	"sluice/policies"
)

func compiled(t testing.TB, src string) *policies.Compiled {
	t.Helper()
	p, ds := policies.Parse("policy.yaml", []byte(src), nil)
	if ds.HasErrors() {
		t.Fatalf("the policy of the test is not good: %v", ds)
	}
	return policies.Compile(p)
}

func format(t testing.TB, s string) *accesslog.Format {
	t.Helper()
	f, err := accesslog.ParseFormat(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// run replays lines in one format.
func run(t testing.TB, o Options, logFormat string, lines ...string) *Report {
	t.Helper()
	if logFormat != "" {
		o.Format = format(t, logFormat)
	}
	o.Sources = []accesslog.Source{{Name: "access.log", Reader: strings.NewReader(strings.Join(lines, "\n"))}}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// told is what a report says of denials, in short.
func told(list []Denial) []string {
	out := []string{}
	for i := range list {
		d := &list[i]
		out = append(out, fmt.Sprintf("%d of %d: %s, since %s at %d, most %s", d.Requests, d.Subjects, d.Label(), d.First.Format("15:04:05.999"), d.Line, d.Worst))
	}
	return out
}

func wantDenials(t *testing.T, got []Denial, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Errorf("denials: -want +got:\n%s", diff)
	}
}

const twoFloors = `version: 1
client_ip: {trusted_proxies: [10.0.0.0/8], header: X-Forwarded-For}
identity:
  sources: [{api_key: {header: X-API-Key}}]
  missing: {plan: anonymous}
edge:
  access: [{name: blocked, deny: {cidrs: [198.51.100.0/24]}}, {name: bots, deny: {user_agents: ['masscan']}}]
  limits:
    per_ip: {per: ip, rate: 1/s, burst: 3}
    posts: {per: ip, rate: 1/s, burst: 1, when: {methods: [PUT]}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1/m, burst: 2}}}
  pro: {limits: {speed: {per: key, rate: 10/m, burst: 3}}}
tenants:
  # of sk_demo_acme_web
  - {id: acme, plan: pro, keys: [{id: acme-web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]}
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: search, match: {prefix: /v1/search, methods: [GET]}, cost: 2}
  - {name: login, match: {exact: /old-login}}
  - {name: api, match: {prefix: /v1}}
`

const full = `$remote_addr [$msec] "$request" $status $request_time "$http_user_agent" "$http_x_forwarded_for" "$http_x_api_key"`

// hit is a line of that format, so many seconds after 1796094245.
func hit(at float64, peer, request, forwarded, key string) string {
	return fmt.Sprintf(`%s [%.3f] "%s HTTP/1.1" 200 0.000 "curl" "%s" "%s"`, peer, 1796094245+at, request, forwarded, key)
}

// TestVerdicts: each line meets the access rules, the edge's limits and the
// service's, at its own time.
func TestVerdicts(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, full,
		hit(0, "192.0.2.1", "GET /v1/a", "-", "-"),
		hit(0.1, "192.0.2.1", "GET /v1/a", "-", "-"),
		hit(0.2, "192.0.2.1", "GET /v1/a", "-", "-"), // the plan's two are used
		hit(0.3, "192.0.2.1", "GET /v1/a", "-", "-"), // the edge's three as well
		hit(61, "192.0.2.1", "GET /v1/a", "-", "-"),
		hit(62, "198.51.100.7", "GET /v1/a", "-", "-"),
		hit(63, "192.0.2.2", "GET /v1/search", "-", "sk_demo_acme_web"),
		hit(64, "192.0.2.2", "GET /v1/search", "-", "sk_demo_acme_web"),
		hit(65, "192.0.2.2", "GET /healthz", "-", "-"),
		hit(66, "192.0.2.2", "GET /v2/%00", "-", "-"),
	)
	wantDenials(t, r.Denials,
		"1 of 1: NGINX itself: 400, since 03:05:11 at 10, most 192.0.2.2",
		"1 of 1: access rule blocked, since 03:05:07 at 6, most 198.51.100.7",
		"1 of 1: edge limit per_ip, since 03:04:05.3 at 4, most 192.0.2.1",
		"1 of 1: speed (plan anonymous), since 03:04:05.2 at 3, most 192.0.2.1",
		"1 of 1: speed (plan pro), since 03:05:09 at 8, most acme",
	)
	if v := r.Verdicts; v.Requests != 10 || v.Passed != 5 || v.Edge != 3 || v.Service != 2 || v.Denied != 4 {
		t.Errorf("verdicts: %+v", v)
	}
	if got := r.Offenders[0]; got.Who != "192.0.2.1" || got.Denied != 2 || got.Requests != 5 || got.Since.Format("15:04:05.999") != "03:04:05.2" {
		t.Errorf("offender: %+v", got)
	}
}

// TestMethods is C006: the client's own method chooses the route, and the cost.
func TestMethods(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, full,
		hit(0, "192.0.2.1", "GET /v1/search", "-", "-"),
		hit(10, "192.0.2.2", "POST /v1/search", "-", "-"),
		hit(11, "192.0.2.2", "POST /v1/search", "-", "-"),
	)
	if len(r.Denials) != 0 || r.Routes[0] != (Route{"api", 2, 0}) || r.Routes[1] != (Route{"search", 1, 0}) {
		t.Errorf("%+v %+v", r.Denials, r.Routes)
	}
}

// TestClients is C051 and C053: the client is found by the policy's own rules of
// trust, from what the log says.
func TestClients(t *testing.T) {
	const withRealip = `$remote_addr [$msec] "$request" $status $request_time "$http_user_agent" "$http_x_forwarded_for" "$http_x_api_key" $realip_remote_addr`
	for _, tt := range []struct{ name, format, line, want string }{
		{"the peer", full, hit(0, "192.0.2.1", "GET /v1/search/x", "-", "-"), "192.0.2.1"},
		{"a stranger's word", full, hit(0, "192.0.2.1", "GET /v1/search/x", "203.0.113.9", "-"), "192.0.2.1"},
		{"through a proxy", full, hit(0, "10.0.0.2", "GET /v1/search/x", "203.0.113.9, 198.51.101.7", "-"), "198.51.101.7"},
		{"garbage stops", full, hit(0, "10.0.0.2", "GET /v1/search/x", "198.51.101.7, unknown, 10.0.0.3", "-"), "10.0.0.3"},
		{"NGINX's own real_ip", withRealip, hit(0, "198.51.101.7", "GET /v1/search/x", "203.0.113.9, 198.51.101.7", "-") + " 10.0.0.2", "198.51.101.7"},
		{"real_ip that trusted too much", withRealip, hit(0, "203.0.113.9", "GET /v1/search/x", "203.0.113.9", "-") + " 192.0.2.1", "192.0.2.1"},
		{"real_ip without what the proxy sent", withRealip, hit(0, "198.51.101.7", "GET /v1/search/x", "-", "-") + " 10.0.0.2", "198.51.101.7"},
		{"no address", full, hit(0, "unix:", "GET /v1/search/x", "-", "-"), "no address"},
	} {
		// The second of two that cost 2 is refused, and tells whose it was.
		r := run(t, Options{Policy: compiled(t, twoFloors)}, tt.format, tt.line, tt.line)
		if len(r.Offenders) != 1 || r.Offenders[0].Who != tt.want {
			t.Errorf("%s: %+v; want %s", tt.name, r.Offenders, tt.want)
		}
	}
}

// TestDeadRules is C042: rules that nobody met, and paths that no route names.
func TestDeadRules(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, full,
		hit(0, "192.0.2.1", "GET /v1/a", "-", "-"),
		hit(1, "192.0.2.1", "GET /login?next=/secret", "-", "-"),
		hit(2, "192.0.2.1", "GET /users/4711/0123456789abcdef", "-", "-"),
		hit(3, "192.0.2.1", "GET /users/4712/fedcba9876543210", "-", "-"),
	)
	want := Unused{AccessRules: []string{"blocked", "bots"}, EdgeLimits: []string{"posts"}, Routes: []string{"health", "search", "login"}, Plans: []string{"pro"}, Tenants: 1}
	if diff := cmp.Diff(want, r.Unused); diff != "" {
		t.Errorf("unused: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]Path{{"/users/*/*", 2}, {"/login", 1}}, r.Unrouted); diff != "" {
		t.Errorf("unrouted: -want +got:\n%s", diff)
	}
	r = run(t, Options{Policy: compiled(t, twoFloors)}, full,
		hit(0, "192.0.2.1", "PUT /v1/a", "-", "-"), hit(1, "198.51.100.1", "GET /v1/a", "-", "-"),
		strings.Replace(hit(2, "192.0.2.1", "GET /v1/a", "-", "-"), "curl", "masscan/1.0", 1))
	if len(r.Unused.AccessRules)+len(r.Unused.EdgeLimits) > 0 {
		t.Errorf("unused: %+v", r.Unused)
	}
}

// TestWhatIsNoTraffic is C118: NGINX's own requests are no client's, nor is what
// NGINX could not read.
func TestWhatIsNoTraffic(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, full,
		hit(0, "192.0.2.1", "GET /v1/a", "-", "-"),
		hit(0, "127.0.0.1", "GET /_sluice/open/search", "-", "-"),
		strings.Replace(hit(0, "127.0.0.1", "GET /v1/a", "-", "-"), "HTTP/1.1", "HTTP/1.0", 1),
		`192.0.2.1 [1796094245.000] "" 400 0.000 "-" "-" "-"`,
		`192.0.2.1 [1796094245.000] "-" 408 0.000 "-" "-" "-"`,
		`192.0.2.1 [1796094245.000] "\x16\x03\x01" 400 0.000 "-" "-" "-"`,
	)
	want := Skipped{NoRequest: 3, Subrequests: 2}
	if r.Log.Skipped != want || r.Verdicts.Requests != 1 {
		t.Errorf("skipped: %+v, %+v", r.Log.Skipped, r.Verdicts)
	}
}

// TestDatagrams: what tells the service of ends of requests names no client.
func TestDatagrams(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, "",
		`<190>Dec  1 03:04:05 sluice: {"id":"0a1b","path":"/_sluice/open/search","status":"200","time":0.003,"upstream_time":"0.002","cost":""}`)
	if r.Log.Skipped.Datagrams != 1 || r.Verdicts.Requests != 0 {
		t.Errorf("skipped: %+v", r.Log.Skipped)
	}
}

// TestCacheHits is C047: what came from the cache counts, as in production, unless
// it is left out on demand.
func TestCacheHits(t *testing.T) {
	const logFormat = `$remote_addr [$msec] "$request" $upstream_cache_status`
	lines := []string{`192.0.2.1 [1796094245.000] "GET /v1/a HTTP/1.1" HIT`, `192.0.2.1 [1796094245.000] "GET /v1/a HTTP/1.1" MISS`, `192.0.2.1 [1796094245.000] "GET /v1/a HTTP/1.1" HIT`}
	if r := run(t, Options{Policy: compiled(t, twoFloors)}, logFormat, lines...); r.Verdicts.Service != 1 {
		t.Errorf("counted: %+v", r.Verdicts)
	}
	r := run(t, Options{Policy: compiled(t, twoFloors), SkipCacheHits: true}, logFormat, lines...)
	if r.Verdicts.Service != 0 || r.Log.Skipped.CacheHits != 2 || !strings.Contains(strings.Join(r.Notes, "\n"), "2 answers from NGINX's cache were left out") {
		t.Errorf("left out: %+v, %q", r.Verdicts, r.Notes)
	}
}

// TestAgainst: who is newly denied, and who no longer.
func TestAgainst(t *testing.T) {
	before := compiled(t, twoFloors)
	after := compiled(t, strings.NewReplacer("rate: 1/m, burst: 2", "rate: 1/m, burst: 4", "rate: 10/m, burst: 3", "rate: 10/m, burst: 2").Replace(twoFloors))
	lines := []string{
		hit(0, "192.0.2.1", "GET /v1/search", "-", "-"), hit(0.1, "192.0.2.1", "GET /v1/search", "-", "-"),
		hit(1, "192.0.2.2", "GET /v1/a", "-", "sk_demo_acme_web"), hit(1.1, "192.0.2.2", "GET /v1/a", "-", "sk_demo_acme_web"), hit(1.2, "192.0.2.2", "GET /v1/a", "-", "sk_demo_acme_web"),
	}
	r := run(t, Options{Policy: after, Against: before}, full, lines...)
	c := r.Changes
	if c.NewlyDenied != 1 || c.NewlyWho != 1 || c.NoLonger != 1 || c.NoLongerWho != 1 {
		t.Errorf("changes: %+v", c)
	}
	wantDenials(t, c.Newly, "1 of 1: speed (plan pro), since 03:04:06.2 at 5, most acme")
	wantDenials(t, c.NoLongerList, "1 of 1: speed (plan anonymous), since 03:04:05.1 at 2, most 192.0.2.1")
	if diff := cmp.Diff([]ChangedWhom{{"acme", true, 1, 0, 3}, {"192.0.2.1", false, 0, 1, 2}}, c.Who); diff != "" {
		t.Errorf("who: -want +got:\n%s", diff)
	}
	if same := run(t, Options{Policy: after, Against: after}, full, lines...).Changes; same.NewlyDenied+same.NoLonger+same.OtherCause > 0 {
		t.Errorf("a policy differs from itself: %+v", same)
	}
}

// TestShadow: what only watches denies nobody, and is told: a limit beside others,
// one of the edge, and a whole policy.
func TestShadow(t *testing.T) {
	lines := []string{hit(0, "192.0.2.1", "GET /v1/a", "-", "-"), hit(0.1, "192.0.2.1", "GET /v1/a", "-", "-"), hit(0.2, "192.0.2.1", "GET /v1/a", "-", "-"), hit(0.3, "192.0.2.1", "GET /v1/a", "-", "-")}
	for change, want := range map[string][]string{
		"speed: {per: ip, rate: 1/m, burst: 2}, soon: {per: ip, rate: 1/m, burst: 1, mode: shadow}": {"1 of 1: soon (plan anonymous), since 03:04:05.1 at 2, most 192.0.2.1"},
		"speed: {per: ip, rate: 1/m, burst: 9}, soon: {per: ip, rate: 1/m, burst: 1, mode: shadow}": {"2 of 1: soon (plan anonymous), since 03:04:05.1 at 2, most 192.0.2.1"},
	} {
		r := run(t, Options{Policy: compiled(t, strings.Replace(twoFloors, "speed: {per: ip, rate: 1/m, burst: 2}", change, 1))}, full, lines...)
		wantDenials(t, r.WouldDeny, want...)
	}
	r := run(t, Options{Policy: compiled(t, "mode: shadow\n"+twoFloors)}, full, lines...)
	wantDenials(t, r.WouldDeny,
		"1 of 1: edge limit per_ip, since 03:04:05.3 at 4, most 192.0.2.1",
		"1 of 1: speed (plan anonymous), since 03:04:05.2 at 3, most 192.0.2.1")
	if len(r.Denials) > 0 || r.Verdicts.Passed != 4 {
		t.Errorf("%+v", r.Verdicts)
	}
}

// TestConcurrency: requests take as long as the log says.
func TestConcurrency(t *testing.T) {
	c := compiled(t, `version: 1
edge: {limits: {conns: {per: ip, connections: 1}}}
`)
	line := func(end, took float64) string {
		return fmt.Sprintf(`192.0.2.1 [%.3f] "GET / HTTP/1.1" %.3f`, 1796094245+end, took)
	}
	r := run(t, Options{Policy: c}, `$remote_addr [$msec] "$request" $request_time`, line(1.5, 0.5), line(2, 2), line(3.2, 1))
	wantDenials(t, r.Denials, "1 of 1: edge limit conns, since 03:04:06 at 1, most 192.0.2.1")
}

// TestCosts: what the application told of a cost is charged when its answer ends.
func TestCosts(t *testing.T) {
	c := compiled(t, `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
plans: {free: {limits: {speed: {per: ip, window: 10/1h, algorithm: fixed}}}}
routes: [{name: all, match: {prefix: /}, cost: 1, cost_from: {response_header: X-Cost, max: 50}}]
`)
	lines := func(cost string) (out []string) {
		for i := range 3 {
			out = append(out, fmt.Sprintf(`192.0.2.1 [%d.000] "GET / HTTP/1.1" 0.500 %s`, 1796094245+i, cost))
		}
		return out
	}
	const logFormat = `$remote_addr [$msec] "$request" $request_time $upstream_http_x_cost`
	r := run(t, Options{Policy: c}, logFormat, lines("7")...)
	wantDenials(t, r.Denials, "1 of 1: speed (plan free), since 03:04:06.5 at 3, most 192.0.2.1")
	r = run(t, Options{Policy: c}, logFormat, lines("-")...)
	if len(r.Denials) > 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "no line says $upstream_http_x_cost, which routes.all.cost_from looks at") {
		t.Errorf("%v %q", told(r.Denials), r.Notes)
	}
}

// TestDirect: where only proxies may connect and the log does not say through whom
// somebody came, he is not taken for an intruder.
func TestDirect(t *testing.T) {
	c := compiled(t, `version: 1
client_ip: {trusted_proxies: [10.0.0.0/8], header: X-Forwarded-For, direct: deny}
`)
	r := run(t, Options{Policy: c}, `$remote_addr [$msec] "$request"`, `192.0.2.1 [1796094245.000] "GET / HTTP/1.1"`)
	if len(r.Denials) > 0 || !strings.Contains(strings.Join(r.Notes, "\n"), "client_ip.direct") {
		t.Errorf("%+v %q", r.Denials, r.Notes)
	}
	r = run(t, Options{Policy: c}, `$remote_addr [$msec] "$request" $realip_remote_addr "$http_x_forwarded_for"`, `192.0.2.1 [1796094245.000] "GET / HTTP/1.1" 192.0.2.1 "203.0.113.1"`)
	wantDenials(t, r.Denials, "1 of 1: access rule direct, since 03:04:05 at 1, most 192.0.2.1")
}

// TestSites: the policies of real sites replay any log, and none differs from itself.
func TestSites(t *testing.T) {
	sites, err := filepath.Glob("../../policies/testdata/sites/*.yaml")
	if err != nil || len(sites) < 10 {
		t.Fatalf("%d sites: %v", len(sites), err)
	}
	var lines []string
	for i, target := range []string{"/", "/login", "/api/v1/items/7", "/auth/oauth/token", "/assets/a.js", "/../x", "/v1/search?q=%20&key=x", "//a//b/./c", "/healthz"} {
		for j, key := range []string{"-", "sk_demo_acme_web", "Bearer x.y.z"} {
			lines = append(lines, hit(float64(i), fmt.Sprintf("192.0.2.%d", j+1), "GET "+target, "203.0.113.9", key), hit(float64(i), "10.0.0.1", "POST "+target, "2001:db8::7", key))
		}
	}
	for _, site := range sites {
		p, ds := policies.Load(site)
		if ds.HasErrors() {
			t.Fatal(ds)
		}
		c := policies.Compile(p)
		r := run(t, Options{Policy: c, Against: c, Tenant: "http_x_api_key"}, full, lines...)
		if v := r.Verdicts; v.Requests != int64(len(lines)) || v.Passed+v.Edge+v.Service != v.Requests || v.Degraded > 0 {
			t.Errorf("%s: %+v", site, v)
		}
		if c := r.Changes; c.NewlyDenied+c.NoLonger+c.OtherCause > 0 {
			t.Errorf("%s differs from itself: %+v", site, c)
		}
	}
}
