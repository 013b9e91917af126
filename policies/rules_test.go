package policies

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestRulesAreAllThere holds the table against the constants: a rule without a
// sentence belongs into rules_table.go.
func TestRulesAreAllThere(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	shape := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for _, r := range Rules() {
		if known[r.ID] {
			t.Errorf("%s is there twice", r.ID)
		}
		known[r.ID] = true
		if !shape.MatchString(r.ID) || !strings.HasSuffix(r.Says, ".") {
			t.Errorf("%s: %q is no sentence", r.ID, r.Says)
		}
	}
	constants := ruleConstants(t)
	for id, name := range constants {
		if !known[id] {
			t.Errorf("%s (%s) has no sentence in rules_table.go", name, id)
		}
	}
	if len(constants) != len(known) {
		t.Errorf("%d constants, %d sentences", len(constants), len(known))
	}
}

// ruleConstants are the constants of this package whose name begins with rule, by value.
func ruleConstants(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constants := map[string]string{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != len(spec.Names) {
				return true
			}
			for i, name := range spec.Names {
				value, ok := spec.Values[i].(*ast.BasicLit)
				if rest, found := strings.CutPrefix(name.Name, "rule"); ok && found && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z' {
					id, err := strconv.Unquote(value.Value)
					if err != nil {
						t.Fatal(err)
					}
					constants[id] = name.Name
				}
			}
			return true
		})
	}
	return constants
}
