package trial_test

import (
	"os"
	"testing"
	"time"

	"sluice/cmd/trial"
	"sluice/policies"
	"sluice/policies/edge"
)

const everybody = `version: 1
identity:
  sources:
    - api_key: {query: api_key}
    - jwt: {header: Authorization, jwks_file: jwks.json, issuer: "https://id.example", audience: api,
            tenant_claim: org, user_claim: sub, scope_claim: scope, plan_claim: plan}
    - client_cert: {}
  missing: {deny: 401}
  unlisted: {plan: free}
plans:
  free: {limits: {speed: {per: user, rate: 1/h, burst: 2}}}
  pro: {limits: {speed: {per: user, rate: 1/h, burst: 3}, words: {per: scope, rate: 1/h, burst: 9}}}
tenants:
  - {id: acme, plan: pro, claim: org-1, keys: [{id: acme-web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]}
  - {id: machines, plan: pro, cert_sha256: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]}
`

// withKeySet compiles a policy that has a key set beside it.
func withKeySet(t *testing.T, src string) *policies.Compiled {
	t.Helper()
	p, ds := policies.Parse("policy.yaml", []byte(src), func(policies.FileName) ([]byte, error) {
		return os.ReadFile("../../policies/testdata/example/jwks.json")
	})
	if ds.HasErrors() {
		t.Fatalf("the policy of the test is not good: %v", ds)
	}
	return policies.Compile(p)
}

// TestCast: whoever a policy knows can be named, and is who he is said to be.
func TestCast(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		name              string
		policy            string
		who               trial.Who
		tenant, key, plan string
		status            int
		err               string
	}{
		{"a key", everybody, trial.Who{Key: "acme-web"}, "acme", "acme-web", "pro", 200, ""},
		{"a tenant by his token", everybody, trial.Who{Tenant: "acme"}, "acme", "", "pro", 200, ""},
		{"a user", everybody, trial.Who{Tenant: "acme", User: "jo"}, "acme", "", "pro", 200, ""},
		{"claims", everybody, trial.Who{Claims: map[string]string{"org": "org-1", "sub": "jo"}}, "acme", "", "pro", 200, ""},
		{"claims of nobody here", everybody, trial.Who{Claims: map[string]string{"org": "else", "plan": "pro"}}, "else", "", "pro", 200, ""},
		{"claims of another issuer", everybody, trial.Who{Claims: map[string]string{"iss": "https://else"}}, "", "", "", 0, `no token source of the policy has the issuer "https://else"`},
		{"nobody", everybody, trial.Who{}, "", "", "", 401, ""},
		{"no such key", everybody, trial.Who{Key: "web"}, "", "", "", 0, `the policy has no key "web"`},
		{"no such tenant", everybody, trial.Who{Tenant: "web"}, "", "", "", 0, `the policy has no tenant "web"`},
		{"a certificate", certsOnly, trial.Who{Tenant: "machines"}, "machines", "", "pro", 200, ""},
		{"a login", loginOnly, trial.Who{Tenant: "acme", User: "jo"}, "acme", "", "pro", 200, ""},
		{"not logged in", loginOnly, trial.Who{}, "", "", "", 401, ""},
	} {
		c := withKeySet(t, f.policy)
		cast, errs := trial.NewCast(c, []trial.Who{f.who})
		if errs[0] != nil || f.err != "" {
			if errs[0] == nil || errs[0].Error() != f.err {
				t.Errorf("%s: error %v; want %q", f.name, errs[0], f.err)
			}
			continue
		}
		tr, err := trial.New(cast.Policy(), trial.Options{Start: start(), Login: true})
		if err != nil {
			t.Fatal(err)
		}
		r := get(0, "/")
		cast.Show(&f.who, r)
		tr.Run(r, func(o *trial.Outcome) {
			if o.Tenant != f.tenant || o.Key != f.key || o.Plan != f.plan || o.Status != f.status {
				t.Errorf("%s: tenant %q, key %q, plan %q, %d; want %q, %q, %q, %d", f.name, o.Tenant, o.Key, o.Plan, o.Status, f.tenant, f.key, f.plan, f.status)
			}
		})
	}
}

const certsOnly = `version: 1
identity: {sources: [{client_cert: {}}], missing: {deny: 401}}
plans: {pro: {limits: {speed: {per: tenant, rate: 1/h, burst: 3}}}}
tenants: [{id: machines, plan: pro, cert_sha256: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]}]
`

