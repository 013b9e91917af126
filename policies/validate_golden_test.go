package policies

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestValidate holds each rule against a policy that breaks it, in a file of
// the rule's name.
func TestValidate(t *testing.T) {
	t.Parallel()
	golden(t, "testdata/validate", func(p *Policy, read Diagnostics) Diagnostics { return read })
}

// golden compares what find says of every policy*.yaml of the archives in a
// directory with what stands beside them.
func golden(t *testing.T, dir string, find func(*Policy, Diagnostics) Diagnostics) {
	t.Helper()
	cases, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, f := range ar.Files {
				if !strings.HasPrefix(f.Name, "policy") {
					continue
				}
				for _, d := range find(Parse(f.Name, f.Data, archived(ar))) {
					fmt.Fprintln(&out, d)
				}
			}
			if out.Len() == 0 {
				out.WriteString("none\n")
			}
			if *update {
				setFile(ar, "findings", out.String())
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(fileIn(ar, "findings"), out.String()); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

// archived reads the files of an archive.
func archived(ar *txtar.Archive) func(FileName) ([]byte, error) {
	return func(name FileName) ([]byte, error) {
		for _, f := range ar.Files {
			if f.Name == string(name) {
				return f.Data, nil
			}
		}
		return nil, &os.PathError{Op: "open", Path: string(name), Err: os.ErrNotExist}
	}
}

// TestEveryRuleHasACase wants a file of the rule's name, with a finding of it,
// for every rule of policies as a whole.
func TestEveryRuleHasACase(t *testing.T) {
	t.Parallel()
	rules := append(rulesIn(t, "validate_rules.go"), ruleChoice, ruleStatus, ruleSimilar)
	for _, rule := range rules {
		ar, err := txtar.ParseFile(filepath.Join("testdata/validate", rule+".txtar"))
		if err != nil {
			t.Errorf("rule %s has no case: %v", rule, err)
			continue
		}
		found := fileIn(ar, "findings")
		if !strings.Contains(found, "["+rule+"]\n") && !strings.Contains(found, "[warning "+rule+"]\n") {
			t.Errorf("the case of rule %s does not show it", rule)
		}
	}
}

// rulesIn are the values of the constants of a file.
func rulesIn(t *testing.T, file string) []string {
	t.Helper()
	tree, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var rules []string
	ast.Inspect(tree, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == gotoken.STRING {
			rule, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, rule)
		}
		return true
	})
	return rules
}
