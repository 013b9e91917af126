package policies

import (
	"cmp"
	"fmt"
	"slices"
)

// Pos is a place in a file: line and column from 1. Column counts bytes, as
// editors that speak of bytes do. The zero Pos means the file as a whole.
type Pos struct {
	File      string
	Line, Col int
}

// Diagnostic is one finding about a policy.
type Diagnostic struct {
	Pos     Pos
	Path    string // routes[2].match.prefix; empty for findings about the file
	Message string // what is wrong; want ...
	Rule    string // the rule's id
	Warning bool   // else an error
}

// String is the line that people and editors read:
// file:line:col: path: message [rule].
func (d Diagnostic) String() string {
	s := d.Pos.File
	if d.Pos.Line > 0 {
		s = fmt.Sprintf("%s:%d:%d", s, d.Pos.Line, d.Pos.Col)
	}
	if d.Path != "" {
		s += ": " + d.Path
	}
	rule := d.Rule
	if d.Warning {
		rule = "warning " + rule
	}
	return fmt.Sprintf("%s: %s [%s]", s, d.Message, rule)
}

// Diagnostics are the findings of one run.
type Diagnostics []Diagnostic

// HasErrors tells whether any finding is more than a warning.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return !d.Warning })
}

// Sort puts findings in the order of files, lines and columns.
func (ds Diagnostics) Sort() {
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Pos.File, b.Pos.File),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Message, b.Message),
		)
	})
}

// findings collects what is found about a policy, each with its place.
type findings struct {
	policy *Policy
	list   Diagnostics
}

// errorf adds an error about the value at path.
func (f *findings) errorf(path, rule, format string, args ...any) {
	f.list = append(f.list, Diagnostic{Pos: f.policy.pos(path), Path: path, Message: fmt.Sprintf(format, args...), Rule: rule})
}

// warnf adds a warning about the value at path.
func (f *findings) warnf(path, rule, format string, args ...any) {
	f.errorf(path, rule, format, args...)
	f.list[len(f.list)-1].Warning = true
}
