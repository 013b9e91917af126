package authz

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"sluice/authz/limit"
	"sluice/geo"
	"sluice/geo/geotest"
	"sluice/policies"
)

const placedPolicy = `limits:
  spray: {per: asn, window: 3/1h, count: requests}
  land: {per: [country, route], rate: 1/h, burst: 100}
`

// world is a small pair of databases.
func world(t testing.TB, asn uint32) geo.Tables {
	t.Helper()
	countries, err := geo.OpenCountries(geotest.Write(t, geotest.Options{Type: "GeoLite2-Country"}, geotest.Networks{
		"9.0.0.0/8": geotest.Country(geotest.MaxMind, "DE", "EU"), "2a00::/16": geotest.Country(geotest.MaxMind, "AT", "EU"),
	}), geo.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	asns, err := geo.OpenASNs(geotest.Write(t, geotest.Options{Type: "GeoLite2-ASN"}, geotest.Networks{
		"9.0.0.0/8": geotest.ASN(geotest.MaxMind, asn), "2a00::/16": geotest.ASN(geotest.MaxMind, 64501),
	}), geo.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return geo.Tables{Countries: countries, ASNs: asns}
}

// placedSite is a site with databases.
func placedSite(t testing.TB, policy string) *site {
	t.Helper()
	s := newSite(t, "")
	if err := s.engine.Locate(PlacesOf(world(t, 64500))); err != nil {
		t.Fatal(err)
	}
	s.swap(policy)
	return s
}

// Whoever comes from one network, or one country, has one counter; so have all
// whose place is unknown, and all in private networks.
func TestPlaces(t *testing.T) {
	t.Parallel()
	s := placedSite(t, placedPolicy)
	f := func(addr, country, asn string) {
		t.Helper()
		want := "sluice:{country=" + country + ",route=all}:land:country=" + country + ",route=all sluice:{asn=" + asn + "}:spray:asn=" + asn
		if got := keysOf(s, "all", ip(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	f("9.1.2.3", "DE", "64500")
	f("::ffff:9.1.2.3", "DE", "64500")
	f("64:ff9b::9.1.2.3", "DE", "64500")
	f("2a00:1::1", "AT", "64501")
	f("8.8.8.8", "unknown", "unknown")
	f("192.168.1.1", "private", "private")
	f("fe80::1%eth0", "private", "private")
	f("unix:", "private", "private")
	// Three addresses of a network have taken part; the window is full.
	if got := s.passes(5, "all", ip("9.200.0.1")); got != 0 {
		t.Errorf("%d more of the network passed, want 0", got)
	}
	if got := s.passes(5, "all", ip("2a00:2::1")); got != 2 {
		t.Errorf("%d of another network passed, want 2", got)
	}
}

// A policy that counts by place needs a database, and what is in force is never
// taken away from it.
func TestPlacesAreNeeded(t *testing.T) {
	t.Parallel()
	e := New(limit.NewMemory(limit.MemoryOptions{}), Options{})
	c := compile(t, placedPolicy)
	refused := func(what string, err error, want string) {
		t.Helper()
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	const noCountry = `limit "land" counts by country, and no database says where clients are; want --country-db FILE`
	const noASN = `limit "spray" counts by autonomous system, and no database says where clients are; want --asn-db FILE`
	both := world(t, 64500)
	refused("without any", e.Swap(c), noCountry)
	if err := e.Locate(PlacesOf(geo.Tables{Countries: both.Countries})); err != nil {
		t.Fatal(err)
	}
	refused("without networks", e.Swap(c), noASN)
	if err := e.Locate(PlacesOf(both)); err != nil {
		t.Fatal(err)
	}
	if err := e.Swap(c); err != nil {
		t.Fatal(err)
	}
	refused("taken away", e.Locate(Places{}), noCountry)
	if e.Policy() != c {
		t.Error("the policy is not in force")
	}
	for _, in := range []string{"plans: {p: {limits: {l: {per: country, rate: 1/s, burst: 1}}}}\nidentity: {sources: [{api_key: {header: X-Key}}], missing: {plan: p}}\n",
		"routes: [{name: r, match: {prefix: /}, limits: {l: {per: [ip, asn], rate: 1/s, burst: 1}}}]\n"} {
		if err := New(limit.NewMemory(limit.MemoryOptions{}), Options{}).Swap(compile(t, in)); err == nil || !strings.Contains(err.Error(), `limit "l" counts by`) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// Another database is in force at once.
func TestPlacesChange(t *testing.T) {
	t.Parallel()
	s := placedSite(t, placedPolicy)
	if err := s.engine.Locate(PlacesOf(world(t, 65000))); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(s, "all", ip("9.1.2.3")); !strings.Contains(got, "asn=65000") {
		t.Errorf("after another database: %s", got)
	}
	if err := s.engine.Locate(Places{
		Country: func(netip.Addr) policies.Country { return "FR" },
		ASN:     func(netip.Addr) (policies.ASN, geo.State) { return 4_294_967_295, geo.Known },
	}); err != nil {
		t.Fatal(err)
	}
	if got := keysOf(s, "all", ip("9.1.2.3")); !strings.Contains(got, "{asn=4294967295}") || !strings.Contains(got, "country=FR") {
		t.Errorf("by functions: %s", got)
	}
}

// Of counters by country nobody keeps a list: usage says which it cannot see.
func TestPlacesAreUnseen(t *testing.T) {
	t.Parallel()
	s := placedSite(t, `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {deny: 401}}
plans: {free: {limits: {land: {per: country, rate: 1/h, burst: 5}, net: {per: [tenant, asn], rate: 1/h, burst: 5}, all: {per: tenant, rate: 1/h, burst: 5}}}}
tenants: [{id: acme, plan: free, keys: [{id: web, sha256: hash(sk_web)}]}]
`)
	u, known, err := s.engine.Usage(context.Background(), TenantRef{ID: "acme"}, Who{})
	if !known || err != nil || len(u.Counters) != 1 || len(u.Unseen) != 2 {
		t.Errorf("%+v, %t, %v", u, known, err)
	}
}
