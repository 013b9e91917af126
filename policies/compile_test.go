package policies

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// compileText compiles a policy that must be good.
func compileText(t *testing.T, text string) *Compiled {
	t.Helper()
	p, ds := Parse("policy.yaml", []byte(text), func(f FileName) ([]byte, error) { return nil, os.ErrNotExist })
	if ds.HasErrors() {
		t.Fatalf("policy has findings: %v", ds)
	}
	return Compile(p)
}

func limitNames(limits []Limit) []string {
	var names []string
	for _, l := range limits {
		names = append(names, l.Name+" "+l.Rate.String())
	}
	return names
}

const plansPolicy = `
version: 1
identity:
  sources: [{api_key: {header: X-API-Key}}]
  missing: {plan: anonymous}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1/s, burst: 5}}}
  free:
    limits:
      speed: {per: key, rate: 10/s, burst: 50}
      org: {per: tenant, rate: 20/s, burst: 100}
  pro:
    extends: free
    priority: high
    limits:
      speed: {rate: 50/s, burst: 200}
  max:
    extends: pro
    limits:
      org: {burst: 500}
tenants:
  - id: acme
    plan: pro
    overrides: {speed: {rate: 100/s}}
    keys:
      - {id: web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}
      - {id: batch, sha256: 8388b8a03592a5904e2d6236fb89ba6dc98280d81953fa9e51f2ca5ac756fc9c, plan: free}
`

func TestPlansInheritKeyByKey(t *testing.T) {
	c := compileText(t, plansPolicy)
	got := map[string][]string{}
	for _, p := range c.Plans {
		got[p.Name+" "+string(p.Priority)] = limitNames(p.Limits)
	}
	want := map[string][]string{
		"anonymous normal": {"speed 1/s"},
		"free normal":      {"org 20/s", "speed 10/s"},
		"pro high":         {"org 20/s", "speed 50/s"},
		"max high":         {"org 20/s", "speed 50/s"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("effective limits (-want +got):\n%s", diff)
	}
	if org := c.Plans[c.planIndex("max")].Limits[0]; org.Burst != 500 || len(org.Per) != 1 {
		t.Errorf("max.org = %+v; want its own burst and the per of free", org)
	}
}

func TestOverridesTouchTheTenantsPlanAlone(t *testing.T) {
	c := compileText(t, plansPolicy)
	acme := c.Tenants[0]
	if diff := cmp.Diff([]string{"org 20/s", "speed 100/s"}, limitNames(acme.Keys[0].Limits)); diff != "" {
		t.Errorf("key web (-want +got):\n%s", diff)
	}
	// Its own plan gives what counts by key; the organisation's bucket is the tenant's plan's.
	if diff := cmp.Diff([]string{"speed 10/s", "org 20/s"}, limitNames(acme.Keys[1].Limits)); diff != "" {
		t.Errorf("key batch (-want +got):\n%s", diff)
	}
	if c.Plans[c.planIndex("pro")].Limits[1].Rate.Micro != 50e6 {
		t.Errorf("the override changed the plan")
	}
}

func TestLimitIDStandsForTheCounter(t *testing.T) {
	c := compileText(t, plansPolicy)
	free, pro := c.Plans[c.planIndex("free")], c.Plans[c.planIndex("pro")]
	if free.Limits[1].ID != pro.Limits[1].ID {
		t.Errorf("another plan with other numbers starts another counter: %s, %s", free.Limits[1].ID, pro.Limits[1].ID)
	}
	if anon := c.Plans[c.planIndex("anonymous")]; anon.Limits[0].ID == free.Limits[1].ID {
		t.Errorf("per ip and per key share a counter: %s", anon.Limits[0].ID)
	}
	top := compileText(t, "version: 1\nlimits: {speed: {per: ip, rate: 1/s, burst: 5}}\n")
	if anon := c.Plans[c.planIndex("anonymous")]; anon.Limits[0].ID == top.Limits[0].ID {
		t.Errorf("a plan's limit and a top-level one of the same name share a counter")
	}
}

func TestEdgeNumbersAreOneNodes(t *testing.T) {
	for _, tc := range []struct {
		name, rate, nodes string
		want              Rate
	}{
		{"C045: divided", "100/s", "2", Rate{50e6, time.Second}},
		{"C045: never below one", "1/s", "100", Rate{1e6, time.Minute}},
		{"whole seconds when they are", "60/m", "1", Rate{1e6, time.Second}},
		{"C024: half a request each second", "0.5/s", "1", Rate{30e6, time.Minute}},
		{"rounded up", "100/m", "3", Rate{34e6, time.Minute}},
		{"odd division falls to minutes", "5/s", "2", Rate{150e6, time.Minute}},
	} {
		c := compileText(t, "version: 1\nedge: {nodes: "+tc.nodes+", limits: {x: {per: ip, rate: "+tc.rate+", burst: 3}}}\n")
		if c.Edge[0].Rate != tc.want {
			t.Errorf("%s: %s over %s nodes is %v, want %v", tc.name, tc.rate, tc.nodes, c.Edge[0].Rate, tc.want)
		}
	}
}

func TestHashIsOfTheMeaning(t *testing.T) {
	base := compileText(t, plansPolicy).Hash
	same := strings.ReplaceAll(plansPolicy, "rate: 50/s, burst: 200", `burst: 200, rate: "50/s"`) + "# as before\n"
	if got := compileText(t, same).Hash; got != base {
		t.Errorf("spelling and order change the hash: %s, %s", got, base)
	}
	tenant := plansPolicy + "  - {id: globex, plan: free}\n"
	if got := compileText(t, tenant).Hash; got != base {
		t.Errorf("a tenant changes the hash that NGINX's files carry")
	}
	other := strings.ReplaceAll(plansPolicy, "rate: 50/s", "rate: 51/s")
	if got := compileText(t, other).Hash; got == base {
		t.Errorf("another rate keeps the hash")
	}
}

func TestAskedOnlyWhereARuleOfTheServiceConcerns(t *testing.T) {
	c := compileText(t, `
version: 1
edge: {limits: {one: {per: ip, rate: 300/s, burst: 201}}}
routes:
  - {name: a, match: {prefix: /a}, limits: {x: {per: ip, rate: 1/s, burst: 1}}}
  - {name: b, match: {prefix: /}}
`)
	if !c.Routes[0].Asked || c.Routes[1].Asked {
		t.Errorf("asked: a %t, b %t; want a alone", c.Routes[0].Asked, c.Routes[1].Asked)
	}
	if len(c.Routes[1].Edge) != 1 {
		t.Errorf("b has edge limits %v; want the one", c.Routes[1].Edge)
	}
}

func TestDefaultRoute(t *testing.T) {
	c := compileText(t, "version: 1\nlimits: {x: {per: ip, rate: 1/s, burst: 1}}\n")
	if len(c.Routes) != 1 || c.Routes[0].Name != "all" || c.Routes[0].Path != "/" || !c.Routes[0].Asked {
		t.Errorf("routes = %+v; want one named all, prefix /", c.Routes)
	}
}
