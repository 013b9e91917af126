package policies

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// TestFormat compares what becomes of the first file of a case with the second.
func TestFormat(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/format/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := unescape(ar, []byte(fileIn(ar, "in.yaml")))
			out, found := Format("in.yaml", in)
			got := string(out)
			for _, d := range found {
				got += d.String() + "\n"
			}
			if *update {
				setFile(ar, "out.yaml", got)
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(fileIn(ar, "out.yaml"), got); diff != "" {
				t.Errorf("formatted (-want +got):\n%s", diff)
			}
		})
	}
}

// formatted formats a policy and checks what must hold of any: the meaning and the
// comments are those of before, and formatting again changes nothing.
func formatted(t interface {
	Errorf(string, ...any)
	Fatalf(string, ...any)
}, name string, text []byte) []byte {
	out, found := Format(name, text)
	if found.HasErrors() {
		t.Fatalf("%s: %v", name, found)
	}
	before, after := readForm(name, text), readForm(name, out)
	if !reflect.DeepEqual(before.value, after.value) {
		t.Errorf("%s means something else when formatted:\n%s", name, out)
	}
	if a, b := comments(text), comments(out); !slices.Equal(a, b) {
		t.Errorf("%s: the comments differ (-before +after):\n%s", name, cmp.Diff(a, b))
	}
	if again, _ := Format(name, out); !bytes.Equal(again, out) {
		t.Errorf("%s: formatted again it is another:\n%s", name, cmp.Diff(string(out), string(again)))
	}
	return out
}

// comments are the ends of lines from a # on, sorted; values with a # in them count
// as well, which does not matter.
func comments(text []byte) []string {
	var out []string
	for line := range strings.Lines(string(text)) {
		if i := strings.Index(line, "#"); i >= 0 && !strings.ContainsAny(line[i:], "{}") {
			out = append(out, strings.TrimSpace(line[i:]))
		}
	}
	slices.Sort(out)
	return out
}

// TestFormatKeepsPolicies formats every good policy that there is.
func TestFormatKeepsPolicies(t *testing.T) {
	t.Parallel()
	count := 0
	for _, pattern := range []string{"testdata/example/policy.yaml", "testdata/example/tenants/*.yaml", "testdata/sites/*.yaml", "../examples/*/policy.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files fit %s", pattern)
		}
		for _, file := range found {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			formatted(t, file, text)
			count++
		}
	}
	if count < 15 {
		t.Errorf("only %d files", count)
	}
	for _, pattern := range []string{"testdata/yaml/*.txtar", "testdata/validate/*.txtar"} {
		cases, _ := filepath.Glob(pattern)
		for _, file := range cases {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range ar.Files {
				text := unescape(ar, f.Data)
				if r := readForm(f.Name, text); strings.HasPrefix(f.Name, "policy") && !r.found.HasErrors() {
					formatted(t, file+" "+f.Name, text)
				}
			}
		}
	}
}

// TestFormatOrders shuffles the keys of the example, and wants them back in order.
func TestFormatOrders(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/example/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatalf("%v", err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		shuffle(&doc, rng)
		shuffled, err := yaml.Marshal(&doc)
		if err != nil {
			t.Fatalf("%v", err)
		}
		out := formatted(t, "policy.yaml", shuffled)
		r := readForm("policy.yaml", out)
		for n, known := range r.mappings {
			if ranks := ranksOf(n, known); !slices.IsSorted(ranks) {
				t.Errorf("line %d: keys out of order", n.Line)
			}
		}
	})
}

// shuffle mixes the keys of all mappings, and lets some of them be in braces.
func shuffle(n *yaml.Node, rng *rand.Rand) {
	for _, c := range n.Content {
		shuffle(c, rng)
	}
	if n.Kind != yaml.MappingNode {
		return
	}
	rng.Shuffle(len(n.Content)/2, func(i, j int) {
		n.Content[2*i], n.Content[2*j] = n.Content[2*j], n.Content[2*i]
		n.Content[2*i+1], n.Content[2*j+1] = n.Content[2*j+1], n.Content[2*i+1]
	})
}

func FuzzFormat(f *testing.F) {
	f.Add([]byte("version: 1\nroutes:\n  # a\n  - match: {prefix: /} # b\n    name: all\n"))
	f.Add([]byte("limits: {a: {burst: 3, rate: 5r/s, per: ip}}\nversion: 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		out, found := Format("policy.yaml", text)
		if found.HasErrors() {
			return
		}
		if a, b := readForm("policy.yaml", text), readForm("policy.yaml", out); !reflect.DeepEqual(a.value, b.value) {
			t.Errorf("%q means something else as %q", text, out)
		}
		if again, _ := Format("policy.yaml", out); !bytes.Equal(again, out) {
			t.Errorf("%q, formatted again, is %q", out, again)
		}
	})
}
