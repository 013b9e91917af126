package gen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/gen/gentest"
	"sluice/geo"
	"sluice/geo/geotest"
)

// TestGeoAgree: thousands of addresses are asked of the raw database, the Go
// lookup and a real NGINX in both modes, and all answer alike: IPv4, IPv6 and
// IPv4 in every form of IPv6 (C062, C063, C064, C065).
func TestGeoAgree(t *testing.T) {
	t.Parallel()
	needModule(t)
	const policy = "version: 1\n" + believed + `edge:
  access: [{name: continents, deny: {continents: [AF, AN, AS, EU, NA, OC, SA]}, mode: shadow}]
  limits:
    land: {per: country, rate: 100000/s, burst: 100000}
    net: {per: [ip, asn], rate: 100000/s, burst: 100000}
`
	for i, opt := range []struct {
		geotest.Options
		geotest.Layout
	}{
		{geotest.Options{Type: "GeoLite2-Country", Aliases: true}, geotest.MaxMind},
		{geotest.Options{Type: "DBIP-Country-Lite"}, geotest.MaxMind},
		{geotest.Options{Type: "ipinfo country_asn.mmdb"}, geotest.IPinfo},
		{geotest.Options{Type: "ip-location-db"}, geotest.Sapics},
	} {
		t.Run(opt.Type, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, uint64(i)))
			countries, asns := randomWorld(r, opt.Layout)
			tables := databases(t, opt.Options, countries, asns)
			stacks := []*stack{startGeo(t, policy, tables, false), startGeo(t, policy, tables, true)}
			raw := rawDatabase(t, tables.Countries.File)
			for range 1500 {
				addr := randomAddr(r)
				place := tables.Countries.Lookup(addr)
				asn, state := tables.ASNs.Lookup(addr)
				number := strconv.FormatUint(uint64(asn), 10)
				if state != geo.Known {
					number = state.String()
				}
				want := fmt.Sprintf(" country=%s continent=%s asn=%s", place.Country, place.Continent, number)
				for mode, s := range stacks {
					if mode == 0 { // of continents nobody asks for the unknown
						want = strings.Replace(want, "continent=unknown", "continent=other", 1)
					} else {
						want = strings.Replace(want, "continent=other", "continent=unknown", 1)
					}
					if got := s.get("/where", "X-Forwarded-For", addr.String()).body; !strings.HasSuffix(got, want) {
						t.Fatalf("%s: nginx (module %v) says %q, Go %q", addr, mode == 1, got, want)
					}
				}
				if opt.Layout != geotest.MaxMind || !addr.Is4() {
					continue
				}
				if code := raw(addr); string(place.Country) != "private" && code != string(place.Country) &&
					(place.Country != "unknown" || !strings.Contains(" EU A1 ZZ ", " "+code+" ")) {
					t.Fatalf("%s: the database says %q, Go %s", addr, code, place.Country)
				}
			}
			for _, s := range stacks {
				s.noWarnings()
			}
		})
	}
}

