package authz

import (
	"fmt"
	"testing"
)

// shared is a policy whose limits many tenants have together.
const sharedJobs = `
plans: {pro: {limits: {speed: {per: tenant, rate: 1/h, burst: 100}}}}
tenants:
  - {id: acme, plan: pro, keys: [{id: a, sha256: hash(sk_a)}]}
  - {id: globex, plan: pro, keys: [{id: g, sha256: hash(sk_g)}]}
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: pro}, unlisted: {deny: 403}}
routes:
  - name: export
    match: {prefix: /export}
    limits: {jobs: {per: route, concurrency: 2, lease: 1h}}
  - name: call
    match: {prefix: /call}
    cost: 10
    cost_from: {report: 10m, max: 400}
  - {name: all, match: {prefix: /}}
`

// Workers choose names, and two of them one name: what one has taken is neither the
// other's place nor his to end.
func TestOneNameForTwoTenants(t *testing.T) {
	s := newSite(t, sharedJobs)
	post := func(what string, want int, verb, body string, args ...any) {
		t.Helper()
		if status, _, a := s.post("/v1/"+verb, fmt.Sprintf(body, args...)); status != want {
			t.Errorf("%s: status %d, %v; want %d", what, status, a, want)
		}
	}
	post("acme", 200, "take", `{"route":"export","tenant":"acme","request":"job-1"}`)
	post("globex, by a key", 200, "take", `{"route":"export","key":"sk_g","request":"job-1"}`)
	post("both places are taken", 429, "take", `{"route":"export","tenant":"acme","request":"job-2"}`)

	post("whose?", 409, "release", `{"route":"export","request":"job-1"}`)
	post("of a third", 404, "release", `{"route":"export","request":"job-1","tenant":"initech"}`)
	post("with another key", 404, "release", `{"route":"export","request":"job-1","key":"sk_a"}`)
	post("acme's", 204, "release", `{"route":"export","request":"job-1","tenant":"acme"}`)
	post("acme's again", 404, "release", `{"route":"export","request":"job-1","tenant":"acme"}`)
	post("one place is free", 200, "take", `{"route":"export","tenant":"acme","request":"job-3"}`)
	post("and no more", 429, "take", `{"route":"export","tenant":"acme","request":"job-4"}`)
	post("the other's alone", 204, "release", `{"route":"export","request":"job-1"}`)
	post("a place is free", 200, "take", `{"route":"export","tenant":"acme","request":"job-5"}`)
}

// The same for costs, with or without the route.
func TestOneNameForTwoCosts(t *testing.T) {
	s := newSite(t, sharedJobs)
	for _, tenant := range []string{"acme", "globex"} {
		if status, _, a := s.post("/v1/take", `{"route":"call","request":"c1","tenant":"`+tenant+`"}`); status != 200 {
			t.Fatalf("%s: %d, %v", tenant, status, a)
		}
	}
	for _, c := range []struct {
		what, body string
		want       int
	}{
		{"whose?", `{"request":"c1","cost":1}`, 409},
		{"whose, of the route?", `{"request":"c1","route":"call","cost":1}`, 409},
		{"acme's", `{"request":"c1","cost":1,"tenant":"acme"}`, 200},
		{"acme's again", `{"request":"c1","route":"call","cost":1,"tenant":"acme"}`, 200},
		{"acme's otherwise", `{"request":"c1","cost":2,"tenant":"acme"}`, 409},
		{"globex's", `{"request":"c1","cost":60,"tenant":"globex"}`, 200},
	} {
		if status, _, a := s.post("/v1/cost", c.body); status != c.want {
			t.Errorf("%s: status %d, %v; want %d", c.what, status, a, c.want)
		}
	}
	for tenant, want := range map[string]float64{"acme": 99 - 1, "globex": 40 - 1} {
		_, _, a := s.post("/v1/take", `{"route":"all","request":"look","tenant":"`+tenant+`"}`)
		if left := a["limits"].([]any)[0].(map[string]any)["remaining"]; left != want {
			t.Errorf("%s has %v units left, want %v", tenant, left, want)
		}
	}
}

// NGINX's datagrams do not say for whom a request was: of two of a name, none ends.
func TestDatagramOfTwo(t *testing.T) {
	s := newSite(t, sharedJobs)
	for _, tenant := range []string{"acme", "globex"} {
		s.post("/v1/take", `{"route":"export","request":"x","tenant":"`+tenant+`"}`)
	}
	if known, err := s.engine.Complete(Completion{ID: "x", Path: "/_sluice/open/export", Status: 200}); known || err == nil {
		t.Errorf("known: %t, %v", known, err)
	}
	if status, _, _ := s.post("/v1/take", `{"route":"export","request":"y","tenant":"acme"}`); status != 429 {
		t.Errorf("a place came free: status %d", status)
	}
}
