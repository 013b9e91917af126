package policies_test

import (
	"slices"
	"strings"
	"testing"

	"sluice/policies"
)

// TestTestFiles: what is wrong with a test file is told like what is wrong with
// a policy.
func TestTestFiles(t *testing.T) {
	t.Parallel()
	for _, f := range []struct{ name, text, want string }{
		{"good", `
policy: policy.yaml
start: 2026-12-01T09:00:00Z
tests:
  - name: all there is
    requests:
      - {at: 0s, times: 10, every: 100ms, clients: 2, ip: 192.0.2.7, peer: 10.0.0.1, url: "/v1?q=x", method: POST, host: a.example,
         headers: {X-A: b}, takes: 30s, answers: 404, country: DE, asn: AS64500, tenant: acme, user: jo,
         expect: {status: 200, by: edge, limit: speed, reason: rate, remaining: {speed: 0}, retry_after: 0, delay: 0s, allowed: 20,
                  headers: {Retry-After: absent}, route: all, plan: p, tenant: acme, shadow: window}}
      - {key: web, url: "https://a.example/x#y"}
      - {jwt: {sub: jo, org_id: acme}, url: /}
`, ""},
		{"empty", "tests: []\n", "t.yaml:1:8: tests: there is no test; want at least one [test]"},
		{"nothing", "", "t.yaml: the file says nothing; want tests of a policy that begin with policy: policy.yaml [empty-file]"},
		{"unknown key", "tests: [{name: a, requests: [{url: /, tmes: 3}]}]\n",
			`t.yaml:1:39: tests[0].requests[0].tmes: "tmes" is no key here; did you mean times? [unknown-key]`},
		{"names", "tests: [{requests: [{url: /}]}, {name: a, requests: [{url: /}]}, {name: a, requests: []}]\n",
			`t.yaml:1:9: tests[0]: the test has no name; want name: what holds [test]
t.yaml:1:66: tests[2]: the test has no requests; want at least one [test]
t.yaml:1:73: tests[2].name: "a" is the name of test 2 already; want another [test]`},
		{"requests", `
tests:
  - name: a
    requests:
      - {at: 0, url: /}
      - {key: a, tenant: b, url: x}
      - {user: jo, every: 1s, url: /, times: 0}
      - {url: "http://a/", host: b, expect: {allowed: 2, status: 99, reason: rat}}
      - {url: /, times: 1000000, clients: 2}
`, `t.yaml:5:14: tests[0].requests[0].at: 0 has no unit; want 0s [duration]
t.yaml:6:26: tests[0].requests[1].tenant: key and tenant stand together; want one of them [test]
t.yaml:6:34: tests[0].requests[1].url: "x" is no target of a request; want a path such as /v1/search?q=x, or a whole URL [path]
t.yaml:7:16: tests[0].requests[2].user: a user belongs to a tenant here; want tenant beside it, or jwt [test]
t.yaml:7:46: tests[0].requests[2].times: 0 is not possible; want 1 to 1000000 [test]
t.yaml:8:34: tests[0].requests[3].host: the url names the host a already; want one of them [test]
t.yaml:8:55: tests[0].requests[3].expect.allowed: of 1 requests 2 cannot pass; want at most 1 [test]
t.yaml:8:66: tests[0].requests[3].expect.status: "99" is no status; want one such as 200 or 429 [status]
t.yaml:8:78: tests[0].requests[3].expect.reason: "rat" is none of the words here; want rate, window, quota, concurrency, retries, too_large, plan, credential, address, disabled, simulate, store_down, overload, access, edge_rate or edge_conn; did you mean rate? [word]
t.yaml:9:9: tests[0].requests[4]: these are 2000000 requests; want at most 1000000 [test]`},
	} {
		_, ds := policies.ParseTests("t.yaml", []byte(f.text))
		var got []string
		for _, d := range ds {
			got = append(got, d.String())
		}
		if text := strings.Join(got, "\n"); sortedLines(text) != sortedLines(f.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", f.name, text, f.want)
		}
	}
}

func sortedLines(s string) string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestTestNames: names in tests are those of the policy.
func TestTestNames(t *testing.T) {
	t.Parallel()
	p, ds := policies.Parse("policy.yaml", []byte(`version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {deny: 401}}
plans: {pro: {limits: {speed: {per: key, rate: 1/s, burst: 1}}}}
tenants: [{id: acme, plan: pro, keys: [{id: acme-web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]}]
`), nil)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	f, ds := policies.ParseTests("t.yaml", []byte(`tests:
  - name: a
    requests:
      - {url: /, key: acme-wbe, expect: {remaining: {sped: 1}, plan: free}}
      - {url: /, tenant: acme, expect: {limit: office, reason: access, route: all}}
`))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	var got []string
	for _, d := range f.Check(policies.Compile(p)) {
		got = append(got, d.String())
	}
	want := `t.yaml:4:23: tests[0].requests[0].key: the policy has no key "acme-wbe"; did you mean acme-web? [test]
t.yaml:4:60: tests[0].requests[0].expect.remaining.sped: the policy has no limit "sped"; did you mean speed? [test]
t.yaml:4:70: tests[0].requests[0].expect.plan: the policy has no plan "free"; want pro [test]`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// FuzzParseTests: whatever a file holds, reading it ends in findings.
func FuzzParseTests(f *testing.F) {
	f.Add([]byte("tests: [{name: a, requests: [{url: /, at: 1s, expect: {status: 200}}]}]\n"))
	f.Add([]byte("tests:\n- &a {name: b, requests: [{<<: *a}]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, ds := policies.ParseTests("t.yaml", text)
		if !ds.HasErrors() && len(file.Tests) == 0 {
			t.Errorf("no test, and no finding")
		}
	})
}
