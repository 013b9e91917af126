package cmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"sluice/policies"
)

// schemaOf reads a JSON Schema, formats included.
func schemaOf(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// nasty are findings with everything that could break a report.
func nasty(t *testing.T) policies.Diagnostics {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a b#ü%.yaml")
	if err := os.WriteFile(file, []byte("\ufeffäöü: x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return policies.Diagnostics{
		{Pos: policies.Pos{File: "policy.yaml"}, Message: "<&> of the file", Rule: "version"},
		{Pos: policies.Pos{File: "<stdin>", Line: 3, Col: 9}, Path: `plans."a b"`, Message: "one\ntwo\r::error::x", Rule: "name", Warning: true},
		{Pos: policies.Pos{File: file, Line: 1, Col: 9}, Path: "x", Message: "100%", Rule: "word"},
	}
}

func TestSARIF(t *testing.T) {
	t.Parallel()
	schema, err := os.ReadFile("testdata/sarif.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, ds := range []policies.Diagnostics{nil, nasty(t)} {
		var out bytes.Buffer
		if err := writeSARIF(&out, policies.Rules(), ds); err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaOf(t, schema).Validate(doc); err != nil {
			t.Errorf("%#v", err)
		}
		var log sarifLog
		if err := json.Unmarshal(out.Bytes(), &log); err != nil {
			t.Fatal(err)
		}
		run := log.Runs[0]
		if len(run.Results) != len(ds) {
			t.Fatalf("%d results, want %d", len(run.Results), len(ds))
		}
		for i, r := range run.Results {
			if run.Tool.Driver.Rules[r.RuleIndex].ID != ds[i].Rule || r.RuleID != ds[i].Rule {
				t.Errorf("result %d has rule %s at %d", i, r.RuleID, r.RuleIndex)
			}
			if r.Message.Text != ds[i].Message {
				t.Errorf("result %d says %q", i, r.Message.Text)
			}
		}
		if len(ds) > 0 {
			last := run.Results[2].Locations[0].Physical
			if want := (sarifRegion{1, 6}); *last.Region != want || !strings.HasPrefix(last.Artifact.URI, "file:///") || !strings.HasSuffix(last.Artifact.URI, "/a%20b%23%C3%BC%25.yaml") {
				t.Errorf("the last is at %+v %s", *last.Region, last.Artifact.URI)
			}
			if run.Results[0].Locations[0].Physical.Region != nil {
				t.Error("a finding about the file has a region")
			}
		}
	}
}

func TestGitHub(t *testing.T) {
	t.Parallel()
	ds := nasty(t)
	var out bytes.Buffer
	if err := writeGitHub(&out, ds); err != nil {
		t.Fatal(err)
	}
	file := strings.ReplaceAll(ds[2].Pos.File, "%", "%25")
	want := "::error file=policy.yaml,title=sluice version::<&> of the file\n" +
		"::warning file=<stdin>,line=3,col=9,title=sluice name::plans.\"a b\": one%0Atwo%0D::error::x\n" +
		"::error file=" + file + ",line=1,col=6,title=sluice word::x: 100%25\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
