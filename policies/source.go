package policies

import (
	"bytes"
	"sort"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// source is one YAML file: its text and the tree that was read from it.
type source struct {
	name   string
	text   []byte // without a byte order mark
	starts []int  // where each line of text begins
	root   *yaml.Node
}

// sources are the trees behind a policy: its own file, then the tenant files.
type sources struct {
	dir     string // what the files beside the policy are relative to
	main    *source
	tenants []tenantSource
	lists   map[FileName]*source // list files that could be read
	read    []FileName           // every file that was asked for
	globbed []string             // every pattern
}

// tenantSource is a tenant file, whose first tenant has index first in Policy.Tenants.
type tenantSource struct {
	*source
	first int
}

// lookupBudget bounds one lookup: merge keys can make a small tree wide.
const lookupBudget = 100_000

func newSource(name string, text []byte) *source {
	s := &source{name: name, text: bytes.TrimPrefix(text, []byte("\ufeff")), starts: []int{0}}
	for i, b := range s.text {
		if b == '\n' {
			s.starts = append(s.starts, i+1)
		}
	}
	return s
}

// line is the text of a line, counted from 1, without its end.
func (s *source) line(n int) []byte {
	if n < 1 || n > len(s.starts) {
		return nil
	}
	end := len(s.text)
	if n < len(s.starts) {
		end = s.starts[n] - 1
	}
	return bytes.TrimSuffix(s.text[s.starts[n-1]:end], []byte("\r"))
}

// at is where a node begins. The parser counts columns in characters, we count bytes.
func (s *source) at(n *yaml.Node) Pos {
	if n == nil || n.Line == 0 {
		return Pos{File: s.name}
	}
	line, col := s.line(n.Line), 0
	for range n.Column - 1 {
		if col >= len(line) {
			break
		}
		_, size := utf8.DecodeRune(line[col:])
		col += size
	}
	return Pos{File: s.name, Line: n.Line, Col: col + 1}
}

// offset is where a byte of the text stands.
func (s *source) offset(i int) Pos {
	line := sort.SearchInts(s.starts, i+1)
	return Pos{File: s.name, Line: line, Col: i - s.starts[line-1] + 1}
}

// pos looks a place up in the files behind a policy. What is not there is
// found at the nearest thing above it: a missing field at its parent's key.
func (p *Policy) pos(path string) Pos {
	s, node, way := p.sources.enter(steps(path))
	if s == nil {
		return Pos{}
	}
	if node == nil || node.Line == 0 {
		return Pos{File: s.name}
	}
	found, budget := node, lookupBudget
	for _, st := range way {
		key, value := child(node, st, &budget)
		if value == nil {
			break
		}
		found, node = value, follow(value)
		if key != nil && node.Kind != yaml.ScalarNode && node.Style&yaml.FlowStyle == 0 && value.Kind != yaml.AliasNode {
			found = key // a block begins on a later line
		}
	}
	return s.at(found)
}

// enter finds the file that a path leads into, the node to start from and the
// steps that are left.
func (t *sources) enter(way []step) (*source, *yaml.Node, []step) {
	if t.main == nil {
		return nil, nil, nil
	}
	if len(way) >= 2 && way[0].Key == "tenants" && way[1].Key == "" {
		for i := len(t.tenants) - 1; i >= 0; i-- {
			if f := t.tenants[i]; way[1].Index >= f.first {
				way[1].Index -= f.first
				return f.source, f.root, way[1:]
			}
		}
	}
	return t.main, t.main.root, way
}

// child takes one step down from a node, with the key when there is one.
func child(n *yaml.Node, st step, budget *int) (key, value *yaml.Node) {
	switch {
	case n.Kind == yaml.SequenceNode && st.Key == "" && st.Index < len(n.Content):
		return nil, n.Content[st.Index]
	case n.Kind == yaml.MappingNode && st.Key != "":
		for _, e := range entries(n, budget) {
			if e.key.Value == st.Key {
				return e.key, e.value
			}
		}
	}
	return nil, nil
}

// follow is the node that an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// entry is a key of a mapping and its value.
type entry struct{ key, value *yaml.Node }

// entries are the keys of a mapping: its own in order, doubles included, then
// those that merge keys bring and that are not among them yet.
func entries(n *yaml.Node, budget *int) []entry {
	var own []entry
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag == mergeTag {
			merges = append(merges, n.Content[i+1])
			continue
		}
		own = append(own, entry{n.Content[i], n.Content[i+1]})
	}
	*budget -= len(own)
	if len(merges) == 0 {
		return own
	}
	seen := map[string]bool{}
	for _, e := range own {
		seen[e.key.Value] = true
	}
	m := merger{entries: own, seen: seen, within: map[*yaml.Node]bool{n: true}, budget: budget}
	for _, from := range merges {
		m.add(follow(from))
	}
	return m.entries
}

// mergeTag is how the parser marks an unquoted << as a key.
const mergeTag = "!!merge"

// merger collects the keys that merge keys bring.
type merger struct {
	entries []entry
	seen    map[string]bool     // keys that are there already
	within  map[*yaml.Node]bool // mappings that are being merged: an alias may stand inside of its own anchor
	budget  *int
}

// add takes the keys of what a merge key names: a mapping, or a list of
// mappings of which the first that has a key gives it.
func (m *merger) add(from *yaml.Node) {
	if *m.budget--; *m.budget < 0 || m.within[from] {
		return
	}
	m.within[from] = true
	defer delete(m.within, from)
	var nested []*yaml.Node
	switch from.Kind {
	case yaml.SequenceNode:
		nested = from.Content
	case yaml.MappingNode:
		for i := 0; i+1 < len(from.Content); i += 2 {
			*m.budget--
			switch key := from.Content[i]; {
			case key.Tag == mergeTag:
				nested = append(nested, from.Content[i+1])
			case !m.seen[key.Value]:
				m.seen[key.Value] = true
				m.entries = append(m.entries, entry{key, from.Content[i+1]})
			}
		}
	}
	for _, n := range nested {
		m.add(follow(n))
	}
}
