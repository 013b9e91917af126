package gen

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/gen/gentest"
	"sluice/geo"
	"sluice/geo/geotest"
)

// large is a policy of a thousand routes and five hundred access rules.
func large() string {
	codes := slices.Sorted(maps.Keys(geo.ContinentOf()))
	var s strings.Builder
	s.WriteString("version: 1\nedge:\n  access:\n")
	for i := range 500 {
		if i%2 == 0 {
			fmt.Fprintf(&s, "    - {name: c%d, deny: {countries: [%s]}, routes: [r%d, r%d], status: 451}\n", i, codes[i%len(codes)], i, i+500)
		} else {
			fmt.Fprintf(&s, "    - {name: a%d, deny: {asns: [%d], cidrs: [10.%d.%d.0/24]}, routes: [r%d]}\n", i, 64000+i, i/200, i%200, i)
		}
	}
	s.WriteString("  limits: {land: {per: [ip, country], rate: 10/s, burst: 20}}\nroutes:\n")
	for i := range 1000 {
		fmt.Fprintf(&s, "  - {name: r%d, match: {prefix: /v%d/%d}}\n", i, i%7, i)
	}
	return s.String()
}

// TestGeoLarge: NGINX takes a large policy with both databases, and each
// rendering is the same (C040).
func TestGeoLarge(t *testing.T) {
	t.Parallel()
	c := compiled(t, large())
	opt := Options{Geo: smallWorld(t, geotest.MaxMind), Full: true}
	first, err := Render(c, opt)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		again, err := Render(c, opt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatal(diff)
		}
	}
	if err := Check(t.Context(), gentest.Binary(t), first); err != nil {
		t.Error(err)
	}
}

// BenchmarkGeoLarge renders the large policy with a real country database, all
// of it, and lets nginx -t read the result in the same run.
func BenchmarkGeoLarge(b *testing.B) {
	countries, err := geo.OpenCountries(geotest.RealCountries(b), geo.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	c := compiled(b, large())
	opt := Options{Geo: geo.Tables{Countries: countries, ASNs: smallWorld(b, geotest.MaxMind).ASNs}, Full: true}
	var render, check time.Duration
	for b.Loop() {
		began := time.Now()
		files, err := Render(c, opt)
		if err != nil {
			b.Fatal(err)
		}
		render += time.Since(began)
		began = time.Now()
		dir := b.TempDir()
		gentest.WriteFiles(b, dir, files)
		if err := gentest.Test(b.Context(), b, dir, "nginx.conf"); err != nil {
			b.Fatal(err)
		}
		check += time.Since(began)
	}
	b.ReportMetric(float64(render.Milliseconds())/float64(b.N), "ms-render")
	b.ReportMetric(float64(check.Milliseconds())/float64(b.N), "ms-nginx-t")
}
