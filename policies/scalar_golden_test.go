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

// scalars are the scalar types by the names of their files in testdata/scalars.
func scalars() map[string]func() encoding.TextUnmarshaler {
	return map[string]func() encoding.TextUnmarshaler{
		"name":      func() encoding.TextUnmarshaler { return new(Name) },
		"text":      func() encoding.TextUnmarshaler { return new(Text) },
		"path":      func() encoding.TextUnmarshaler { return new(Path) },
		"header":    func() encoding.TextUnmarshaler { return new(HeaderName) },
		"param":     func() encoding.TextUnmarshaler { return new(ParamName) },
		"token":     func() encoding.TextUnmarshaler { return new(Token) },
		"prefix":    func() encoding.TextUnmarshaler { return new(Prefix) },
		"file":      func() encoding.TextUnmarshaler { return new(FileName) },
		"claim":     func() encoding.TextUnmarshaler { return new(Claim) },
		"method":    func() encoding.TextUnmarshaler { return new(Method) },
		"host":      func() encoding.TextUnmarshaler { return new(Host) },
		"language":  func() encoding.TextUnmarshaler { return new(Language) },
		"url":       func() encoding.TextUnmarshaler { return new(URL) },
		"env":       func() encoding.TextUnmarshaler { return new(EnvName) },
		"timezone":  func() encoding.TextUnmarshaler { return new(Timezone) },
		"status":    func() encoding.TextUnmarshaler { return new(Status) },
		"count":     func() encoding.TextUnmarshaler { return new(Count) },
		"percent":   func() encoding.TextUnmarshaler { return new(Percent) },
		"share":     func() encoding.TextUnmarshaler { return new(Share) },
		"duration":  func() encoding.TextUnmarshaler { return new(Duration) },
		"date":      func() encoding.TextUnmarshaler { return new(Date) },
		"rate":      func() encoding.TextUnmarshaler { return new(Rate) },
		"window":    func() encoding.TextUnmarshaler { return new(Window) },
		"quota":     func() encoding.TextUnmarshaler { return new(Quota) },
		"network":   func() encoding.TextUnmarshaler { return new(Network) },
		"country":   func() encoding.TextUnmarshaler { return new(Country) },
		"continent": func() encoding.TextUnmarshaler { return new(Continent) },
		"group":     func() encoding.TextUnmarshaler { return new(Group) },
		"asn":       func() encoding.TextUnmarshaler { return new(ASN) },
		"sha256":    func() encoding.TextUnmarshaler { return new(SHA256) },
		"regex":     func() encoding.TextUnmarshaler { return new(Regex) },
	}
}

// TestScalars reads every line of testdata/scalars as its type, and compares
// how it is spelled then, or why it is refused.
func TestScalars(t *testing.T) {
	t.Parallel()
	for name, fresh := range scalars() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("testdata/scalars", name+".txtar")
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for line := range strings.Lines(fileIn(ar, "inputs")) {
				line = strings.TrimSuffix(line, "\n")
				fmt.Fprintf(&out, "%s  =>  %s\n", line, readScalar(fresh(), line))
			}
			if *update {
				setFile(ar, "results", out.String())
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(fileIn(ar, "results"), out.String()); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// readScalar is the spelling of what a text was read as, or why it was not.
func readScalar(v encoding.TextUnmarshaler, text string) string {
	if err := v.UnmarshalText([]byte(text)); err != nil {
		return "[" + ruleOf(err) + "] " + err.Error()
	}
	if r, ok := v.(*Regex); ok && r.NGINX() != r.Source {
		return r.String() + "  NGINX: " + r.NGINX()
	}
	return v.(fmt.Stringer).String()
}
