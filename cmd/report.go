package cmd

import (
	"encoding/json"
	"fmt"
	"io"

	"sluice/policies"
)

// finding is a diagnostic as JSON has it.
type finding struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
	Rule     string `json:"rule"`
	Severity string `json:"severity"` // error or warning
}

// writeText writes one line for each finding.
func writeText(w io.Writer, ds policies.Diagnostics) error {
	for _, d := range ds {
		if _, err := fmt.Fprintln(w, d); err != nil {
			return err
		}
	}
	return nil
}

// writeJSON writes the findings as one array.
func writeJSON(w io.Writer, ds policies.Diagnostics) error { return writeIndented(w, findingsOf(ds)) }

// findingsOf are findings as JSON has them.
func findingsOf(ds policies.Diagnostics) []finding {
	list := make([]finding, 0, len(ds))
	for _, d := range ds {
		f := finding{
			File: d.Pos.File, Line: d.Pos.Line, Column: d.Pos.Col,
			Path: d.Path, Message: d.Message, Rule: d.Rule, Severity: "error",
		}
		if d.Warning {
			f.Severity = "warning"
		}
		list = append(list, f)
	}
	return list
}

// writeIndented writes JSON for people and programs.
func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