const loginOnly = `version: 1
identity:
  sources: [{auth_request: {location: /oauth2/auth, user_header: X-User, tenant_header: X-Org}}]
  missing: {plan: pro}
plans: {pro: {limits: {speed: {per: user, rate: 1/h, burst: 3}}}}
tenants: [{id: acme, plan: pro, claim: org-1}]
`

// TestUsersApart: each user has a counter of his own, and a scope another.
func TestUsersApart(t *testing.T) {
	t.Parallel()
	all := []trial.Who{
		{Tenant: "acme", User: "jo"}, {Tenant: "acme", User: "bo"},
		{Claims: map[string]string{"org": "org-1", "sub": "jo", "scope": "read"}},
	}
	cast, errs := trial.NewCast(withKeySet(t, everybody), all)
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	tr, err := trial.New(cast.Policy(), trial.Options{Start: start()})
	if err != nil {
		t.Fatal(err)
	}
	jo, bo, reads := &all[0], &all[1], &all[2]
	for i, f := range []struct {
		who  *trial.Who
		want int
	}{{jo, 200}, {reads, 200}, {bo, 200}, {jo, 200}, {jo, 429}, {reads, 429}, {bo, 200}, {bo, 200}, {bo, 429}} {
		r := get(0, "/")
		cast.Show(f.who, r)
		tr.Run(r, func(o *trial.Outcome) {
			if o.Status != f.want {
				t.Errorf("step %d, %+v: %d; want %d", i, *f.who, o.Status, f.want)
			}
		})
	}
}

// TestCosts: what a request has cost in the end is settled, by a header or a report.
func TestCosts(t *testing.T) {
	t.Parallel()
	tr, _ := newTrial(t, `version: 1
limits: {all: {per: global, rate: 1/h, burst: 100}}
routes:
  - {name: files, match: {prefix: /files}, cost: 5, cost_from: {response_header: X-Cost, max: 50}}
  - {name: chat, match: {prefix: /chat}, cost: 10, cost_from: {report: 10m, max: 40}}
  - {name: rest, match: {prefix: /}}
`)
	left := func(at time.Duration, path string, cost int64) int64 {
		r := get(at, path)
		if cost >= 0 {
			r.Cost = &cost
		}
		n := int64(-1)
		tr.Run(r, func(o *trial.Outcome) { n = o.Charges(nil)[0].State.Remaining })
		return n
	}
	for i, f := range []struct {
		path string
		cost int64
		want int64 // left while it runs
	}{
		{"/files", 20, 95}, {"/", -1, 79}, {"/files", 1, 74}, {"/", -1, 77}, {"/files", 999, 72}, {"/", -1, 26}, {"/files", -1, 21}, {"/", -1, 20},
		{"/chat", 2, 10}, {"/", -1, 17},
	} {
		if got := left(0, f.path, f.cost); got != f.want {
			t.Errorf("step %d, %s at %d: %d left; want %d", i, f.path, f.cost, got, f.want)
		}
	}
}

// TestNoSecretsInTraces: what is explained shows no credential. C119
func TestNoSecretsInTraces(t *testing.T) {
	t.Parallel()
	c := compiled(t, twoFloors)
	for uri, want := range map[string]string{"/a?x=1": "/a?x=1", "/": "/"} {
		if got := trial.WithoutCredentials(c, uri); got != want {
			t.Errorf("%s became %s; want %s", uri, got, want)
		}
	}
	c = withKeySet(t, everybody)
	for uri, want := range map[string]string{"/a?api_key=s": "/a?api_key=…", "/?x&API%5fKEY=s&y=1": "/?x&API%5fKEY=…&y=1", "/?a%zz=1": "/?a%zz=1"} {
		if got := trial.WithoutCredentials(c, uri); got != want {
			t.Errorf("%s became %s; want %s", uri, got, want)
		}
	}
}

// TestWords: the words that tests may expect are those that there are.
func TestWords(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, w := range policies.Deciders() {
		known[w] = true
	}
	for by := trial.ByNGINX; by.String() != ""; by++ {
		if !known[by.String()] {
			t.Errorf("policies.Deciders has no %s", by)
		}
		delete(known, by.String())
	}
	if len(known) > 0 {
		t.Errorf("policies.Deciders has more: %v", known)
	}
	for _, v := range []edge.Verdict{edge.Access, edge.EdgeRate, edge.EdgeConn} {
		var r policies.ReasonWord
		if err := r.UnmarshalText([]byte(v.String())); err != nil {
			t.Error(err)
		}
	}
}
