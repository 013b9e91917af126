package replay

import (
	"encoding/json"
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

// TestTenantColumn: a log without credentials says whose a request is.
func TestTenantColumn(t *testing.T) {
	const logFormat = `$remote_addr [$msec] "$request" $status $remote_user`
	for _, name := range []string{"acme", "acme-web", "aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc", "AFF85B06E3327CDB725A9E56CA5DDC5A72A358D21F38B621E3F4DBF2CCEF43BC"} {
		line := `192.0.2.1 [1796094245.000] "GET /v1/search HTTP/1.1" 200 ` + name
		r := run(t, Options{Policy: compiled(t, twoFloors), Tenant: "remote_user"}, logFormat, line, line)
		wantDenials(t, r.Denials, "1 of 1: speed (plan pro), since 03:04:05 at 2, most acme")
		if strings.Contains(strings.Join(r.Notes, "\n"), "identity") {
			t.Errorf("%s: notes %q", name, r.Notes)
		}
	}
	line := `192.0.2.1 [1796094245.000] "GET /v1/x HTTP/1.1" 200 nobody`
	r := run(t, Options{Policy: compiled(t, twoFloors), Tenant: "$remote_user"}, logFormat, line, line, line)
	wantDenials(t, r.Denials, "1 of 1: speed (plan anonymous), since 03:04:05 at 3, most 192.0.2.1")
	if !strings.Contains(strings.Join(r.Notes, "\n"), "3 lines name a tenant or key that the policy does not know") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestTenantWithoutKey: for whom nothing can be shown is told, and counts as nobody.
func TestTenantWithoutKey(t *testing.T) {
	c := compiled(t, `version: 1
identity: {sources: [{client_cert: {}}], missing: {plan: free}}
plans: {free: {limits: {speed: {per: ip, rate: 1/m, burst: 1}}}}
tenants: [{id: acme, plan: free, cert_sha256: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]}]
`)
	line := `192.0.2.1 [1796094245.000] "GET / HTTP/1.1" acme`
	r := run(t, Options{Policy: c, Tenant: "remote_user"}, `$remote_addr [$msec] "$request" $remote_user`, line, line)
	wantDenials(t, r.Denials, "1 of 1: speed (plan free), since 03:04:05 at 2, most 192.0.2.1")
	if !strings.Contains(strings.Join(r.Notes, "\n"), "2 lines name a tenant without an API key") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestTenantByToken: who has no key, and may show a token, is known by the column too.
func TestTenantByToken(t *testing.T) {
	const src = `version: 1
identity:
  sources: [{jwt: {header: Authorization, jwks_file: jwks.json, issuer: "https://id.example", audience: api, tenant_claim: org}}]
  missing: {plan: free}
  unlisted: {plan: free}
plans: {free: {limits: {speed: {per: tenant, rate: 1/m, burst: 1}}}}
tenants: [{id: acme, plan: free, claim: org-1}]
`
	const jwks = `{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "alg": "EdDSA", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	p, ds := policies.Parse("policy.yaml", []byte(src), func(policies.FileName) ([]byte, error) { return []byte(jwks), nil })
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	line := func(name string) string { return `192.0.2.1 [1796094245.000] "GET / HTTP/1.1" ` + name }
	r := run(t, Options{Policy: policies.Compile(p), Tenant: "remote_user"}, `$remote_addr [$msec] "$request" $remote_user`,
		line("org-1"), line("org-1"), line("elsewhere"), line("elsewhere"), line("-"))
	wantDenials(t, r.Denials, "2 of 2: speed (plan free), since 03:04:05 at 2, most acme")
	if r.Offenders[1].Who != "elsewhere" {
		t.Errorf("offenders: %+v", r.Offenders)
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

// TestSharedAddress is C020: when one private address sends most of it, a proxy is
// not trusted.
func TestSharedAddress(t *testing.T) {
	var lines []string
	for i := range 20 {
		lines = append(lines, hit(float64(10*i), "172.16.0.9", "GET /healthz", "-", "-"), hit(float64(10*i), fmt.Sprintf("192.0.2.%d", i), "GET /healthz", "-", "-"))
	}
	r := run(t, Options{Policy: compiled(t, twoFloors)}, full, lines...)
	if !strings.Contains(strings.Join(r.Notes, "\n"), "50 % of the requests come from 172.16.0.9, a private address: a proxy that client_ip.trusted_proxies should name?") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestUnsaid: what the policy looks at and no line says is told, with who looks.
func TestUnsaid(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, "common", `192.0.2.7 - - [01/Dec/2026:03:04:05 +0000] "GET /v1 HTTP/1.1" 200 1`)
	all := strings.Join(r.Notes, "\n")
	for _, want := range []string{
		"whole seconds", // C116: the resolution
		"no line says $http_x_api_key, which identity.sources[0] looks at: taken as absent",
		"no line says $http_user_agent, which edge.access.bots looks at",
		"no line says $http_x_forwarded_for: $remote_addr is taken for the client",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("notes lack %q:\n%s", want, all)
		}
	}
}

// TestRefusedThen: what had been refused already is told: clients come again.
func TestRefusedThen(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, full, strings.Replace(hit(0, "192.0.2.1", "GET /v1/a", "-", "-"), " 200 ", " 429 ", 1))
	if !strings.Contains(strings.Join(r.Notes, "\n"), "1 request had been answered 429 when they were logged") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestSoftQuota is C100: the report says what may pass beyond a soft quota.
func TestSoftQuota(t *testing.T) {
	c := compiled(t, `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
plans: {free: {limits: {monthly: {per: ip, quota: 1/month, accounting: soft}}}}
`)
	r := run(t, Options{Policy: c}, full, hit(0, "192.0.2.1", "GET /", "-", "-"), hit(1, "192.0.2.1", "GET /", "-", "-"))
	wantDenials(t, r.Denials, "1 of 1: monthly (plan free), since 03:04:06 at 2, most 192.0.2.1")
	if !strings.Contains(strings.Join(r.Notes, "\n"), "plans.free.limits.monthly is counted softly") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestSecrets is C119: a credential in a log is in nothing that is told of it,
// wherever it stood, and hashing it finds its owner.
func TestSecrets(t *testing.T) {
	const secret = "sk_demo_acme_web"
	c := compiled(t, strings.Replace(twoFloors, "{api_key: {header: X-API-Key}}", "{api_key: {header: X-API-Key}}, {api_key: {query: key}}", 1))
	r := run(t, Options{Policy: c}, full,
		hit(0, "192.0.2.1", "GET /v1/search?key="+secret, "-", "-"),
		hit(1, "192.0.2.1", "GET /v1/search?key="+secret, "-", "-"),
		hit(2, "192.0.2.1", "GET /v1/search", "-", secret),
		hit(3, "192.0.2.1", "GET /unknown/"+secret+"?k%65y="+secret, "-", secret),
		hit(4, "192.0.2.1", "GET /unknown/"+strings.ReplaceAll(secret, "_", "%5f"), "-", secret),
		"a line that nobody reads "+secret,
		`192.0.2.1 [`+secret+`] "GET / HTTP/1.1" 200 0.000 "-" "-" "-"`,
	)
	wantDenials(t, r.Denials, "2 of 1: speed (plan pro), since 03:04:06 at 2, most acme")
	var text, page strings.Builder
	if err := r.WriteText(&text, Style{Width: 160, Colour: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for what, out := range map[string]string{"text": text.String(), "page": page.String(), "json": string(asJSON)} {
		for _, part := range []string{secret, "demo", "k%65y"} {
			if strings.Contains(out, part) {
				t.Errorf("%s holds %q", what, part)
			}
		}
		if !strings.Contains(out, "acme") {
			t.Errorf("%s does not name the tenant", what)
		}
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

// TestSuggestions: what is suggested would have let everybody pass, and not much more.
func TestSuggestions(t *testing.T) {
	const policy = `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
plans: {free: {limits: {speed: {per: ip, rate: %s, burst: %d}}}}
routes: [{name: all, match: {prefix: /}, cost: 3}]
`
	var lines []string
	for minute := range 30 {
		for i := range 10 + minute%3 { // a second apart, at the beginning of a minute
			lines = append(lines, hit(float64(60*minute+i), "192.0.2.1", "GET /", "-", "-"))
		}
	}
	r := run(t, Options{Policy: compiled(t, fmt.Sprintf(policy, "1/m", 3))}, full, lines...)
	var s *Suggestion
	for i := range r.Suggestions {
		if r.Suggestions[i].Route == "all" {
			s = &r.Suggestions[i]
		}
	}
	if s == nil || s.Whom() != "each client, plan free" || s.Demand.P999 != 36 || s.Rate != "44/m" || s.Burst != 36 {
		t.Fatalf("suggestions: %+v", r.Suggestions)
	}
	r = run(t, Options{Policy: compiled(t, fmt.Sprintf(policy, s.Rate, s.Burst))}, full, lines...)
	if len(r.Denials) > 0 {
		t.Errorf("what is suggested denies %+v", r.Denials)
	}
}

// TestBounded is C120: shapes of paths are few, whatever clients send.
func TestBounded(t *testing.T) {
	var p paths
	for i := range 3 * maxPaths {
		p.add(fmt.Sprintf("/x%c%c%c%c/%d?%d", 'g'+i%10, 'g'+i/10%10, 'g'+i/100%10, 'g'+i/1000, i, i))
	}
	if len(p.count) != maxPaths || p.rest == 0 {
		t.Errorf("%d shapes, %d beyond", len(p.count), p.rest)
	}
	r := &runner{tally: newTally(compiled(t, twoFloors), false)}
	r.tally.paths = p
	n := notes{runner: r}
	if n.bounds(); len(n.list) != 1 || !strings.Contains(n.list[0], "20,000 requests fit no route and none of the 10,000 shapes") {
		t.Errorf("notes: %q", n.list)
	}
	for path, want := range map[string]string{
		"/": "/", "/a/b?x#y": "/a/b", "/v1/items/4711": "/v1/items/*", "http://x.example/a/b": "/a/b", "http://x.example": "/",
		"/a/b/c/d/e/f": "/a/b/c/d/...", "/u/anna@example.com": "/u/*", "/x/<script>": "/x/*", "/%41": "/*", "/k/deadbeef": "/k/*", "/k/cafe": "/k/cafe",
		"/a//b/": "/a//b/", "/t/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9": "/t/*",
	} {
		if got := p.shapeOf(path); got != want {
			t.Errorf("%s is shown as %s; want %s", path, got, want)
		}
	}
}

// TestTimeline: buckets grow with the log and lose nothing.
func TestTimeline(t *testing.T) {
	tl := timeline{}
	total := int64(0)
	r := &runner{}
	for at := int64(1796094245); at < 1796094245+9*86400; at += 61 {
		tl.add(&item{runner: r, at: at * micros})
		total++
	}
	sum := int64(0)
	for _, b := range tl.buckets {
		sum += b.Requests
	}
	if sum != total || len(tl.buckets) > maxBuckets || tl.step() != 3600 {
		t.Errorf("%d of %d in %d buckets of %d s", sum, total, len(tl.buckets), tl.step())
	}
}

// TestHistogram: percentiles are exact below 16 and an eighth too large at most.
func TestHistogram(t *testing.T) {
	var h histogram
	for v := range int64(10_000) {
		h.add(v + 1)
	}
	for perMille, want := range map[int64]int64{500: 5000, 990: 9900, 999: 9990, 1: 10} {
		if got := h.at(perMille); got < want || got > want+want/8+1 {
			t.Errorf("p%d is %d; want %d", perMille, got, want)
		}
	}
	for v := int64(1); v < 1<<40; v = v*3/2 + 1 {
		if i := slotOf(v); top(i) < v || i > 0 && top(i-1) >= v {
			t.Errorf("%d is in slot %d, up to %d", v, i, top(i))
		}
	}
}

func TestEmpty(t *testing.T) {
	r := run(t, Options{Policy: compiled(t, twoFloors)}, "combined")
	var out strings.Builder
	if err := r.WriteText(&out, Style{Width: 80}); err != nil || !strings.Contains(out.String(), "no request was replayed") {
		t.Errorf("%v %s", err, out.String())
	}
	if err := r.WritePage(&out); err != nil {
		t.Error(err)
	}
	_, err := Run(Options{Policy: compiled(t, twoFloors), Format: format(t, "combined"), Sources: []accesslog.Source{{Name: "x", Reader: strings.NewReader("nonsense\n")}}})
	if err == nil || !strings.Contains(err.Error(), "cannot read any of 1 lines; x:1 not written as the log format says") {
		t.Errorf("nonsense: %v", err)
	}
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
