package gen

import (
	"path/filepath"
	"testing"

	"sluice/gen/gentest"
	"sluice/geo/geotest"
	"sluice/policies"
)

// TestSites renders the policies of real sites and lets NGINX read the files.
func TestSites(t *testing.T) {
	t.Parallel()
	nginx := gentest.Binary(t)
	sites, err := filepath.Glob("../policies/testdata/sites/*.yaml")
	if err != nil || len(sites) == 0 {
		t.Fatalf("cannot find the sites: %v", err)
	}
	for _, site := range append(sites, "../policies/testdata/example/policy.yaml") {
		t.Run(filepath.Base(site), func(t *testing.T) {
			p, ds := policies.Load(site)
			if ds.HasErrors() {
				t.Fatal(ds)
			}
			files, err := Render(policies.Compile(p), Options{Version: "test", Full: true, Geo: smallWorld(t, geotest.MaxMind)})
			if err != nil {
				t.Fatal(err)
			}
			if err := Check(t.Context(), nginx, files); err != nil {
				t.Error(err)
			}
		})
	}
}
