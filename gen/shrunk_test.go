package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/gen/gentest"
	"sluice/policies"
)

// TestShrunk: a list of trusted proxies that lost half is noticed; one that is
// empty, or a web page, is no list at all (C054).
func TestShrunk(t *testing.T) {
	t.Parallel()
	dir, out := t.TempDir(), t.TempDir()
	write := func(list string) (Files, policies.Diagnostics) {
		gentest.WriteFiles(t, dir, map[string]string{
			"policy.yaml": "version: 1\nclient_ip: {trusted_proxies: [10.0.0.1, {file: cdn.txt}]}\n", "cdn.txt": list,
		})
		p, ds := policies.Load(filepath.Join(dir, "policy.yaml"))
		if ds.HasErrors() {
			return nil, ds
		}
		files, err := Render(policies.Compile(p), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return files, nil
	}
	shrunk := func(f Files) []Shrunk {
		t.Helper()
		got, err := f.Shrunk(out)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	whole := "198.51.100.0/25\n198.51.100.128/25\n203.0.113.0/25\n203.0.113.128/25\n2001:db8:1::/48\n"
	files, ds := write(whole)
	if files == nil {
		t.Fatal(ds)
	}
	if got := shrunk(files); got != nil {
		t.Errorf("before there is anything to compare with: %v", got)
	}
	if err := files.Write(out); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int][]Shrunk{5: nil, 4: nil, 3: nil, 2: {{"cdn.txt", 5, 2}}, 1: {{"cdn.txt", 5, 1}}} {
		files, _ := write(strings.Join(strings.SplitAfter(whole, "\n")[:n], ""))
		if diff := cmp.Diff(want, shrunk(files)); diff != "" {
			t.Errorf("%d of 5: %s", n, diff)
		}
	}
	for list, want := range map[string]string{
		"":                          "empty-list",
		"# nothing\n\n":             "empty-list",
		"<!DOCTYPE html><html>\n":   "read",
		"\n<html><body>404</body>":  "read",
		"<?xml version='1.0'?><a/>": "read",
		"198.51.100.0/25\nnginx":    "network",
	} {
		if files, ds := write(list); files != nil || len(ds) == 0 {
			t.Errorf("%q is taken for a list", list)
		} else if ds[0].Rule != want {
			t.Errorf("%q is refused by %v; want %s", list, ds[0], want)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "sluice/manifest"), []byte("# Entries of trusted proxies: x in cdn.txt\n# Entries of trusted proxies: 9\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := shrunk(files); got != nil {
		t.Errorf("a manifest that nobody wrote: %v", got)
	}
}
