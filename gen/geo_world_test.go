package gen

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/oschwald/maxminddb-golang/v2"

	"sluice/gen/gentest"
	"sluice/geo"
	"sluice/geo/geotest"
)

const geoip2File = "/usr/lib/nginx/modules/ngx_http_geoip2_module.so"

// needModule skips a test where nginx has no geoip2 module; in CI it fails.
func needModule(t testing.TB) {
	t.Helper()
	gentest.Binary(t)
	if _, err := os.Stat(geoip2File); err == nil {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("CI must have the geoip2 module of nginx")
	}
	t.Skip("nginx has no geoip2 module")
}

// databases writes a country and an ASN database and opens them.
func databases(t testing.TB, opt geotest.Options, countries, asns geotest.Networks) geo.Tables {
	t.Helper()
	c, err := geo.OpenCountries(geotest.Write(t, opt, countries), geo.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := geo.OpenASNs(geotest.Write(t, opt, asns), geo.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return geo.Tables{Countries: c, ASNs: a}
}

// smallWorld is a few networks in a layout.
func smallWorld(t testing.TB, l geotest.Layout) geo.Tables {
	t.Helper()
	return databases(t, geotest.Options{Type: "GeoLite2-Country", Aliases: true}, geotest.Networks{
		"5.0.0.0/8":       geotest.Country(l, "DE", "EU"),
		"5.1.0.0/16":      geotest.Country(l, "AT", "EU"),
		"5.1.2.0/24":      geotest.Country(l, "US", "NA"),
		"5.3.0.0/16":      geotest.Country(l, "EU", "EU"),
		"5.4.0.0/16":      geotest.Country(l, "A1", ""),
		"9.0.0.0/16":      geotest.Country(l, "BE", "EU"),
		"14.0.0.0/8":      geotest.Country(l, "CN", "AS"),
		"10.9.0.0/16":     geotest.Country(l, "KP", "AS"),
		"175.45.176.0/22": geotest.Country(l, "KP", "AS"),
		"2a00::/16":       geotest.Country(l, "DE", "EU"),
		"2a00:9::/32":     geotest.Country(l, "KP", "AS"),
	}, geotest.Networks{
		"5.0.0.0/8":  geotest.ASN(l, 64500),
		"5.1.0.0/16": geotest.ASN(l, 4200000001),
		"2a00::/16":  geotest.ASN(l, 64501),
	})
}

// startGeo runs a policy with databases, on a whole nginx.conf whose client is
// whom X-Forwarded-For names, and which says at /where what it knows of him.
func startGeo(t testing.TB, policy string, tables geo.Tables, module bool) *stack {
	t.Helper()
	gentest.Binary(t)
	s := &stack{t: t, authz: gentest.StartAuthz(t), app: gentest.StartApp(t), addr: gentest.FreePort(t)}
	opt := Options{Version: "test", CacheDir: gentest.CacheDir(t), Full: true, Listen: []string{s.addr}, Authz: []string{s.authz.Addr}, Upstreams: []string{s.app.Addr},
		Geo: tables, GeoModule: module}
	if module {
		needModule(t)
		opt.GeoModuleFile = geoip2File
	}
	files, err := Render(compiled(t, policy), opt)
	if err != nil {
		t.Fatal(err)
	}
	where := "$remote_addr"
	for _, v := range []string{"country", "continent", "asn"} {
		if bytes.Contains(files["sluice/http.conf"], []byte(" $sluice_"+v+" {")) {
			where += " " + v + "=$sluice_" + v
		}
	}
	files["nginx.conf"] = bytes.ReplaceAll(files["nginx.conf"], []byte("include sluice/server.conf;"),
		[]byte("include sluice/server.conf;\nlocation = /where { default_type text/plain; return 200 \""+where+"\"; }\n"))
	s.files = files
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, files)
	s.nginx = gentest.Start(t, dir, "nginx.conf", s.addr)
	return s
}

// randomWorld is a database of a few hundred networks that nest and touch.
func randomWorld(r *rand.Rand, l geotest.Layout) (countries, asns geotest.Networks) {
	countries, asns = geotest.Networks{"5.0.0.0/8": geotest.Country(l, "DE", "EU")}, geotest.Networks{"5.0.0.0/8": geotest.ASN(l, 7)}
	codes := []string{"DE EU", "AT EU", "CH EU", "FR EU", "US NA", "CN AS", "ZA AF", "EU EU", "A1 ", "ZZ ", " OC", "XK EU"}
	for range 400 {
		code, continent, _ := strings.Cut(codes[r.IntN(len(codes))], " ")
		countries[randomNetwork(r)] = geotest.Country(l, code, continent)
		asns[randomNetwork(r)] = geotest.ASN(l, []uint32{0, 7, 64500, 64501, 65546, 4200000001, 4294967295}[r.IntN(7)])
	}
	return countries, asns
}

func randomNetwork(r *rand.Rand) string {
	if r.IntN(2) == 0 {
		b := [16]byte{0x2a, 0, byte(r.IntN(4)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256))}
		p, _ := netip.AddrFrom16(b).Prefix(12 + r.IntN(37))
		return p.String()
	}
	b := [4]byte{[]byte{5, 6, 10, 100, 203}[r.IntN(5)], byte(r.IntN(256)), byte(r.IntN(4)), byte(r.IntN(256))}
	p, _ := netip.AddrFrom4(b).Prefix(8 + r.IntN(24))
	return p.String()
}

