package policies

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

// compileSchema reads a schema, or a definition of it, as an editor would.
func compileSchema(t *testing.T, of SchemaOf, at string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema(of)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("sluice.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("sluice.json" + at)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plainValue is what JSON makes of a YAML tree, merge keys and aliases resolved.
func plainValue(n *yaml.Node) any {
	n = follow(n)
	switch n.Kind {
	case yaml.DocumentNode:
		return plainValue(n.Content[0])
	case yaml.MappingNode:
		out := map[string]any{}
		budget := lookupBudget
		for _, e := range entries(n, &budget) {
			out[e.key.Value] = plainValue(e.value)
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			out = append(out, plainValue(c))
		}
		return out
	}
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		var f float64
		if n.Decode(&f) == nil {
			if text := strconv.FormatFloat(f, 'f', -1, 64); f == f && f-f == 0 {
				return json.Number(text)
			}
		}
	}
	return n.Value
}

// yamlTree parses what is YAML, and tells whether it is.
func yamlTree(data []byte) (*yaml.Node, bool) {
	var doc yaml.Node
	err := yaml.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &doc)
	return &doc, err == nil && len(doc.Content) == 1
}

// TestSchemaSaysEveryKey: each key of the language has its sentence, and no sentence
// is left of a key that is gone.
func TestSchemaSaysEveryKey(t *testing.T) {
	t.Parallel()
	words := schemaWords()
	maps.Copy(words, schemaTestWords())
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			walk(typ.Elem())
		case reflect.Map:
			walk(typ.Elem())
		case reflect.Struct:
			if seen[typ] {
				return
			}
			seen[typ] = true
			for _, f := range fieldsOf(typ) {
				at := typ.Name() + "." + f.key
				if words[at] == "" {
					t.Errorf("%s has no sentence in schemaWords", at)
				}
				delete(words, at)
				walk(f.typ)
			}
		}
	}
	walk(reflect.TypeFor[Policy]())
	walk(reflect.TypeFor[TestFile]())
	for at := range words {
		t.Errorf("schemaWords tells of %s, which is no key", at)
	}
}

// TestSchemaScalars: what a scalar type reads, the schema takes, as the text that
// it is and as the number that YAML may make of it; and no form takes everything.
func TestSchemaScalars(t *testing.T) {
	t.Parallel()
	for name, fresh := range scalars() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(filepath.Join("testdata/scalars", name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			form := compileSchema(t, SchemaPolicy, "#/definitions/"+reflect.TypeOf(fresh()).Elem().Name())
			refused, bad := 0, 0
			for line := range strings.Lines(fileIn(ar, "inputs")) {
				line = strings.TrimSuffix(line, "\n")
				text, ok := line, true
				if strings.HasPrefix(line, `"`) {
					if text, err = strconv.Unquote(line); err != nil {
						text = line
					}
				}
				ok = fresh().UnmarshalText([]byte(text)) == nil
				for _, v := range []any{text, plainValue(&yaml.Node{Kind: yaml.ScalarNode, Value: text})} {
					err := form.Validate(v)
					if ok && err != nil {
						t.Errorf("%q is good, and the schema refuses %#v: %v", text, v, err)
					}
					if !ok && err != nil {
						refused++
					}
				}
				if !ok {
					bad++
				}
			}
			if bad > 0 && refused == 0 && name != "regex" { // no schema reads expressions
				t.Errorf("of %d bad ones the schema refuses none", bad)
			}
		})
	}
}

// TestSchemaTakesPolicies: every policy that is good is good for the schema.
func TestSchemaTakesPolicies(t *testing.T) {
	t.Parallel()
	policy, tenants, tests := compileSchema(t, SchemaPolicy, ""), compileSchema(t, SchemaTenants, ""), compileSchema(t, SchemaTests, "")
	var count int
	for pattern, s := range map[string]*jsonschema.Schema{
		"testdata/example/policy.yaml":    policy,
		"testdata/example/tenants/*.yaml": tenants,
		"testdata/sites/*.yaml":           policy,
		"../examples/*/policy.yaml":       policy,
		"../examples/*/policy_test.yaml":  tests,
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files fit %s", pattern)
		}
		for _, file := range found {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			doc, ok := yamlTree(data)
			if !ok {
				t.Fatalf("%s is no YAML", file)
			}
			if err := s.Validate(plainValue(doc)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			count++
		}
	}
	if count < 15 {
		t.Errorf("only %d files", count)
	}
}

