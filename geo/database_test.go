package geo

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter/mmdbtype"
	"github.com/oschwald/geoip2-golang/v2"

	"sluice/geo/geotest"
	"sluice/policies"
)

// world is a small country database.
func world(l geotest.Layout) geotest.Networks {
	return geotest.Networks{
		"0.0.0.0/8":       geotest.Country(l, "DE", "EU"), // nobody's
		"5.0.0.0/8":       geotest.Country(l, "DE", "EU"),
		"5.1.0.0/16":      geotest.Country(l, "AT", "EU"),
		"5.1.2.0/24":      geotest.Country(l, "US", "NA"),
		"5.200.0.0/16":    geotest.Country(l, "EU", "EU"), // a region that is no country
		"6.0.0.0/24":      geotest.Country(l, "A1", ""),   // a proxy
		"7.7.7.0/24":      geotest.Country(l, "XK", "EU"),
		"7.7.8.0/24":      geotest.Country(l, "ZZ", ""),
		"10.1.0.0/16":     geotest.Country(l, "DE", "EU"), // private all the same
		"240.0.0.0/4":     geotest.Country(l, "DE", "EU"), // nobody's
		"203.0.113.0/24":  geotest.Country(l, "KP", "AS"),
		"2a00::/16":       geotest.Country(l, "DE", "EU"),
		"2a00:1::/32":     geotest.Country(l, "FR", "EU"),
		"2c00:1:2::/48":   geotest.Country(l, "ZA", "AF"),
		"2a00:1:2:3::/64": geotest.Country(l, "CH", "EU"),
	}
}

