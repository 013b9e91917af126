package cmd

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"

	"sluice/policies"
)

// The parts of a SARIF 2.1.0 log that are written; field names and words are
// the standard's.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string    `json:"id"`
		ShortDescription sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical  `json:"physicalLocation"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"` // nil: the file as a whole
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

// writeSARIF writes the findings as a SARIF log, which code hosts show beside
// the lines. All rules that findings may have are in it, so that each finding has its explanation.
func writeSARIF(w io.Writer, rules []policies.Rule, ds policies.Diagnostics) error {
	driver := sarifDriver{Name: "sluice", Version: version()}
	index := map[string]int{}
	for i, r := range rules {
		index[r.ID] = i
		driver.Rules = append(driver.Rules, sarifRule{r.ID, sarifText{r.Says}})
	}
	columns := columns{}
	results := make([]sarifResult, 0, len(ds))
	for _, d := range ds {
		results = append(results, sarifFinding(d, index[d.Rule], columns))
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(sarifLog{
		Schema:  "https://json.schemastore.org/sarif-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{{Tool: sarifTool{driver}, ColumnKind: "unicodeCodePoints", Results: results}},
	})
}

func sarifFinding(d policies.Diagnostic, rule int, columns columns) sarifResult {
	r := sarifResult{RuleID: d.Rule, RuleIndex: rule, Level: "error", Message: sarifText{d.Message}}
	if d.Warning {
		r.Level = "warning"
	}
	at := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{fileURI(d.Pos.File)}}}
	if d.Pos.Line > 0 {
		at.Physical.Region = &sarifRegion{d.Pos.Line, columns.of(d.Pos)}
	}
	if d.Path != "" {
		at.Logical = []sarifLogical{{d.Path}}
	}
	r.Locations = []sarifLocation{at}
	return r
}

// fileURI is a file as a URI: relative ones stay so, for they are found in the
// repository that the report is about.
func fileURI(name string) string {
	u := url.URL{Path: filepath.ToSlash(name)}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
	}
	return u.String()
}