// siteFile reads one of the sites of policies/testdata.
func siteFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../policies/testdata/sites/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGeoSites: what three real sites say of countries is done.
func TestGeoSites(t *testing.T) {
	t.Parallel()
	from := func(t *testing.T, s *stack, path, addr, host string, want int) {
		t.Helper()
		if got := s.get(path, "X-Forwarded-For", addr, "Host", host).status; got != want {
			t.Errorf("%s for %s%s: %d; want %d", addr, host, path, got, want)
		}
	}
	// Zero is a connection that was closed without an answer: 444.
	t.Run("country-allow", func(t *testing.T) {
		t.Parallel()
		policy := strings.Replace(siteFile(t, "country-allow.yaml"), "edge:", believed+"edge:", 1)
		bothModes(t, policy, func(t *testing.T, s *stack) {
			from(t, s, "/", "192.168.1.5", "nas.example", 200)
			from(t, s, "/", "127.0.0.1", "nas.example", 200)
			from(t, s, "/", "9.0.1.1", "nas.example", 200)
			from(t, s, "/", "5.0.0.1", "nas.example", 0)
			from(t, s, "/", "10.9.0.1", "other.example", 200)
			from(t, s, "/", "5.0.0.1", "other.example", 200)
			from(t, s, "/", "5.1.0.1", "other.example", 200)
			from(t, s, "/", "2a00::1", "other.example", 200)
			from(t, s, "/", "64:ff9b::500:1", "other.example", 200)
			from(t, s, "/", "5.1.2.3", "other.example", 0)
			from(t, s, "/", "9.0.1.1", "other.example", 0)
			from(t, s, "/", "8.8.8.8", "other.example", 0)
			from(t, s, "/", "100.64.0.9", "other.example", 0)
			from(t, s, "/.well-known/acme-challenge/x", "8.8.8.8", "other.example", 200)
		})
	})
	t.Run("country-fixed", func(t *testing.T) {
		t.Parallel()
		policy := strings.Replace(siteFile(t, "country-fixed.yaml"), "10.20.0.0/16", "127.0.0.1", 1)
		bothModes(t, policy, func(t *testing.T, s *stack) {
			from(t, s, "/", "14.1.1.1", "a.example", 200)
			from(t, s, "/", "8.8.8.8", "a.example", 200)
			from(t, s, "/", "5.3.0.1", "a.example", 200) // "EU" is no country
			from(t, s, "/", "5.4.0.1", "a.example", 200) // "A1" neither
			from(t, s, "/", "192.168.1.5", "a.example", 200)
			from(t, s, "/", "fd00::1", "a.example", 200)
			from(t, s, "/", "5.0.0.1", "a.example", 403)
			from(t, s, "/", "100.64.0.9", "a.example", 403) // neither private in a list of cidrs nor unknown
			// Two hops: the last that is not trusted is the client, not the first (C064).
			from(t, s, "/", "14.1.1.1, 5.0.0.1", "a.example", 403)
			from(t, s, "/", "5.0.0.1, 14.1.1.1", "a.example", 200)
		})
	})
	t.Run("cloudflare", func(t *testing.T) {
		t.Parallel()
		policy := strings.NewReplacer("{file: lists/cloudflare.txt}", "127.0.0.1", "CF-Connecting-IP", "X-Forwarded-For").Replace(siteFile(t, "cloudflare.yaml"))
		bothModes(t, policy, func(t *testing.T, s *stack) {
			from(t, s, "/", "175.45.176.9", "a.example", 451)
			from(t, s, "/", "2a00:9::1", "a.example", 451)
			from(t, s, "/", "::ffff:175.45.176.9", "a.example", 451)
			from(t, s, "/", "5.0.0.1", "a.example", 200)
			from(t, s, "/", "8.8.8.8", "a.example", 200)
			from(t, s, "/", "10.9.0.1", "a.example", 200) // private, whatever the database says
		})
	})
}