func countries(t testing.TB, opt geotest.Options, networks geotest.Networks) *Countries {
	t.Helper()
	c, err := OpenCountries(geotest.Write(t, opt, networks), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCountries: the same world in every layout gives the same answers; what is
// no country, not there or private is so in all of them (C062, C063, C065, C066).
func TestCountries(t *testing.T) {
	t.Parallel()
	for _, opt := range []geotest.Options{{Type: "GeoLite2-Country", Aliases: true}, {Type: "DBIP-Country-Lite"}} {
		for _, l := range []geotest.Layout{geotest.MaxMind, geotest.IPinfo, geotest.IPinfoLite, geotest.Sapics} {
			t.Run(string(l)+" "+opt.Type, func(t *testing.T) {
				t.Parallel()
				c := countries(t, opt, world(l))
				f := func(addr string, country policies.Country, continent policies.Continent) {
					t.Helper()
					if got, want := c.Lookup(netip.MustParseAddr(addr)), (Place{country, continent}); got != want {
						t.Errorf("%s is in %v; want %v", addr, got, want)
					}
				}
				f("5.0.0.1", "DE", "EU")
				f("5.1.0.1", "AT", "EU")
				f("5.1.2.3", "US", "NA")
				f("::ffff:5.1.2.3", "US", "NA")
				f("64:ff9b::5.1.2.3", "US", "NA")
				f("2002:501:203::1", "US", "NA")
				f("7.7.7.7", "XK", "EU")
				f("2a00::1", "DE", "EU")
				f("2a00:1::1", "FR", "EU")
				f("2a00:1:2:3::4", "CH", "EU")
				if l == geotest.Sapics { // the continent of no country
					f("5.200.0.1", "unknown", "unknown")
				} else {
					f("5.200.0.1", "unknown", "EU")
				}
				f("6.0.0.1", "unknown", "unknown")
				f("7.7.8.1", "unknown", "unknown")
				f("8.8.8.8", "unknown", "unknown")
				f("2001:0:501:203::1", "unknown", "unknown") // Teredo names a server
				f("::5.1.2.3", "unknown", "unknown")
				f("::", "unknown", "unknown")
				f("0.1.2.3", "unknown", "unknown")
				f("2002:1:203::", "unknown", "unknown")
				f("255.255.255.255", "unknown", "unknown")
				for _, private := range []string{"10.1.2.3", "127.0.0.1", "192.168.1.5", "169.254.1.1", "fd00::1", "fe80::1%eth0", "::1",
					"100.64.0.9", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "2002:a01:203::1"} {
					f(private, "private", "private")
				}
				f("100.128.0.1", "unknown", "unknown")
				if got := c.Lookup(netip.Addr{}); got != (Place{"private", "private"}) {
					t.Errorf("no address is in %v", got)
				}
			})
		}
	}
}

// TestIPv4Only: a database of IPv4 addresses knows nothing of others, and says so.
func TestIPv4Only(t *testing.T) {
	t.Parallel()
	c := countries(t, geotest.Options{IPv4: true}, geotest.Networks{"5.0.0.0/8": geotest.Country(geotest.MaxMind, "DE", "EU")})
	for addr, want := range map[string]policies.Country{"5.1.1.1": "DE", "::ffff:5.1.1.1": "DE", "2a00::1": "unknown", "fd00::1": "private"} {
		if got := c.Lookup(netip.MustParseAddr(addr)).Country; got != want {
			t.Errorf("%s is in %s; want %s", addr, got, want)
		}
	}
	if table := c.Table(func(policies.Country) bool { return true }, true); table.Entries[0].Value != "DE" || len(table.Entries) != 1+len(PrivateNetworks()) {
		t.Errorf("the table is %v", table)
	}
}

// TestASNs: numbers in each layout; a name such as "unknown" is none (C063, C068).
func TestASNs(t *testing.T) {
	t.Parallel()
	for _, l := range []geotest.Layout{geotest.MaxMind, geotest.IPinfo} {
		a, err := OpenASNs(geotest.Write(t, geotest.Options{Type: "asn", Aliases: true}, geotest.Networks{
			"5.0.0.0/8": geotest.ASN(l, 64500), "5.1.0.0/16": geotest.ASN(l, 4200000001), "5.2.0.0/16": geotest.ASN(l, 0),
		}), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		f := func(addr string, asn policies.ASN, state State) {
			t.Helper()
			if got, s := a.Lookup(netip.MustParseAddr(addr)); got != asn || s != state {
				t.Errorf("%s: %s is %v, %v; want %v, %v", l, addr, got, s, asn, state)
			}
		}
		f("5.0.0.1", 64500, Known)
		f("5.1.0.1", 4200000001, Known)
		f("2002:501:1::", 4200000001, Known)
		f("5.2.0.1", 0, Unknown)
		f("6.0.0.1", 0, Unknown)
		f("100.64.0.1", 0, Private)
	}
}

// TestRefusals: a database that cannot be used is refused in words that say
// what is wrong and what is wanted (C069, C070).
func TestRefusals(t *testing.T) {
	t.Parallel()
	country := geotest.Bytes(t, geotest.Options{Type: "GeoLite2-Country"}, world(geotest.MaxMind))
	asn := geotest.Bytes(t, geotest.Options{Type: "GeoLite2-ASN"}, geotest.Networks{"5.0.0.0/8": geotest.ASN(geotest.MaxMind, 64500)})
	empty := geotest.Bytes(t, geotest.Options{Type: "Nothing"}, geotest.Networks{"5.0.0.0/8": mmdbtype.Map{}})
	dir := t.TempDir()
	openCountries := func(file string, limits Limits) error { _, err := OpenCountries(file, limits); return err }
	openASNs := func(file string, limits Limits) error { _, err := OpenASNs(file, limits); return err }
	f := func(name string, raw []byte, open func(string, Limits) error, limits Limits, want string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if raw != nil {
			if err := os.WriteFile(file, raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		err := open(file, limits)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "want ") || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v; want %q", name, err, want)
		}
	}
	old := Limits{MaxAge: 30 * 24 * time.Hour, Now: geotest.Built().Add(40 * 24 * time.Hour)}
	f("missing.mmdb", nil, openCountries, Limits{}, "no such file")
	f("asn-for-country.mmdb", asn, openCountries, Limits{}, "its records (GeoLite2-ASN) hold no code of a country; want one of the fields country.iso_code, country_code, country")
	f("country-for-asn.mmdb", country, openASNs, Limits{}, "its records (GeoLite2-Country) hold no number of an autonomous system; want one of the fields autonomous_system_number")
	f("empty.mmdb", empty, openCountries, Limits{}, "hold no code")
	f("old.mmdb", country, openCountries, old, "it was built on 2026-08-20, 40 days ago; want one that is at most 30 days old")
	f("old-asn.mmdb", asn, openASNs, old, "40 days ago")
	f("half.mmdb", country[:len(country)/2], openCountries, Limits{}, "want a whole .mmdb file")
	f("none.mmdb", []byte{}, openCountries, Limits{}, "want a whole .mmdb file")
	f("page.mmdb", []byte("<html>404</html>"), openCountries, Limits{}, "want a whole .mmdb file")
	f("list.mmdb", bytes.Repeat([]byte("203.0.113.0/24,DE\n"), 1000), openASNs, Limits{}, "want a whole .mmdb file")
	if err := openCountries(dir, Limits{}); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	fine := filepath.Join(dir, "fine.mmdb")
	if err := os.WriteFile(fine, country, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := openCountries(fine, Limits{MaxAge: 41 * 24 * time.Hour, Now: old.Now}); err != nil {
		t.Errorf("young enough: %v", err)
	}
}

// TestOverwritten: a database that is cut short or replaced in place while it
// is used answers as before (C070).
func TestOverwritten(t *testing.T) {
	t.Parallel()
	file := geotest.Write(t, geotest.Options{}, world(geotest.MaxMind))
	c, err := OpenCountries(file, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, 10); err != nil {
		t.Fatal(err)
	}
	if got := c.Lookup(netip.MustParseAddr("5.1.2.3")); got.Country != "US" {
		t.Errorf("after truncation: %v", got)
	}
	if _, err := OpenCountries(file, Limits{}); err == nil {
		t.Error("a file cut short was read")
	}
}

// TestDamaged: no byte of a database, changed, ends the process.
func TestDamaged(t *testing.T) {
	t.Parallel()
	raw := geotest.Bytes(t, geotest.Options{Type: "GeoLite2-Country"}, world(geotest.MaxMind))
	file := filepath.Join(t.TempDir(), "damaged.mmdb")
	for i := 0; i < len(raw); i += 7 {
		damaged := bytes.Clone(raw)
		damaged[i] ^= 0xff
		if err := os.WriteFile(file, damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := OpenCountries(file, Limits{})
		if err != nil {
			continue
		}
		for _, addr := range []string{"5.1.2.3", "2a00:1:2:3::4", "203.0.113.9"} {
			c.Lookup(netip.MustParseAddr(addr))
		}
	}
}

// TestAgainstGeoIP2: geoip2-golang, which reads only MaxMind's own layout,
// reads the same country out of the same file.
func TestAgainstGeoIP2(t *testing.T) {
	t.Parallel()
	file := geotest.Write(t, geotest.Options{Type: "GeoLite2-Country", Aliases: true}, world(geotest.MaxMind))
	c, err := OpenCountries(file, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	db, err := geoip2.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, s := range []string{"5.0.0.1", "5.1.0.1", "5.1.2.3", "7.7.7.7", "2a00::1", "2a00:1::1", "2c00:1:2::3", "::ffff:5.1.2.3", "2002:501:203::"} {
		addr := netip.MustParseAddr(s)
		record, err := db.Country(addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Lookup(addr); string(got.Country) != record.Country.ISOCode || string(got.Continent) != record.Continent.Code {
			t.Errorf("%s is in %v; geoip2 says %s, %s", s, got, record.Country.ISOCode, record.Continent.Code)
		}
	}
}

// TestContinents: every country of ISO 3166-1 is in one continent.
func TestContinents(t *testing.T) {
	t.Parallel()
	of := ContinentOf()
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			code := string(a) + string(b)
			_, iso := country(code)
			if _, there := of[policies.Country(code)]; there != iso {
				t.Errorf("%s: a country %v, in a continent %v", code, iso, there)
			}
		}
	}
	total := 0
	for _, list := range continents() {
		total += len(strings.Fields(list))
	}
	if total != len(of) {
		t.Errorf("%d countries stand in %d places", len(of), total)
	}
}
