package gen

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sluice/gen/gentest"
	"sluice/geo/geotest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden: a policy and every file that is rendered from it, in one file.
func TestGolden(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("cannot find the golden files: %v", err)
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files, err := Render(compiled(t, string(archive.Files[0].Data)), Options{Version: "v0", Full: strings.Contains(string(archive.Comment), "full")})
			if err != nil {
				t.Fatal(err)
			}
			got := &txtar.Archive{Comment: archive.Comment, Files: slices.Clip(archive.Files[:1])}
			for _, n := range files.Names() {
				got.Files = append(got.Files, txtar.File{Name: n, Data: files[n]})
			}
			if *update {
				if err := os.WriteFile(name, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
				t.Errorf("-update writes it anew\n%s", diff)
			}
		})
	}
}

// sections are parts of a policy that may be there or not, and what each may be.
var sections = map[string][]string{
	"mode":   {"", "mode: shadow\n", "mode: disabled\n"},
	"client": {"", "client_ip: {trusted_proxies: [10.0.0.0/8, \"2001:db8::/32\"], direct: deny, ipv6_prefix: 57}\n", "client_ip: {trusted_proxies: [10.0.0.0/8], header: proxy_protocol, ipv6_prefix: 128}\n"},
	"identity": {"", "identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: p}}\n", "identity: {sources: [{api_key: {header: Authorization, scheme: Bearer}}, {api_key: {query: key}}, {api_key: {cookie: the-key}}], missing: {plan: p}, invalid: {plan: p}}\n",
		"identity: {sources: [{api_key: {header: Authorization, scheme: Bearer}}, {auth_request: {location: /oauth2/auth, user_header: X-Auth-User, tenant_header: X-Auth-Org}}], missing: {deny: 401}, unlisted: {plan: p}}\n",
		"identity: {sources: [{client_cert: {}}, {api_key: {header: X-Key}}], unlisted: {plan: p}}\n"},
	"limits": {"", "limits: {all: {per: [server, {header: X-Org}, {query: a_b}, {cookie: c-d}], rate: 10/s, burst: 20}}\n",
		"limits: {again: {per: ip, retries: 60/m}, open: {per: ip, concurrency: 5}, wrong: {per: ip, window: 5/15m, count: {status: [401, 4xx]}}, held: {per: ip, rate: 5/s, burst: 5, wait: 2s}}\n"},
	"access": {"", "  access: [{name: a-b.c, exempt: {cidrs: [private], user_agents: ['x\"y', '^a{1,2}$']}}, {name: D, deny: all, status: 444, when: {query: {q: present}}}]\n",
		"  access: [{name: w, deny: {cidrs: [10.0.0.0/8]}, mode: shadow}, {name: e, allow: {cidrs: [10.1.0.0/16]}}, {name: f, deny: {user_agents: ['#;']}, status: 451}]\n"},
	"edge": {"", "  limits: {a: {per: ip, rate: 10/s, burst: 20, except: {user_agents: ['x']}}, b-c: {per: [ip, route], rate: 90/m, burst: 5, delay: 2}, d: {per: global, rate: 1000/s, burst: 1, expect: 100}, e: {per: {header: X-K}, connections: 50, when: {methods: [GET]}}}\n",
		"  limits: {a: {per: {query: q, capture: '^a(.*)b'}, rate: 10/s, burst: 20, mode: shadow, only: {cidrs: [10.0.0.0/8]}}}\n",
		"  limits: {a: {per: [ip, country], rate: 10/s, burst: 20, only: {countries: [DE, unknown], groups: [eu_members]}}, b: {per: asn, connections: 9, except: {continents: [EU], asns: [64500]}}}\n"},
	"routes": {"", "routes: [{name: h, match: {exact: /h}, exempt: true}, {name: r, match: {regex: '^/x{1}[\"\\\\;]$'}, on_store_down: closed}, {name: s, match: {hosts: [a.example, '*.b.example'], prefix: /s}, service: false}, {name: z, match: {prefix: /}}]\n",
		"routes: [{name: paid, match: {prefix: /paid}, cost_from: {response_header: X-Cost, max: 9}}, {name: told, match: {prefix: /told}, cost: 2, cost_from: {report: 10m, max: 9}}, {name: rest, match: {prefix: /}}]\n",
		"routes: [{name: only.this, match: {prefix: /v1, methods: [GET]}, on_store_down: local}]\n"},
	"cache": {"", "no"}, // whether NGINX keeps denials: an option of rendering
	"responses": {"", "responses: {headers: [ratelimit, x-ratelimit, ratelimit-3], body: json, messages: {de: 'Zu \"viel\" $1, {retry_after}', en: 'x\\y'}, support_url: 'https://example.com/a?b=$c'}\n",
		"responses: {headers: [], body: text}\n", "responses: {headers: [ratelimit-12], messages: {zh: '" + strings.Repeat("您的$\"", 500) + "', en: short}}\n"},
}

