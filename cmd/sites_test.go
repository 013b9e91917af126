package cmd

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"sluice/cmd/importer"
	"sluice/cmd/lint"
	"sluice/cmd/nginxconf"
	"sluice/gen"
	"sluice/gen/gentest"
	"sluice/policies"
)

var update = flag.Bool("update", false, "write the golden files of cmd/testdata anew")

// goldenCases runs a test for each archive. It returns what must stand in the
// archive's files, which -update writes there.
func goldenCases(t *testing.T, pattern string, run func(t *testing.T, dir string, in map[string]string) []txtar.File) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no cases in %s: %v", pattern, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, in := t.TempDir(), map[string]string{}
			for _, f := range archive.Files {
				in[f.Name] = string(f.Data)
			}
			gentest.WriteFiles(t, dir, in)
			got := &txtar.Archive{Comment: archive.Comment}
			want := run(t, dir, in)
			for _, f := range archive.Files {
				if !slices.ContainsFunc(want, func(w txtar.File) bool { return w.Name == f.Name }) {
					got.Files = append(got.Files, f)
				}
			}
			for _, f := range want {
				f.Data = bytes.ReplaceAll(f.Data, []byte(dir+"/"), nil)
				got.Files = append(got.Files, f)
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

// sluice runs a command line in this process.
func sluice(args ...string) (out, errs []byte, status int) {
	var o, e bytes.Buffer
	status = Run(args, strings.NewReader(""), &o, &e)
	return o.Bytes(), e.Bytes(), status
}

// TestSites lints and imports sites as people run them. What is imported is a
// good policy, and where all of it is enforced it renders and passes nginx -t.
func TestSites(t *testing.T) {
	nginx, _ := haveNGINX("nginx")
	goldenCases(t, "testdata/sites/*.txtar", func(t *testing.T, dir string, in map[string]string) []txtar.File {
		conf := filepath.Join(dir, "nginx.conf")
		if nginx && !strings.Contains(in["nginx.conf"], "# configuration file") {
			hermetic(t, dir, "site.conf", in["nginx.conf"])
			if err := gentest.Test(context.Background(), t, dir, "site.conf"); err != nil {
				t.Errorf("nginx does not read the site itself: %v", err)
			}
		}
		found, _, _ := sluice("lint-nginx", conf)
		policy, notes, status := sluice("import", conf)
		if status != exitOK {
			t.Fatalf("import exits %d:\n%s", status, notes)
		}
		p, ds := policies.Parse("policy.yaml", policy, func(policies.FileName) ([]byte, error) { return nil, os.ErrNotExist })
		if ds.HasErrors() {
			t.Fatalf("what is imported is no good policy: %v\n%s", ds, policy)
		}
		if _, located := in["databases"]; located {
			t.Log("takes databases of countries to render")
		} else if c, ds := ready(p, ds); c != nil {
			files, err := gen.Render(c, gen.Options{Full: true, Upstreams: []string{"127.0.0.1:8081"}})
			if err != nil {
				t.Fatal(err)
			}
			if nginx {
				if err := gen.Check(context.Background(), gentest.Binary(t), files); err != nil {
					t.Error(err)
				}
			}
		} else {
			t.Logf("not all is enforced yet: %v", ds)
		}
		return []txtar.File{{Name: "lint", Data: found}, {Name: "notes", Data: notes}, {Name: "policy.yaml", Data: policy}}
	})
}

// TestLint lints sites that have adopted Sluice. A case may hold a policy,
// which is rendered beside it, and the word of a real nginx -t about the site:
// "ok", or a part of what it says.
func TestLint(t *testing.T) {
	nginx, _ := haveNGINX("nginx")
	goldenCases(t, "testdata/lint/*.txtar", func(t *testing.T, dir string, in map[string]string) []txtar.File {
		if policy, ok := in["policy.yaml"]; ok {
			if _, errs, status := sluice("render", filepath.Join(dir, "policy.yaml"), "--out", dir); status != exitOK {
				t.Fatalf("cannot render\n%s\n%s", policy, errs)
			}
		}
		if want, ok := in["nginx-t"]; ok && nginx {
			hermetic(t, dir, "site.conf", in["nginx.conf"])
			err := gentest.Test(context.Background(), t, dir, "site.conf")
			if want = strings.TrimSpace(want); want == "ok" && err != nil || want != "ok" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("nginx -t: %v; want %s", err, want)
			}
		}
		args := append([]string{"lint-nginx", filepath.Join(dir, "nginx.conf")}, strings.Fields(in["args"])...)
		found, errs, status := sluice(args...)
		found = append(found, errs...)
		if nginx && in["nginx-t"] == "ok\n" {
			sameOfDump(t, dir, found)
		}
		return []txtar.File{{Name: "lint", Data: fmt.Appendf(found, "status %d\n", status)}}
	})
}

