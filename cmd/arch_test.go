package cmd_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestFloors holds the floors of the architecture: a package imports only what
// lies below it. Tests and their helper packages are free to climb.
func TestFloors(t *testing.T) {
	mayImport := map[string][]string{
		"sluice/policies":        nil,
		"sluice/templates":       nil,
		"sluice/examples":        nil,
		"sluice/authz/limit":     nil,
		"sluice/geo":             {"sluice/policies"},
		"sluice/gen":             {"sluice/policies", "sluice/templates", "sluice/geo", "sluice/policies/edge", "sluice/policies/denial"},
		"sluice/policies/edge":   {"sluice/policies", "sluice/geo"},
		"sluice/policies/denial": {"sluice/policies"},
		"sluice/authz":           {"sluice/policies", "sluice/policies/edge", "sluice/policies/denial", "sluice/authz/limit", "sluice/authz/memo", "sluice/authz/directory", "sluice/geo"},
		"sluice/authz/memo":      nil,
		"sluice/authz/directory": {"sluice/policies", "sluice/authz/limit", "sluice/authz/memo"},
		"sluice/cmd":             {"sluice/policies", "sluice/templates", "sluice/examples", "sluice/authz/limit", "sluice/geo", "sluice/gen", "sluice/authz", "sluice/authz/directory", "sluice/cmd/nginxconf", "sluice/cmd/lint", "sluice/cmd/importer", "sluice/cmd/trial", "sluice/cmd/policytest", "sluice/policies/edge", "sluice/cmd/accesslog", "sluice/cmd/replay"},
		"sluice/cmd/policytest":  {"sluice/policies", "sluice/geo", "sluice/policies/edge", "sluice/authz/limit", "sluice/cmd/trial"},
		"sluice/cmd/trial":       {"sluice/policies", "sluice/geo", "sluice/policies/edge", "sluice/authz", "sluice/authz/limit"},
		"sluice/cmd/nginxconf":   nil,
		"sluice/cmd/lint":        {"sluice/policies", "sluice/cmd/nginxconf"},
		"sluice/cmd/importer":    {"sluice/policies", "sluice/cmd/nginxconf"},
		"sluice/cmd/accesslog":   nil,
		"sluice/cmd/replay":      {"sluice/policies", "sluice/templates", "sluice/geo", "sluice/policies/edge", "sluice/authz", "sluice/cmd/trial", "sluice/cmd/accesslog"},
		"sluice/cmd/sluice":      {"sluice/cmd"},
		// Programs of the examples stand alone, and test helpers serve tests only.
		"sluice/examples/app":          nil,
		"sluice/examples/client":       nil,
		"sluice/gen/gentest":           nil,
		"sluice/geo/geotest":           nil,
		"sluice/authz/limit/limittest": {"sluice/authz/limit"},
	}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "sluice/...").Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		allowed, known := mayImport[fields[0]]
		if !known {
			t.Errorf("%s is on no floor; give it one here", fields[0])
			continue
		}
		for _, dep := range fields[1:] {
			if strings.HasPrefix(dep, "sluice/") && !slices.Contains(allowed, dep) {
				t.Errorf("%s imports %s: a wrong arrow", fields[0], dep)
			}
		}
	}
}

// TestPolicyYAMLStaysBelow keeps YAML a matter of the policies package.
func TestPolicyYAMLStaysBelow(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "sluice/...").Output()
	if err != nil {
		t.Fatalf("cannot list packages: %v", err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		fields := strings.Fields(line)
		if fields[0] != "sluice/policies" && slices.Contains(fields[1:], "gopkg.in/yaml.v3") {
			t.Errorf("%s reads YAML; only policies does", fields[0])
		}
	}
}
