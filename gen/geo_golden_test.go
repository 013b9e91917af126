package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sluice/geo/geotest"
)

// TestGoldenGeo: what is rendered of places, by the mode that the first word of
// a case names: the section of http.conf, and the files that it includes.
func TestGoldenGeo(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/geo/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("cannot find the golden files: %v", err)
	}
	for _, name := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			tables := smallWorld(t, geotest.MaxMind)
			tables.Countries.File, tables.ASNs.File = "/var/lib/geo/country.mmdb", "/var/lib/geo/asn.mmdb"
			files, err := Render(compiled(t, string(archive.Files[0].Data)), Options{
				Version: "v0", Geo: tables, GeoModule: strings.HasPrefix(string(archive.Comment), "module"),
			})
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(string(files["sluice/http.conf"]), "# ---- Where clients are\n")
			for _, end := range []string{"# ---- Edge limits", "# ---- The service", "# For sluice/app.conf"} {
				rest, _, _ = strings.Cut(rest, end)
			}
			got := &txtar.Archive{Comment: archive.Comment, Files: []txtar.File{archive.Files[0], {Name: "http.conf", Data: []byte(rest)}}}
			for _, n := range files.Names() {
				if strings.HasPrefix(n, "sluice/geo_") {
					got.Files = append(got.Files, txtar.File{Name: n, Data: files[n]})
				}
			}
			if *update {
				if err := os.WriteFile(name, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(got))); diff != "" {
				t.Errorf("-update writes it anew\n%s", diff)
			}
		})
	}
}
