package cmd

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"sluice/authz"
	"sluice/policies"
)

// findingFormats are what --format is where findings are printed.
const findingFormats = "text, json, github (annotations in GitHub Actions) or sarif (code scanning)"

func checkFormat(format string) error {
	if !slices.Contains([]string{"text", "json", "github", "sarif"}, format) {
		return usagef("--format %q; want text, json, github or sarif", format)
	}
	return nil
}

// writeFindings writes findings of some rules and then, where people read, what
// was fine.
func writeFindings(w io.Writer, format string, rules []policies.Rule, ds policies.Diagnostics, fine []string) error {
	write := writeText
	switch format {
	case "json":
		return writeJSON(w, ds)
	case "sarif":
		return writeSARIF(w, rules, ds)
	case "github":
		write = writeGitHub
	}
	if err := write(w, ds); err != nil {
		return err
	}
	for _, line := range fine {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
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
