package cmd

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"sluice/gen/gentest"
	"sluice/policies"
)

// TestStarter: the first policy is good as it stands, and as its comments say.
func TestStarter(t *testing.T) {
	marks := regexp.MustCompile(`(?m)^# ((?:client_ip|identity|plans|tenants):|  )`)
	for name, src := range map[string]string{"as written": starterPolicy, "marks taken away": marks.ReplaceAllString(starterPolicy, "$1")} {
		c, ds := ready(policies.Parse("policy.yaml", []byte(src), func(policies.FileName) ([]byte, error) { return nil, os.ErrNotExist }))
		if c == nil || len(ds) > 0 {
			t.Errorf("%s: %v\n%s", name, ds, src)
		}
		if name != "as written" && (c.Identity == nil || src == starterPolicy) {
			t.Errorf("no marks were taken away")
		}
	}
}

// TestInitOnSites follows what init says of each site, to the letter: a real
// NGINX reads the result, and lint finds nothing missing or misplaced.
func TestInitOnSites(t *testing.T) {
	names, err := filepath.Glob("testdata/sites/*.txtar")
	if err != nil {
		t.Fatal(err)
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
				if strings.HasSuffix(f.Name, ".conf") {
					in[f.Name] = string(f.Data)
				}
			}
			if strings.Contains(in["nginx.conf"], "# configuration file") {
				t.Skip("a dump is no file to add lines to")
			}
			gentest.WriteFiles(t, dir, in)
			out, errs, status := sluice("init", dir)
			if status != exitOK {
				t.Fatalf("init exits %d: %s", status, errs)
			}
			adopted := addLines(t, in["nginx.conf"], string(out))
			hermetic(t, dir, "nginx.conf", adopted)
			if _, errs, status := sluice("render", filepath.Join(dir, "policy.yaml"), "--out", dir); status != exitOK {
				t.Fatalf("render exits %d: %s", status, errs)
			}
			if err := gentest.Test(context.Background(), t, dir, "nginx.conf"); err != nil {
				t.Errorf("%v\n%s", err, adopted)
			}
			found, _, _ := sluice("lint-nginx", filepath.Join(dir, "nginx.conf"))
			for _, rule := range []string{"missing-http", "missing-server", "misplaced-include", "repeated-include", "repeated-directive", "no-route", "map-hash-order", "real-ip-twice"} {
				if strings.Contains(string(found), "["+rule+"]") {
					t.Errorf("%s after init:\n%s", rule, found)
				}
			}
		})
	}
}

var (
	placeLine = regexp.MustCompile(`nginx\.conf:(\d+), after `)
	awayLine  = regexp.MustCompile(`nginx\.conf:(\d+), take away: (.*) \(`)
)

// addLines adds the lines behind the brace, or the semicolon, of the line said,
// and takes away what is said.
func addLines(t *testing.T, conf, said string) string {
	t.Helper()
	lines := strings.Split(conf, "\n")
	at, count := 0, 0
	for line := range strings.Lines(said) {
		if m := placeLine.FindStringSubmatch(line); m != nil {
			at, _ = strconv.Atoi(m[1])
			continue
		}
		if m := awayLine.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			lines[n-1] = strings.Replace(lines[n-1], m[2]+";", "", 1)
			continue
		}
		if line = strings.TrimSpace(line); at == 0 || !strings.HasPrefix(line, "include sluice/") {
			continue
		}
		text := lines[at-1]
		i := strings.Index(text, "{") + 1
		if regexp.MustCompile(`map_hash`).MatchString(text) {
			i = len(text)
		} else if quoted := strings.LastIndex(text, `" {`); quoted >= 0 {
			i = quoted + len(`" {`)
		}
		lines[at-1] = text[:i] + " " + line + text[i:]
		count++
	}
	if count < 2 {
		t.Fatalf("init says nothing to add:\n%s", said)
	}
	return strings.Join(lines, "\n")
}
