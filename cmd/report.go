package cmd

import (
	"encoding/json"
	"fmt"
	"io"

	"sluice/authz"
	"sluice/policies"
)

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
func writeJSON(w io.Writer, ds policies.Diagnostics) error {
	return writeIndented(w, authz.Findings(ds))
}

// writeIndented writes JSON for people and programs.
func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
