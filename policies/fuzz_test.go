package policies

import (
	"encoding"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzParse reads anything: it must not panic, and every finding must stand
// inside its file and on one line.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/sites/*.yaml", "testdata/example/*.yaml", "testdata/yaml/*.txtar"} {
		seeds, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, seed := range seeds {
			data, err := os.ReadFile(seed)
			if err != nil {
				f.Fatal(err)
			}
			if filepath.Ext(seed) == ".yaml" {
				f.Add(data)
				continue
			}
			for _, file := range txtar.Parse(data).Files {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		p, found := Parse("policy.yaml", src, func(FileName) ([]byte, error) { return src, nil })
		lines := strings.Split(strings.TrimPrefix(string(src), "\ufeff"), "\n")
		for _, d := range found {
			if d.Pos.Line < 0 || d.Pos.Line > len(lines) {
				t.Fatalf("%v: there are %d lines", d, len(lines))
			}
			if d.Pos.Line > 0 && (d.Pos.Col < 1 || d.Pos.Col > len(lines[d.Pos.Line-1])+1) {
				t.Fatalf("%v: the line is %q", d, lines[d.Pos.Line-1])
			}
			if strings.Contains(d.String(), "\n") || d.Message == "" || d.Rule == "" {
				t.Fatalf("no line: %q", d.String())
			}
		}
		if !found.HasErrors() && p.Version != 1 {
			t.Fatal("no finding, and no version")
		}
	})
}

// FuzzScalar reads anything as every scalar type: what is taken must be spelled
// so that it is read as the same value again.
func FuzzScalar(f *testing.F) {
	seeds, err := filepath.Glob("testdata/scalars/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		ar, err := txtar.ParseFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(fileIn(ar, "inputs")) {
			f.Add(strings.TrimSuffix(line, "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, fresh := range scalars() {
			roundTrip(t, name, fresh, text)
		}
	})
}

func roundTrip(t *testing.T, name string, fresh func() encoding.TextUnmarshaler, text string) {
	t.Helper()
	v := fresh()
	if err := v.UnmarshalText([]byte(text)); err != nil {
		if strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "leave") && !strings.Contains(err.Error(), "did you mean") {
			t.Fatalf("%s %q: %q says not what to do", name, text, err)
		}
		return
	}
	if r, ok := v.(*Regex); ok {
		_ = r.NGINX()
		_ = r.Match([]byte(text))
		return
	}
	spelled := v.(fmt.Stringer).String()
	again := fresh()
	if err := again.UnmarshalText([]byte(spelled)); err != nil {
		t.Fatalf("%s %q: spelled as %q, which is refused: %v", name, text, spelled, err)
	}
	if diff := cmp.Diff(v, again, cmp.Comparer(func(a, b Network) bool { return a == b })); diff != "" {
		t.Fatalf("%s %q: spelled as %q, which is another value:\n%s", name, text, spelled, diff)
	}
}
