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
		best := spoken{}
		best.look(node, path, text, &budget)
		if best.node != nil {
			return s.at(best.node), best.path
		}
	}
	return p.pos(path), path
}

// spoken is the longest scalar that a text holds.
type spoken struct {
	node *yaml.Node
	path string
}

// holds tells whether a text has a value in it, as the policy or NGINX writes it.
func holds(text, value string) bool {
	if len(value) < shortest {
		return false
	}
	var re Regex
	return strings.Contains(text, value) || re.UnmarshalText([]byte(value)) == nil && strings.Contains(text, re.NGINX())
}

// shortest is the length from which a value in a text is no accident.
const shortest = 4

func (b *spoken) look(n *yaml.Node, path, text string, budget *int) {
	n = follow(n)
	if *budget--; *budget < 0 {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		longer := b.node == nil || len(n.Value) > len(b.node.Value)
		if longer && holds(text, n.Value) {
			b.node, b.path = n, path
		}
	case yaml.SequenceNode:
		for i, e := range n.Content {
			b.look(e, elem(path, i), text, budget)
		}
	case yaml.MappingNode:
		for _, e := range entries(n, budget) {
			b.look(e.value, field(path, e.key.Value), text, budget)
		}
	}
}
