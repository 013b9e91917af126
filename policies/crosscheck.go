package policies

import (
	"slices"
	"strings"
)

// crossChecked adds the findings of Validate to those of reading, as far as
// they can be trusted: a check that looked at a part of the file which could
// not be read would see things that are not so.
func crossChecked(p *Policy, found Diagnostics) Diagnostics {
	broken := brokenSections(found)
	if slices.Contains(broken, "") {
		return found
	}
	for _, d := range p.Validate() {
		if !slices.ContainsFunc(dependencies(section(d.Path)), func(s string) bool { return slices.Contains(broken, s) }) {
			found = append(found, d)
		}
	}
	return tidy(found)
}

// brokenSections are the keys of the top level below which something could not
// be read; "" is the file as a whole.
func brokenSections(found Diagnostics) []string {
	var broken []string
	for _, d := range found {
		if !d.Warning {
			broken = append(broken, section(d.Path))
		}
	}
	return broken
}

// section is the key of the top level that a path leads into. A key that is
// none could have been any.
func section(path string) string {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	switch name := path[:end]; name {
	case "tenant_files":
		return "tenants"
	case "version", "mode", "client_ip", "identity", "edge", "limits", "plans", "tenants", "routes", "responses", "notifications":
		return name
	}
	return ""
}

// dependencies are the sections that a finding about one section may rest on.
func dependencies(section string) []string {
	deciding := []string{"identity", "limits", "plans", "tenants", "routes"}
	switch section {
	case "version", "mode", "responses", "notifications":
		return []string{section}
	case "client_ip":
		return []string{"client_ip", "edge"}
	case "edge":
		return []string{"client_ip", "identity", "edge", "routes"}
	case "routes":
		return append(deciding, "edge")
	}
	return deciding
}