// matrixPolicy puts a policy together; choice has an index for each section.
func matrixPolicy(choice map[string]int) string {
	pick := func(name string) string { return sections[name][choice[name]] }
	edge := pick("access") + pick("edge")
	if edge != "" {
		edge = "edge:\n" + edge
	}
	plans := ""
	if choice["identity"] > 0 {
		plans = "plans: {p: {limits: {speed: {per: ip, rate: 2/s, burst: 10}}}}\n"
	}
	return "version: 1\n" + pick("mode") + pick("client") + pick("identity") + pick("limits") + edge + plans + pick("routes") + pick("responses")
}

// pairs are choices in which every two values of two sections meet.
func pairs() []map[string]int {
	names := slices.Sorted(maps.Keys(sections))
	type pair struct{ a, b, i, j int }
	open := map[pair]bool{}
	for a := range names {
		for b := a + 1; b < len(names); b++ {
			for i := range sections[names[a]] {
				for j := range sections[names[b]] {
					open[pair{a, b, i, j}] = true
				}
			}
		}
	}
	var out []map[string]int
	for len(open) > 0 {
		choice := map[string]int{}
		for a, name := range names {
			best, most := 0, -1
			for i := range sections[name] {
				gain := 0
				for p := range open {
					switch {
					case p.b == a && p.j == i && p.a < a && choice[names[p.a]] == p.i:
						gain += 100
					case p.a == a && p.i == i:
						gain++
					}
				}
				if gain > most {
					best, most = i, gain
				}
			}
			choice[name] = best
		}
		before := len(open)
		for p := range open {
			if choice[names[p.a]] == p.i && choice[names[p.b]] == p.j {
				delete(open, p)
			}
		}
		if len(open) == before { // greed found nothing new: take any that is left
			for p := range open {
				choice[names[p.a]], choice[names[p.b]] = p.i, p.j
				delete(open, p)
				break
			}
		}
		out = append(out, choice)
	}
	return out
}

// TestMatrix: every optional section, with every other one, is read by NGINX (C039).
func TestMatrix(t *testing.T) {
	t.Parallel()
	nginx := gentest.Binary(t)
	places := smallWorld(t, geotest.MaxMind)
	for _, choice := range pairs() {
		policy := matrixPolicy(choice)
		files, err := Render(compiled(t, policy), Options{Version: "test", Full: true, Geo: places, NoDenyCache: choice["cache"] > 0})
		if err == nil {
			err = Check(t.Context(), nginx, files)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, policy)
		}
	}
}

// TestSame: the same policy gives the same bytes, also with its keys in another
// order (C040).
func TestSame(t *testing.T) {
	t.Parallel()
	const a = `version: 1
edge:
  limits:
    p2: {per: ip, rate: 1/s, burst: 2, when: {headers: {A: present, B: absent}, query: {x: 'y'}}}
    p10: {per: ip, rate: 2/s, burst: 3}
responses: {messages: {en: "x", de: "y"}, body: json}
`
	const b = `responses: {body: json, messages: {en: "x", de: "y"}}
edge:
  limits:
    p10: {burst: 3, rate: 2/s, per: ip}
    p2: {when: {query: {x: 'y'}, headers: {B: absent, A: present}}, per: ip, rate: 1/s, burst: 2}
version: 1
`
	want := rendered(t, a)
	for range 100 {
		if diff := cmp.Diff(want, rendered(t, a)); diff != "" {
			t.Fatal(diff)
		}
	}
	if diff := cmp.Diff(want, rendered(t, b)); diff != "" {
		t.Error(diff)
	}
	http := string(want["sluice/http.conf"])
	if strings.Index(http, "$sluice_limit_p2 ") > strings.Index(http, "$sluice_limit_p10 ") && strings.Contains(http, "$sluice_limit_p10 ") {
		t.Error("p10 comes before p2")
	}
}

// TestNoSecrets: what identifies a key, or a tenant, is in no file (C119).
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const hash = "aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc"
	files := rendered(t, "version: 1\nidentity: {sources: [{api_key: {header: X-API-Key, prefix: sk_}}], missing: {plan: p}}\nplans: {p: {limits: {speed: {per: ip, rate: 2/s, burst: 10}}}}\n"+
		"tenants: [{id: secretive, plan: p, keys: [{id: secretive-web, sha256: "+hash+"}]}]\n")
	for name, content := range files {
		for _, secret := range []string{hash, "secretive", "sk_"} {
			if strings.Contains(string(content), secret) {
				t.Errorf("%s holds %s", name, secret)
			}
		}
		if !stamped(content) {
			t.Errorf("%s has no stamp", name)
		}
		if strings.Contains(string(content), "/tmp/") || strings.Contains(string(content), "/etc/") {
			t.Errorf("%s has an absolute path", name)
		}
	}
}