// TestGeoRules: countries, continents, groups, networks and `unknown`, alone
// and beside other lists, in access rules and in only and except (C071).
func TestGeoRules(t *testing.T) {
	t.Parallel()
	const policy = "version: 1\n" + believed + `edge:
  access:
    - {name: office, allow: {cidrs: [5.1.2.128/25]}}
    - {name: hosting, deny: {asns: [AS64501, 65546], user_agents: [bad]}, status: 410}
    - {name: abroad, deny: {continents: [NA], countries: [CN]}, status: 451}
    - {name: nowhere, deny: {countries: [unknown]}, routes: [strict], status: 404}
    - {name: noasn, deny: {asns: [unknown]}, routes: [asn], status: 405}
    - {name: union, deny: {groups: [eu_members]}, routes: [union], status: 406}
  limits:
    germans: {per: ip, rate: 1/m, burst: 1, routes: [limited], only: {countries: [DE]}, except: {asns: [4200000001]}}
    each: {per: country, rate: 1/m, burst: 1, routes: [country]}
    systems: {per: asn, rate: 1/m, burst: 1, routes: [system]}
routes:
  - {name: strict, match: {prefix: /strict}}
  - {name: asn, match: {prefix: /asn}}
  - {name: union, match: {prefix: /union}}
  - {name: limited, match: {prefix: /limited}}
  - {name: country, match: {prefix: /country}}
  - {name: system, match: {prefix: /system}}
  - {name: all, match: {prefix: /}}
`
	bothModes(t, policy, func(t *testing.T, s *stack) {
		f := func(path, addr string, want ...int) {
			t.Helper()
			if diff := cmp.Diff(want, s.statuses(len(want), path, "X-Forwarded-For", addr)); diff != "" {
				t.Errorf("%s at %s: %s", addr, path, diff)
			}
		}
		f("/", "5.1.2.3", 451)
		f("/", "5.1.2.200", 200) // the network is before the continent
		f("/", "14.0.0.1", 451)
		f("/", "2a00::1", 410)
		f("/", "5.0.0.1", 200)
		f("/strict", "8.8.8.8", 404)
		f("/strict", "5.3.0.1", 404)
		f("/strict", "5.0.0.1", 200)
		f("/strict", "10.0.0.1", 200)
		f("/strict", "100.64.0.1", 200)
		f("/asn", "9.0.0.1", 405)
		f("/asn", "5.0.0.1", 200)
		f("/asn", "192.168.0.1", 200)
		f("/union", "5.1.0.1", 406)
		f("/union", "9.0.0.1", 406)
		f("/union", "175.45.176.1", 200)
		f("/union", "5.3.0.1", 200)
		f("/limited", "5.0.0.1", 200, 429)
		f("/limited", "9.0.0.1", 200, 200)
		f("/country", "5.0.0.1", 200, 429)
		f("/country", "5.77.0.1", 429)
		f("/country", "9.0.0.1", 200)
		f("/country", "8.8.8.8", 200)
		f("/country", "8.8.4.4", 429)
		f("/country", "10.0.0.1", 200)
		f("/country", "192.168.0.1", 429)
		f("/system", "5.0.0.1", 200, 429)
		f("/system", "5.1.0.1", 200, 429)
		f("/system", "9.0.0.1", 200)
	})
}

// TestGeoMissing: what a policy asks for and no database says is one clear error.
func TestGeoMissing(t *testing.T) {
	t.Parallel()
	all := smallWorld(t, geotest.MaxMind)
	f := func(want, rest string, tables geo.Tables) {
		t.Helper()
		_, err := Render(compiled(t, "version: 1\nedge: {"+rest+"}\n"), Options{Geo: tables})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", rest, err, want)
		}
	}
	const countries, asns = "access: [{name: a, deny: {countries: [KP]}}]", "access: [{name: a, deny: {asns: [AS1]}}]"
	f("--country-db", countries, geo.Tables{})
	f("--country-db", countries, geo.Tables{ASNs: all.ASNs})
	f("--country-db", "access: [{name: a, deny: {continents: [AN]}}]", geo.Tables{})
	f("--country-db", "access: [{name: a, deny: {groups: [eu_members]}}]", geo.Tables{})
	f("--country-db", "limits: {a: {per: country, rate: 1/s, burst: 1}}", geo.Tables{})
	f("--asn-db", asns, geo.Tables{Countries: all.Countries})
	f("--asn-db", "limits: {a: {per: ip, rate: 1/s, burst: 1, except: {asns: [unknown]}}}", geo.Tables{})
	f("", countries, geo.Tables{Countries: all.Countries})
	f("", asns, geo.Tables{ASNs: all.ASNs})
	f("", "access: [{name: a, deny: {cidrs: [private]}}]", geo.Tables{})
}

// TestGeoSame: the same database and policy give the same bytes, and only what
// the policy names is in them (C040).
func TestGeoSame(t *testing.T) {
	t.Parallel()
	tables := smallWorld(t, geotest.MaxMind)
	c := compiled(t, "version: 1\nedge: {access: [{name: a, deny: {countries: [KP, DE], asns: [64500]}}]}\n")
	var first Files
	for i := range 100 {
		files, err := Render(c, Options{Geo: tables})
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = files
		}
		if diff := cmp.Diff(first, files); diff != "" {
			t.Fatalf("run %d: %s", i, diff)
		}
	}
	for _, absent := range []string{"CN", "BE", "unknown"} {
		if bytes.Contains(first["sluice/geo_country.conf"], []byte(absent)) {
			t.Errorf("%s is in the file:\n%s", absent, first["sluice/geo_country.conf"])
		}
	}
	if first["sluice/geo_continent.conf"] != nil {
		t.Error("there is a file of continents")
	}
	if err := Check(t.Context(), gentest.Binary(t), first); err != nil {
		t.Error(err)
	}
}
