package policies

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// ruleNGINX is no rule of a policy alone: it takes NGINX to break it.
const ruleNGINX = "nginx"

// Refused is the finding that NGINX refuses what the place at path was rendered
// to: rendered is FILE:LINE of ours, or empty, text is that line, and message
// what NGINX says. It points to the value at or below path that the message or
// the line speaks of, else to path, or the file as a whole.
func (p *Policy) Refused(path, rendered, text, message string) Diagnostic {
	pos, path := p.spokenOf(path, message, text)
	if path == "" {
		pos = Pos{File: pos.File}
	}
	if rendered != "" {
		message += " (" + rendered + ")"
	}
	return Diagnostic{Pos: pos, Path: path, Rule: ruleNGINX,
		Message: fmt.Sprintf("nginx refuses what this is rendered to: %s; want a value that NGINX can read", message)}
}

// spokenOf finds the value below a path that the first of the texts speaks of
// that speaks of any: the longest that it holds.
func (p *Policy) spokenOf(path string, texts ...string) (Pos, string) {
	s, node, way := p.sources.enter(steps(path))
	budget := lookupBudget
	for _, st := range way {
		if node == nil {
			break
		}
		_, node = child(follow(node), st, &budget)
	}
	if s == nil || node == nil {
		return p.pos(path), path
	}
	for _, text := range texts {
		best := spoken{lists: p.sources.lists, text: text, budget: &budget}
		best.look(s, node, path)
		if best.length > 0 {
			return best.pos, best.path
		}
	}
	return p.pos(path), path
}

// spoken is the longest value that a text holds, of the policy or of a list file.
type spoken struct {
	lists  map[FileName]*source
	text   string
	budget *int

	length int
	pos    Pos
	path   string
}

// shortest is the length from which a value in a text is no accident.
const shortest = 4

func (b *spoken) look(s *source, n *yaml.Node, path string) {
	n = follow(n)
	if *b.budget--; *b.budget < 0 {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		b.take(n.Value, path, func() Pos { return s.at(n) })
		if list := b.lists[FileName(n.Value)]; list != nil && strings.HasSuffix(path, ".file") {
			b.lines(list, strings.TrimSuffix(path, ".file"))
		}
	case yaml.SequenceNode:
		for i, e := range n.Content {
			b.look(s, e, elem(path, i))
		}
	case yaml.MappingNode:
		for _, e := range entries(n, b.budget) {
			b.look(s, e.value, field(path, e.key.Value))
		}
	}
}

// lines looks at the entries of a list file.
func (b *spoken) lines(list *source, path string) {
	for i := 1; i <= len(list.starts); i++ {
		if value, col := listLine(list.line(i)); value != "" {
			b.take(value, path, func() Pos { return Pos{File: list.name, Line: i, Col: col} })
		}
	}
}

// take keeps a value if the text holds it, as the policy or as NGINX writes it.
func (b *spoken) take(value, path string, pos func() Pos) {
	if len(value) < shortest || len(value) <= b.length {
		return
	}
	var re Regex
	if strings.Contains(b.text, value) || re.UnmarshalText([]byte(value)) == nil && strings.Contains(b.text, re.NGINX()) {
		b.length, b.pos, b.path = len(value), pos(), path
	}
}
