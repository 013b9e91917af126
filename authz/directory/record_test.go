package directory

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/policies"
)

// tenantText is a tenant with everything that a file can say.
const tenantText = `
version: 1
identity: {sources: [{api_key: {header: X-API-Key}}, {client_cert: {}}], missing: {plan: free}}
plans:
  free:
    limits:
      speed: {per: key, rate: 10/s, burst: 50, wait: 1s}
      monthly: {per: tenant, quota: 1000/month}
      smooth: {per: tenant, window: 100/1m}
      jobs: {per: tenant, concurrency: 3}
      again: {per: key, retries: 60/m}
  pro: {extends: free}
tenants:
  - id: acme
    name: Acme GmbH
    plan: free
    disabled: true
    claim: "org 42: acme"
    cidrs: [192.0.2.0/24, "2001:db8:77::/48", private]
    cert_sha256: [8388b8a03592a5904e2d6236fb89ba6dc98280d81953fa9e51f2ca5ac756fc9c]
    keys:
      - {id: web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc, plan: pro, simulate: speed, disabled: true, cidrs: [192.0.2.7]}
      - {id: batch, sha256: 27e947ee7e21e903ef0409ed8a6038581c08ef7357aa2daeff79d5e61351d72c}
    overrides:
      speed: {rate: 2.5/s, burst: 7, wait: 250ms}
      monthly: {quota: 2000/month, overage: 10}
      smooth: {window: 5/1m}
      jobs: {concurrency: 0}
      again: {retries: 5/m}
    grants:
      - {limit: monthly, add: 5, from: 2026-12-01, until: 2026-12-31, reason: "launch week"}
      - {limit: monthly, add: 6, from: 2026-12-01, until: 2026-12-31, reason: "and more"}
      - {limit: monthly, add: 7, from: 2026-11-01, until: 2026-12-31}
`

// What a file says of a tenant is in his records, and comes out of them.
func TestRecordsSayAll(t *testing.T) {
	t.Parallel()
	p, found := policies.Parse("policy.yaml", []byte(tenantText), nil)
	if found.HasErrors() {
		t.Fatal(found)
	}
	said := p.Tenants[0]
	records, err := RecordsOf(&said)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]string{}
	for _, r := range records {
		got[r.Name] = r.Fields
	}
	link := map[string]string{"tenant": "acme"}
	want := map[string]map[string]string{
		"tenant:acme": {
			"plan": "free", "name": "Acme GmbH", "disabled": "1", "claim": "org 42: acme", "cidrs": "192.0.2.0/24 2001:db8:77::/48 private",
			"override:speed:rate": "2.5/s", "override:speed:burst": "7", "override:speed:wait": "250ms", "override:monthly:quota": "2000/month",
			"override:monthly:overage": "10", "override:smooth:window": "5/1m", "override:jobs:concurrency": "0", "override:again:retries": "5/m",
			"grant:monthly:2026-12-01:2026-12-31": "11 launch week; and more", "grant:monthly:2026-11-01:2026-12-31": "7",
		},
		"claim:org 42: acme": link,
		"cert:8388b8a03592a5904e2d6236fb89ba6dc98280d81953fa9e51f2ca5ac756fc9c": link,
		"key:aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc": {
			"tenant": "acme", "id": "web", "plan": "pro", "simulate": "speed", "disabled": "1", "cidrs": "192.0.2.7",
		},
		"key:27e947ee7e21e903ef0409ed8a6038581c08ef7357aa2daeff79d5e61351d72c": {"tenant": "acme", "id": "batch"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if records[0].Name != "tenant:acme" {
		t.Errorf("the first record is %s, want the tenant's", records[0].Name)
	}

	tenant, err := ReadTenant("acme", got["tenant:acme"])
	if err != nil {
		t.Fatal(err)
	}
	back := *tenant.Spec
	for i := range said.Keys {
		key, err := ReadKey(said.Keys[i].SHA256, got[records[3+i].Name])
		if err != nil {
			t.Fatal(err)
		}
		back.Keys = append(back.Keys, *key.Spec)
	}
	// The policy makes the same of both.
	c := policies.Compile(p)
	admitted, err := c.Admit(&back)
	if err != nil {
		t.Fatal(err)
	}
	file := c.Tenants[0]
	file.Certs = nil // they are known by records of their own
	for i := range file.Limits {
		file.Limits[i].Grants = oneForDays(file.Limits[i].Grants)
	}
	for i := range file.Keys {
		for j := range file.Keys[i].Limits {
			file.Keys[i].Limits[j].Grants = oneForDays(file.Keys[i].Limits[j].Grants)
		}
	}
	if diff := cmp.Diff(file, admitted, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmp.Comparer(func(a, b policies.Limit) bool { return reflect.DeepEqual(a, b) })); diff != "" {
		t.Errorf("from the file and from records (-file +records):\n%s", diff)
	}
}

// oneForDays adds grants of the same days up.
func oneForDays(grants []policies.Grant) []policies.Grant {
	var out []policies.Grant
	for _, g := range grants {
		if i := slices.IndexFunc(out, func(o policies.Grant) bool { return o.From == g.From && o.Until == g.Until }); i >= 0 {
			out[i].Add += g.Add
		} else {
			out = append(out, g)
		}
	}
	return out
}

// Every number of an override has its field.
func TestNumbersAreAll(t *testing.T) {
	t.Parallel()
	var want []string
	for i := range reflect.TypeFor[policies.OverrideSpec]().NumField() {
		want = append(want, reflect.TypeFor[policies.OverrideSpec]().Field(i).Tag.Get("yaml"))
	}
	if diff := cmp.Diff(want, numbers()); diff != "" {
		t.Errorf("numbers (-in policies +here):\n%s", diff)
	}
	for _, name := range want {
		var o policies.OverrideSpec
		if numberOf(&o, name) == nil || len(numbersOf(&o)) != 1 {
			t.Errorf("%s is not read or not written", name)
		}
	}
}

// A file with more than a record has room for is refused, and nothing is cut off.
func TestRecordsHaveRoom(t *testing.T) {
	t.Parallel()
	many := policies.List[policies.Network]{}
	for i := range maxNetworks + 1 {
		many = append(many, policies.Entry[policies.Network]{Value: policies.Network{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 32)}})
	}
	for what, spec := range map[string]policies.TenantSpec{
		"networks":          {ID: "acme", Plan: "free", CIDRs: many},
		"networks of a key": {ID: "acme", Plan: "free", Keys: []policies.KeySpec{{ID: "a", CIDRs: many}}},
		"claim":             {ID: "acme", Plan: "free", Claim: policies.Text(strings.Repeat("x", maxClaim+1))},
		"no plan":           {ID: "acme"},
	} {
		if records, err := RecordsOf(&spec); err == nil {
			t.Errorf("%s: %d records", what, len(records))
		}
	}
}

