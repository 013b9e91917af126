package policies

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const admitPolicy = `
version: 1
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
limits: {backend: {per: global, rate: 1000/s, burst: 1000}}
plans:
  free:
    limits:
      speed: {per: key, rate: 10/s, burst: 50}
      monthly: {per: tenant, quota: 1000/month}
      smooth: {per: tenant, window: 100/1m}
      jobs: {per: tenant, concurrency: 3}
  pro: {extends: free, limits: {speed: {rate: 50/s}, monthly: {quota: unlimited/month}}}
`

// A tenant who comes later is made ready as if the file had him, and refused with the
// words that the file would get.
func TestAdmitIsAsTheFile(t *testing.T) {
	t.Parallel()
	const sha = "aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc"
	bare := compileText(t, admitPolicy)
	for _, tenant := range []string{
		`{id: acme, plan: free}`,
		`{id: acme, plan: pro, disabled: true, claim: org, cidrs: [192.0.2.0/24], cert_sha256: [` + sha + `]}`,
		`{id: acme, plan: free, overrides: {speed: {rate: 20/s, burst: 7}, monthly: {quota: 5/month, overage: 2}, smooth: {window: 5/1m}, jobs: {concurrency: 0}}}`,
		`{id: acme, plan: free, grants: [{limit: monthly, add: 5, from: 2026-12-01, until: 2026-12-31}]}`,
		`{id: acme, plan: free, overrides: {speed: {burst: 7}}, keys: [{id: a, sha256: ` + sha + `, plan: pro, simulate: monthly}]}`,
		`{id: acme, plan: free, keys: [{id: a, sha256: ` + sha + `, simulate: backend, cidrs: [private], disabled: true}]}`,
		// What is wrong.
		`{id: acme, plan: gold}`,
		`{id: acme}`,
		`{plan: free}`,
		`{id: acme, plan: free, overrides: {nothing: {rate: 1/s}}}`,
		`{id: acme, plan: free, overrides: {speed: {}}}`,
		`{id: acme, plan: free, overrides: {speed: {quota: 1/month}}}`,
		`{id: acme, plan: free, overrides: {speed: {burst: 0}}}`,
		`{id: acme, plan: free, overrides: {speed: {wait: 3s}}}`,
		`{id: acme, plan: free, overrides: {smooth: {window: 5/2m}}}`,
		`{id: acme, plan: pro, overrides: {monthly: {overage: 5}}}`,
		`{id: acme, plan: pro, grants: [{limit: monthly, add: 5, from: 2026-12-01, until: 2026-12-31}]}`,
		`{id: acme, plan: free, grants: [{limit: monthly, add: 0, from: 2026-12-02, until: 2026-12-01}]}`,
		`{id: acme, plan: free, keys: [{id: a, sha256: ` + sha + `, plan: gold}]}`,
		`{id: acme, plan: free, keys: [{id: a, sha256: ` + sha + `, simulate: nothing}]}`,
		`{id: acme, plan: free, keys: [{id: a}]}`,
	} {
		p, found := Parse("policy.yaml", []byte(admitPolicy+"tenants: ["+tenant+"]\n"), nil)
		got, err := bare.Admit(&p.Tenants[0])
		if found.HasErrors() != (err != nil) {
			t.Errorf("%s: the file has %v, Admit %v", tenant, found, err)
			continue
		}
		if err != nil {
			path, message, _ := strings.Cut(err.Error(), ": ")
			if first := firstError(found); first.Path != "tenants[0]."+path && first.Path != strings.TrimSuffix("tenants[0]."+path, ".") || first.Message != message {
				t.Errorf("%s: Admit says %q, the file %q at %s", tenant, err, first.Message, first.Path)
			}
			continue
		}
		want := Compile(p).Tenants[0]
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(time.Location{}), cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
			t.Errorf("%s (-file +admitted):\n%s", tenant, diff)
		}
	}
}

// A wait that NGINX was not told of is refused: it would not wait for the answer.
func TestAdmitWaits(t *testing.T) {
	t.Parallel()
	spec := func(wait time.Duration) *TenantSpec {
		d := Duration(wait)
		return &TenantSpec{ID: "acme", Plan: "pro", Overrides: map[Name]OverrideSpec{"speed": {Wait: &d}}}
	}
	c := compileText(t, strings.Replace(admitPolicy, "speed: {rate: 50/s}", "speed: {rate: 50/s, wait: 500ms}", 1))
	if _, err := c.Admit(spec(500 * time.Millisecond)); err != nil {
		t.Error(err)
	}
	if _, err := c.Admit(spec(501 * time.Millisecond)); err == nil || !strings.Contains(err.Error(), "longer than any limit of the policy waits") {
		t.Errorf("a longer wait: %v", err)
	}
}

func firstError(found Diagnostics) Diagnostic {
	for _, d := range found {
		if !d.Warning {
			return d
		}
	}
	return Diagnostic{}
}