// randomAddr is an address in or near the random world, in any of its forms.
func randomAddr(r *rand.Rand) netip.Addr {
	if r.IntN(3) == 0 {
		return netip.AddrFrom16([16]byte{0x2a, 0, byte(r.IntN(5)), byte(r.IntN(256)), byte(r.IntN(256)), byte(r.IntN(256)), 15: byte(r.IntN(256))})
	}
	four := [4]byte{[]byte{5, 6, 10, 100, 203, 192, 1}[r.IntN(7)], byte(r.IntN(256)), byte(r.IntN(4)), byte(r.IntN(256))}
	if r.IntN(5) == 0 {
		four[r.IntN(4)] = 0 // what is left out when it is written
	}
	out := [16]byte{}
	at := 12
	switch r.IntN(12) {
	case 0:
		out[10], out[11] = 0xff, 0xff
	case 1:
		copy(out[:], []byte{0, 0x64, 0xff, 0x9b})
	case 2:
		copy(out[:], []byte{0x20, 2})
		at, out[15] = 2, byte(r.IntN(3))
		out[7] = byte(r.IntN(2))
	case 3: // Teredo
		copy(out[:], []byte{0x20, 1})
		at, out[15] = 4, byte(r.IntN(3))
	case 4: // IPv4-compatible
	default:
		return netip.AddrFrom4(four)
	}
	copy(out[at:], four[:])
	return netip.AddrFrom16(out)
}

// rawDatabase looks countries up without anything of ours.
func rawDatabase(t testing.TB, file string) func(netip.Addr) string {
	t.Helper()
	db, err := maxminddb.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return func(addr netip.Addr) string {
		var record struct {
			Country struct {
				Code string `maxminddb:"iso_code"`
			} `maxminddb:"country"`
		}
		if err := db.Lookup(addr).Decode(&record); err != nil {
			t.Fatal(err)
		}
		if record.Country.Code == "" {
			return "unknown"
		}
		return record.Country.Code
	}
}

// bothModes runs a test on compiled tables and on the module.
func bothModes(t *testing.T, policy string, f func(t *testing.T, s *stack)) {
	t.Helper()
	for _, module := range []bool{false, true} {
		t.Run(fmt.Sprintf("module=%v", module), func(t *testing.T) {
			t.Parallel()
			s := startGeo(t, policy, smallWorld(t, geotest.MaxMind), module)
			f(t, s)
			s.noWarnings()
		})
	}
}

const believed = "client_ip: {trusted_proxies: [127.0.0.1], header: X-Forwarded-For}\n"