// Random tenants come out of their records as they went in.
func TestRecordsRandomly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,20}`)
		spec := policies.TenantSpec{ID: policies.Name(name.Draw(t, "id")), Plan: policies.Name(name.Draw(t, "plan")), Disabled: rapid.Bool().Draw(t, "off")}
		for range rapid.IntRange(0, 4).Draw(t, "overrides") {
			var o policies.OverrideSpec
			if rapid.Bool().Draw(t, "rate") {
				o.Rate = &policies.Rate{}
				if err := o.Rate.UnmarshalText([]byte(rapid.StringMatching(`[1-9][0-9]{0,5}(\.[0-9]{0,5}[1-9])?/[smhd]`).Draw(t, "rate is"))); err != nil {
					t.Fatal(err)
				}
			} else {
				n := policies.Count(rapid.Int64Range(0, 1<<53).Draw(t, "burst"))
				o.Burst = &n
			}
			if spec.Overrides == nil {
				spec.Overrides = map[policies.Name]policies.OverrideSpec{}
			}
			spec.Overrides[policies.Name(name.Draw(t, "limit"))] = o
		}
		records, err := RecordsOf(&spec)
		if err != nil {
			t.Fatal(err)
		}
		back, err := ReadTenant(string(spec.ID), records[0].Fields)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(spec, *back.Spec); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzRecords reads anything. What can be used has nothing but known fields, with
// names that can stand in counters; and nobody who may be switched off is not.
func FuzzRecords(f *testing.F) {
	f.Add("acme", "plan\x00pro\x00disabled\x001\x00cidrs\x00192.0.2.0/24 private\x00override:speed:burst\x0012\x00grant:monthly:2026-12-01:2026-12-31\x005 why")
	f.Add("a}", "tenant\x00acme\x00id\x00web\x00plan\x00free\x00simulate\x00speed\x00disabled\x00x\x00cidrs\x00::/0 ,")
	f.Add("acme", "tenant\x00acme")
	f.Add("acme", "plan\x00pro\x00override::\x001\x00grant:::\x00\x00override:speed:rate\x0010/s")
	f.Fuzz(func(t *testing.T, id, text string) {
		fields, words := map[string]string{}, strings.Split(text, "\x00")
		for i := 0; i+1 < len(words); i += 2 {
			fields[words[i]] = words[i+1]
		}
		before := maps.Clone(fields)
		known := func(names ...string) bool {
			for name := range fields {
				kind, _, _ := strings.Cut(name, ":")
				if !slices.Contains(names, name) && !slices.Contains(names, kind+":") {
					return false
				}
			}
			return true
		}
		switchedOff, there := fields["disabled"]
		tenant, err := ReadTenant(id, fields)
		if (err != nil) != tenant.Broken || tenant.Broken != (tenant.Spec == nil) {
			t.Errorf("%+v, %v", tenant, err)
		}
		if err == nil && (!known("plan", "claim", "disabled", "cidrs", "name", "override:", "grant:") || !isName(id) || !isName(fields["plan"]) ||
			tenant.Disabled != (there && switchedOff != "0") || (tenant.Networks == nil) != (fields["cidrs"] == "")) {
			t.Errorf("%q: %+v", fields, tenant)
		}
		key, err := ReadKey(hashOf(id), fields)
		if (err != nil) != key.Broken || key.Broken != (key.Spec == nil) {
			t.Errorf("%+v, %v", key, err)
		}
		if err == nil && (!known("tenant", "id", "plan", "simulate", "disabled", "cidrs") || !isName(key.ID) || !isName(key.TenantID) ||
			key.Disabled != (there && switchedOff != "0") || (key.Networks == nil) != (fields["cidrs"] == "")) {
			t.Errorf("%q: %+v", fields, key)
		}
		if len(fields) > 0 {
			link, err := ReadLink(fields)
			if (err != nil) != link.Broken || err == nil && (!known("tenant") || !isName(link.TenantID)) {
				t.Errorf("%q: %+v, %v", fields, link, err)
			}
		}
		if !maps.Equal(before, fields) {
			t.Error("the fields were changed")
		}
	})
}
