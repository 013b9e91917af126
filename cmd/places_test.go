package cmd

import (
	"bytes"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/authz"
	"sluice/authz/limit"
	"sluice/geo/geotest"
)

// A database that changes is read again, one that is not good leaves the one
// before, and one that has not changed is not read.
func TestPlaceFiles(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	file := filepath.Join(t.TempDir(), "country.mmdb")
	put := func(country string) {
		t.Helper()
		db := []byte(country)
		if len(country) == 2 {
			db = geotest.Bytes(t, geotest.Options{Type: "GeoLite2-Country"}, geotest.Networks{"9.0.0.0/8": geotest.Country(geotest.MaxMind, country, "EU")})
		}
		next := file + ".new"
		if err := os.WriteFile(next, db, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, file); err != nil {
			t.Fatal(err)
		}
	}
	put("DE")
	f := &placeFiles{countries: file, log: slog.New(slog.NewTextHandler(&log, nil))}
	places, err := f.open()
	if err != nil {
		t.Fatal(err)
	}
	engine := authz.New(limit.NewMemory(limit.MemoryOptions{}), authz.Options{Places: places})
	want := func(what, country, line string) {
		t.Helper()
		log.Reset()
		f.reload(engine)
		if got := f.tables.Countries.Lookup(netip.MustParseAddr("9.1.2.3")).Country; string(got) != country {
			t.Errorf("%s: %s, want %s", what, got, country)
		}
		if !strings.Contains(log.String(), line) || line == "" && log.Len() > 0 {
			t.Errorf("%s: the log says %q, want %q", what, &log, line)
		}
	}
	want("unchanged", "DE", "")
	put("no database")
	want("broken", "DE", "database not loaded: the last good one serves")
	want("still broken", "DE", "")
	put("AT")
	want("another", "AT", "databases loaded")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	want("gone", "AT", "database not loaded: the last good one serves")
	if got := f.files(); len(got) != 1 || got[0] != file {
		t.Errorf("it watches %v", got)
	}
}
