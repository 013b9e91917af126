//go:build !race

package geo

import (
	"net/netip"
	"testing"

	"sluice/geo/geotest"
)

// TestLookupAllocations: a lookup allocates nothing.
func TestLookupAllocations(t *testing.T) {
	c := countries(t, geotest.Options{Aliases: true}, world(geotest.MaxMind))
	for _, s := range []string{"5.1.2.3", "9.9.9.9", "10.1.1.1", "2a00:1:2:3::4", "64:ff9b::501:203", "fe80::1%eth0"} {
		addr := netip.MustParseAddr(s)
		if n := testing.AllocsPerRun(100, func() { c.Lookup(addr) }); n != 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}
