package geo

import (
	"net/netip"
	"testing"

	"sluice/geo/geotest"
	"sluice/policies"
)

// BenchmarkReal: a real country database, opened, looked up and written in
// parts. Compare only within one run.
func BenchmarkReal(b *testing.B) {
	file := geotest.RealCountries(b)
	c, err := OpenCountries(file, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if _, err := OpenCountries(file, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, addr := range []string{"81.2.69.142", "2a02:8100::1", "64:ff9b::5102:458e", "10.0.0.1"} {
		a := netip.MustParseAddr(addr)
		b.Run("lookup "+addr, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Lookup(a)
			}
		})
	}
	every := func(policies.Country) bool { return true }
	for _, t := range []struct {
		name    string
		wanted  func(policies.Country) bool
		unknown bool
	}{
		{"KP SY", named("KP", "SY"), false},
		{"DE AT CH", named("DE", "AT", "CH"), false},
		{"eu_members", named(policies.Group("eu_members").Countries()...), false},
		{"eu_members unknown", named(policies.Group("eu_members").Countries()...), true},
		{"each", every, true},
	} {
		b.Run("table "+t.name, func(b *testing.B) {
			prefixes := 0
			for b.Loop() {
				prefixes = len(c.Table(t.wanted, t.unknown).Entries)
			}
			b.ReportMetric(float64(prefixes), "prefixes")
		})
	}
}