// sameOfDump lints what nginx -T says of the site: the same findings.
func sameOfDump(t *testing.T, dir string, found []byte) {
	t.Helper()
	dump, err := exec.Command(gentest.Binary(t), "-T", "-p", dir, "-c", filepath.Join(dir, "site.conf"), "-e", "stderr").CombinedOutput()
	if err != nil {
		t.Fatalf("nginx -T: %v\n%s", err, dump)
	}
	gentest.WriteFiles(t, dir, map[string][]byte{"dump": dump})
	again, _, _ := sluice("lint-nginx", filepath.Join(dir, "dump"))
	// The hermetic site has other columns, and another name.
	column := regexp.MustCompile(`(?m)^(\S+):([0-9]+):[0-9]+: `)
	text := func(b []byte) string {
		s := strings.NewReplacer(dir+"/", "", "site.conf", "nginx.conf", "dump: ", "nginx.conf: ").Replace(string(b))
		return column.ReplaceAllString(s, "$1:$2: ")
	}
	if diff := cmp.Diff(text(found), text(again)); diff != "" {
		t.Errorf("nginx -T gives other findings than the files\n%s", diff)
	}
}

// TestLintRules: every rule of lint is shown by a case, and no finding has a
// rule that is not listed.
func TestLintRules(t *testing.T) {
	shown := map[string]bool{}
	for _, pattern := range []string{"testdata/lint/*.txtar", "testdata/sites/*.txtar"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)\[(?:warning )?([a-z-]+)\]$|"rule": "([a-z-]+)"`).FindAllStringSubmatch(string(data), -1) {
				shown[m[1]+m[2]] = true
			}
		}
	}
	delete(shown, "not-imported")
	for _, r := range lint.Rules() {
		if !shown[r.ID] {
			t.Errorf("no case shows %s", r.ID)
		}
		delete(shown, r.ID)
	}
	for id := range shown {
		t.Errorf("%s is no rule of lint", id)
	}
}

// FuzzSites: whatever stands in an nginx.conf, linting and importing end
// without a panic, and what is imported is a good policy.
func FuzzSites(f *testing.F) {
	for _, pattern := range []string{"testdata/lint/*.txtar", "testdata/sites/*.txtar"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				f.Fatal(err)
			}
			for _, file := range archive.Files {
				if file.Name == "nginx.conf" {
					f.Add(string(file.Data))
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		site, err := nginxconf.Read("nginx.conf", text)
		if err != nil {
			return
		}
		lint.Run(site, lint.Options{})
		r := importer.Import(site)
		_, ds := policies.Parse("policy.yaml", r.Policy, func(policies.FileName) ([]byte, error) { return nil, os.ErrNotExist })
		if ds.HasErrors() {
			t.Errorf("%v\n%s", ds, r.Policy)
		}
	})
}

var (
	listens    = regexp.MustCompile(`listen [^ ;]+( default_server| proxy_protocol)*[^;]*;`)
	usersLine  = regexp.MustCompile(`(?m)^user .*;`)
	outside    = regexp.MustCompile(`/var/log/nginx/|/tmp/`)
	emptyFiles = []string{"mime.types", "fastcgi_params"}
)

// hermetic writes a site so that nginx -t stays within dir, on the same lines.
func hermetic(t *testing.T, dir, name, text string) {
	t.Helper()
	main, http := gentest.Hermetic()
	text = usersLine.ReplaceAllString(text, "")
	n := 0
	text = listens.ReplaceAllStringFunc(text, func(l string) string {
		n++
		words := ""
		for _, w := range []string{" default_server", " proxy_protocol"} {
			if strings.Contains(l, w) && w != " default_server" {
				words += w
			}
		}
		return fmt.Sprintf("listen unix:s%d.sock%s;", n, words)
	})
	text = outside.ReplaceAllString(text, "")
	text = strings.Replace(text, "http {", "http { access_log off; "+strings.ReplaceAll(http, "\n", " "), 1)
	text = strings.ReplaceAll(main, "\n", " ") + text
	files := map[string]string{name: strings.ReplaceAll(text, "access_log off; access_log", "access_log")}
	for _, f := range emptyFiles {
		files[f] = ""
	}
	gentest.WriteFiles(t, dir, files)
}
