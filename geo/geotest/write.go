package geotest

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// Built is when the databases of tests say that they were built.
func Built() time.Time { return time.Date(2026, 8, 20, 0, 0, 0, 0, time.UTC) }

// Networks are the records of a database, by network. A longer network is laid
// over a shorter one, whatever the order.
type Networks map[string]mmdbtype.DataType

// Options are how a database is written.
type Options struct {
	Type    string // its database_type
	IPv4    bool   // a tree of IPv4 addresses only
	Aliases bool   // mapped and 6to4 addresses lead to the IPv4 part, as MaxMind does it
}

// Write writes a database into a directory of the test and returns its path.
func Write(t testing.TB, opt Options, networks Networks) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.mmdb")
	if err := os.WriteFile(file, Bytes(t, opt, networks), 0o644); err != nil {
		t.Fatalf("cannot write a database: %v", err)
	}
	return file
}

// Bytes is a database as it stands in a file.
func Bytes(t testing.TB, opt Options, networks Networks) []byte {
	t.Helper()
	version := 6
	if opt.IPv4 {
		version = 4
	}
	tree, err := mmdbwriter.New(mmdbwriter.Options{
		DatabaseType: opt.Type, BuildEpoch: Built().Unix(), IPVersion: version,
		DisableIPv4Aliasing: !opt.Aliases, IncludeReservedNetworks: true, RecordSize: 24,
	})
	if err != nil {
		t.Fatalf("cannot begin a database: %v", err)
	}
	for _, p := range sorted(t, networks) {
		ip := p.Addr().AsSlice()
		if err := tree.Insert(&net.IPNet{IP: ip, Mask: net.CIDRMask(p.Bits(), len(ip)*8)}, networks[p.String()]); err != nil {
			t.Fatalf("cannot insert %s: %v", p, err)
		}
	}
	var buf bytes.Buffer
	if _, err := tree.WriteTo(&buf); err != nil {
		t.Fatalf("cannot write a database: %v", err)
	}
	return buf.Bytes()
}

// sorted are the networks, the shortest first.
func sorted(t testing.TB, networks Networks) []netip.Prefix {
	t.Helper()
	var out []netip.Prefix
	for _, name := range slices.Sorted(maps.Keys(networks)) {
		p, err := netip.ParsePrefix(name)
		if err != nil || p.String() != name {
			t.Fatalf("cannot use network %q as it is written", name)
		}
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
	return out
}

// Layout is the shape of the records of a database.
type Layout string

// The layouts of databases that people have.
const (
	MaxMind    Layout = "GeoLite2"       // GeoIP2 and DB-IP too
	IPinfo     Layout = "ipinfo country" // country and continent are codes, asn is AS64500
	IPinfoLite Layout = "ipinfo lite"    // the same are names, beside them codes
	Sapics     Layout = "ip-location-db" // country_code alone
)

// Country is a record of a country database; an empty continent is left out.
func Country(l Layout, country, continent string) mmdbtype.DataType {
	record := mmdbtype.Map{}
	add := func(key mmdbtype.String, value mmdbtype.DataType, there bool) {
		if there {
			record[key] = value
		}
	}
	c, k := mmdbtype.String(country), mmdbtype.String(continent)
	switch l {
	case IPinfo:
		add("country", c, country != "")
		add("continent", k, continent != "")
		record["country_name"] = mmdbtype.String("Somewhere")
	case IPinfoLite:
		add("country_code", c, country != "")
		add("continent_code", k, continent != "")
		record["country"], record["continent"] = mmdbtype.String("Somewhere"), mmdbtype.String("Some continent")
	case Sapics:
		add("country_code", c, country != "")
	default:
		names := mmdbtype.Map{"en": mmdbtype.String("Land of " + country)}
		add("country", mmdbtype.Map{"iso_code": c, "geoname_id": mmdbtype.Uint32(len(country)), "names": names}, country != "")
		add("continent", mmdbtype.Map{"code": k}, continent != "")
		record["registered_country"] = mmdbtype.Map{"iso_code": mmdbtype.String("US")}
	}
	return record
}

// ASN is a record of a database of autonomous systems.
func ASN(l Layout, asn uint32) mmdbtype.DataType {
	if l == IPinfo || l == IPinfoLite {
		return mmdbtype.Map{"asn": mmdbtype.String(fmt.Sprintf("AS%d", asn)), "name": mmdbtype.String("unknown")}
	}
	return mmdbtype.Map{"autonomous_system_number": mmdbtype.Uint32(asn), "autonomous_system_organization": mmdbtype.String("unknown")}
}
