package policies

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A policy knows what it was read from: also what was not there, since it may
// come, and where more may come.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("tenants/b.yaml", "[]\n")
	write("tenants/a.yaml", "[]\n")
	write("bad.txt", "192.0.2.0/24\n")
	write("policy.yaml", `version: 1
tenant_files: [tenants/*.yaml, more.yaml]
edge: {access: [{name: x, deny: {cidrs: [{file: bad.txt}, {file: bad.txt}, {file: gone.txt}]}}]}
routes: [{name: all, match: {prefix: /}}]
`)
	p, found := Load(filepath.Join(dir, "policy.yaml"))
	if !found.HasErrors() {
		t.Fatal("two files are missing, and nothing is said")
	}
	names, patterns := p.Files()
	want := []string{}
	for _, f := range []string{"policy.yaml", "bad.txt", "gone.txt", "tenants/a.yaml", "tenants/b.yaml", "more.yaml"} {
		want = append(want, filepath.Join(dir, f))
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{filepath.Join(dir, "tenants/*.yaml")}, patterns); d != "" {
		t.Errorf("patterns (-want +got):\n%s", d)
	}
	if names, _ := new(Policy).Files(); names != nil {
		t.Errorf("a policy from nowhere has files %q", names)
	}
}