// TestSchemaOfTests: what is good in a test file is good for the schema, and what has
// a wrong form is not.
func TestSchemaOfTests(t *testing.T) {
	t.Parallel()
	s := compileSchema(t, SchemaTests, "")
	for _, c := range []struct {
		name, request string
		good          bool
	}{
		{"least", "url: /", true},
		{"a whole URL", "url: 'https://a.example/x?y'", true},
		{"all at once", "url: /, at: 0s, times: 3, every: 100ms, ip: '2001:db8::1', jwt: {sub: 7}, expect: {status: 429, by: edge, reason: edge_rate, remaining: {speed: 0}, delay: 1s}", true},
		{"a number of no country", "url: /, asn: 64500, costs: 9, answers: 503", true},
		{"no url", "at: 0s", false},
		{"a path without a slash", "url: v1", false},
		{"a time without a unit", "url: /, at: 0", false},
		{"a key that is none", "url: /, tmes: 3", false},
		{"a status that is none", "url: /, expect: {status: 99}", false},
		{"a word that is none", "url: /, expect: {reason: slow}", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "tests: [{name: a, start: 2026-12-01T09:00:00+01:00, requests: [{" + c.request + "}]}]\n"
			_, found := ParseTests("t.yaml", []byte(text))
			if found.HasErrors() == c.good {
				t.Fatalf("the file is taken: %v, %v", !c.good, found)
			}
			doc, _ := yamlTree([]byte(text))
			if err := s.Validate(plainValue(doc)); (err == nil) != c.good {
				t.Errorf("the schema says %v", err)
			}
		})
	}
}

// TestSchemaAgreesWithValidate reads all policies of the goldens: those without an
// error the schema takes; those with a key that is unknown, in a wrong form, missing
// or one too many it refuses.
func TestSchemaAgreesWithValidate(t *testing.T) {
	t.Parallel()
	s := compileSchema(t, SchemaPolicy, "")
	good, bad := 0, 0
	for _, pattern := range []string{"testdata/yaml/*.txtar", "testdata/validate/*.txtar"} {
		cases, err := filepath.Glob(pattern)
		if err != nil || len(cases) == 0 {
			t.Fatalf("no files fit %s", pattern)
		}
		for _, file := range cases {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range ar.Files {
				data := unescape(ar, f.Data)
				doc, ok := yamlTree(data)
				if !strings.HasPrefix(f.Name, "policy") || !ok {
					continue
				}
				want := schemaVerdict(ar, f.Name, data)
				if want == "" {
					continue
				}
				err := s.Validate(plainValue(doc))
				switch {
				case want == "good" && err != nil:
					t.Errorf("%s %s is good: %v", file, f.Name, err)
				case want == "bad" && err == nil:
					t.Errorf("%s %s has mistakes of form, and the schema takes it", file, f.Name)
				}
				switch want {
				case "good":
					good++
				case "bad":
					bad++
				}
			}
		}
	}
	if good < 20 || bad < 15 {
		t.Errorf("%d good and %d bad policies: too few to tell", good, bad)
	}
}

// schemaVerdict is what a schema has to say of a policy: good, bad, or nothing when
// what is wrong is beyond it.
func schemaVerdict(ar *txtar.Archive, name string, data []byte) string {
	p, found := decodeOnly(name, data, archiveFiles(ar))
	if p != nil && len(found) == 0 {
		found = append(found, p.Validate()...)
	}
	ofForm := []string{ruleUnknown, ruleShape, ruleWord, ruleBool, ruleNull, ruleEmptyList, ruleChoice, ruleVersion, ruleRequired}
	verdict := "good"
	for _, d := range found {
		switch {
		case d.Warning:
		case d.Rule == ruleAlias || d.Pos.File != name:
			return ""
		case slices.Contains(ofForm, d.Rule):
			verdict = "bad"
		case verdict == "good":
			verdict = ""
		}
	}
	return verdict
}
