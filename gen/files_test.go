package gen

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/gen/gentest"
)

func rendered(t *testing.T, policy string) Files {
	t.Helper()
	f, err := Render(compiled(t, policy), Options{Version: "test", Full: true})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !info.Mode().IsRegular() {
			out[filepath.ToSlash(name)] = info.Mode().String()
			return err
		}
		content, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const oneRoute = "version: 1\nedge: {limits: {x: {per: ip, rate: 1/s, burst: 1}}}\nroutes: [{name: NAME, match: {prefix: /}}]\n"

// TestWrite: what is written is what was rendered, and a renamed route leaves
// nothing behind (C033).
func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := rendered(t, strings.Replace(oneRoute, "NAME", "before", 1))
	after := rendered(t, strings.Replace(oneRoute, "NAME", "after", 1))
	if err := before.Write(dir); err != nil {
		t.Fatal(err)
	}
	if changes, err := before.Diff(dir); err != nil || len(changes) != 0 {
		t.Fatalf("after writing there are the changes %v, %v", changes, err)
	}
	changes, err := after.Diff(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Kind{}
	for _, c := range changes {
		got[c.Name] = c.Kind
	}
	if got["sluice/routes/after.conf"] != Missing || got["sluice/routes/before.conf"] != Orphan || got["sluice/locations.conf"] != Different {
		t.Errorf("the changes are %v", got)
	}
	if err := after.Write(dir); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for name, content := range after {
		want[name] = string(content)
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(filepath.Join(dir, "sluice/http.conf"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

// TestWriteRefuses: nothing foreign is overwritten or followed, and then nothing
// at all is written.
func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	files := rendered(t, strings.Replace(oneRoute, "NAME", "all", 1))
	outside := t.TempDir()
	for name, prepare := range map[string]func(dir string) error{
		"a foreign file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte("mine\n"), 0o644)
		},
		"a link to a directory": func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "sluice")) },
		"a link to a file": func(dir string) error {
			return os.Symlink(filepath.Join(outside, "x"), filepath.Join(dir, "nginx.conf"))
		},
		"a directory": func(dir string) error { return os.Mkdir(filepath.Join(dir, "nginx.conf"), 0o755) },
	} {
		dir := t.TempDir()
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		before := tree(t, dir)
		if err := files.Write(dir); err == nil {
			t.Errorf("%s: nothing is refused", name)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" || len(tree(t, outside)) != 0 {
			t.Errorf("%s: something was written: %s", name, diff)
		}
	}
}

// TestManifestOutside: a manifest that names other people's files removes none.
func TestManifestOutside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, map[string]string{
		"mine.conf":       "mine\n",
		"sluice/mine":     "mine\n",
		"sluice/manifest": stampPrefix + "x\n../mine.conf\nmine.conf\nsluice/../mine.conf\n/etc/passwd\n",
	})
	files := rendered(t, strings.Replace(oneRoute, "NAME", "all", 1))
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
	after := tree(t, dir)
	if after["mine.conf"] != "mine\n" || after["sluice/mine"] != "mine\n" {
		t.Errorf("somebody else's file is gone: %v", after)
	}
}

// TestCheckNamesOurFile: an error of nginx is told in our file and line, and
// checking touches nothing but its own directory.
func TestCheckNamesOurFile(t *testing.T) {
	t.Parallel()
	nginx := gentest.Binary(t)
	files := rendered(t, strings.Replace(oneRoute, "NAME", "all", 1))
	if err := Check(t.Context(), nginx, files); err != nil {
		t.Error(err)
	}
	files["sluice/routes/all.conf"] = append(bytes.Clone(files["sluice/routes/all.conf"]), "nonsense here;\n"...)
	err := Check(t.Context(), nginx, files)
	if err == nil || !strings.Contains(err.Error(), `sluice/routes/all.conf:`) || !strings.Contains(err.Error(), "nonsense") || strings.Contains(err.Error(), "/tmp/") {
		t.Errorf("the error is %v", err)
	}
	if err := Check(t.Context(), "/nonexistent/nginx", files); err == nil {
		t.Error("a missing nginx is no error")
	}
}

// TestCheckWithoutDNS: names in addresses are not looked up (C018).
func TestCheckWithoutDNS(t *testing.T) {
	t.Parallel()
	nginx := gentest.Binary(t)
	policy := "version: 1\nlimits: {x: {per: ip, rate: 1/s, burst: 1}}\n"
	files, err := Render(compiled(t, policy), Options{
		Full: true, Authz: []string{"sluice.invalid:9180", "unix:/run/sluice/authz.sock"}, Datagrams: []string{"sluice.invalid:9182"},
		Upstreams: []string{"app.invalid:80", "[::1]:8081"}, Listen: []string{"127.0.0.1:80", "[::1]:80"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), nginx, files); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"x", "x:", ":80", "a b:80", "x:80; evil on", "unix:/x;y", "http://x:80", "x:80\n"} {
		if _, err := Render(compiled(t, policy), Options{Authz: []string{bad}}); err == nil {
			t.Errorf("the address %q is taken", bad)
		}
	}
}
