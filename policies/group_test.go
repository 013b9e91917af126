package policies

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestClientPlaces: groups are spelled out, doubles and order mean nothing, and
// unknown is no code (C063, C065, C068).
func TestClientPlaces(t *testing.T) {
	t.Parallel()
	const src = `version: 1
edge:
  access:
    - name: places
      deny: {countries: [us, FR, unknown, US], groups: [eu_members], continents: [SA, AN, SA], asns: [AS64500, unknown, "1.10", 64500]}
    - {name: nowhere, deny: {countries: [unknown], asns: [unknown]}}
`
	p, ds := Parse("policy.yaml", []byte(src), nil)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	c := Compile(p)
	want := ClientSet{
		Countries:  append(Group("eu_members").Countries(), "US"),
		Continents: []Continent{"AN", "SA"}, ASNs: []ASN{64500, 65546}, UnknownCountry: true, UnknownASN: true,
	}
	slices.Sort(want.Countries)
	if diff := cmp.Diff(want, c.Access[0].Clients, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(ClientSet{UnknownCountry: true, UnknownASN: true}, c.Access[1].Clients, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// TestEUMembers: the union and its regions, and not those who are beside it (C065).
func TestEUMembers(t *testing.T) {
	t.Parallel()
	eu := Group("eu_members").Countries()
	for _, in := range []Country{"DE", "GR", "IE", "RE", "GP", "AX"} {
		if !slices.Contains(eu, in) {
			t.Errorf("%s is missing", in)
		}
	}
	for _, out := range []Country{"GB", "CH", "NO", "GL", "NC", "GI", "EU"} {
		if slices.Contains(eu, out) {
			t.Errorf("%s is no member", out)
		}
	}
	if len(eu) != 27+7 || !slices.IsSorted(eu) {
		t.Errorf("%d codes: %v", len(eu), eu)
	}
	for _, code := range eu {
		var c Country
		if err := c.UnmarshalText([]byte(code)); err != nil || c != code {
			t.Errorf("%s is no code: %v", code, err)
		}
	}
}
