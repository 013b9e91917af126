package policies

import (
	"os"
	"path/filepath"
	"testing"

	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"
)

// TestValidateAnything takes the example and the sites apart: whatever is cut
// out, copied or swapped, checking a policy never panics, says the same twice,
// and what it finds no error in can be compiled.
func TestValidateAnything(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/sites/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "testdata/example/policy.yaml", "testdata/example/policy.yaml")
	rapid.Check(t, func(t *rapid.T) {
		file := rapid.SampledFrom(files).Draw(t, "file")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			mutate(t, doc.Content[0])
		}
		changed, err := yaml.Marshal(&doc)
		if err != nil {
			t.Skip("the change is no YAML")
		}
		p, found := ParseIn(filepath.Dir(file), "policy.yaml", changed)
		again := p.Validate()
		if second := p.Validate(); len(second) != len(again) {
			t.Fatalf("found %d, then %d", len(again), len(second))
		}
		if !found.HasErrors() {
			Compile(p)
		}
	})
}

// mutate makes one change somewhere below a node.
func mutate(t *rapid.T, root *yaml.Node) {
	var holders []*yaml.Node
	var leaves []*yaml.Node
	walk(root, func(n *yaml.Node) {
		switch {
		case n.Kind == yaml.ScalarNode:
			leaves = append(leaves, n)
		case len(n.Content) > 0:
			holders = append(holders, n)
		}
	})
	if len(holders) == 0 || len(leaves) == 0 {
		return
	}
	n := rapid.SampledFrom(holders).Draw(t, "holder")
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	i := step * rapid.IntRange(0, len(n.Content)/step-1).Draw(t, "entry")
	switch rapid.SampledFrom([]string{"drop", "double", "swap", "copy", "set"}).Draw(t, "change") {
	case "drop":
		n.Content = append(n.Content[:i:i], n.Content[i+step:]...)
	case "double":
		if step == 1 {
			n.Content = append(n.Content, clone(n.Content[i]))
		}
	case "swap":
		a, b := rapid.SampledFrom(leaves).Draw(t, "a"), rapid.SampledFrom(leaves).Draw(t, "b")
		a.Value, b.Value = b.Value, a.Value
	case "copy":
		other := rapid.SampledFrom(holders).Draw(t, "other")
		if other.Kind == n.Kind && other != n && step == 2 {
			n.Content = append(n.Content[:len(n.Content):len(n.Content)], clone(other.Content[0]), clone(other.Content[1]))
		}
	case "set":
		leaf := rapid.SampledFrom(leaves).Draw(t, "leaf")
		leaf.Value = rapid.SampledFrom([]string{"0", "1", "9007199254740992", "global", "all", "unlimited/month", "0/1m", "1/s", "0.000001/d", "private", "::/0", "/", "free", "true", "shadow"}).Draw(t, "value")
		leaf.Style, leaf.Tag = 0, ""
	}
}

func walk(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, c := range n.Content {
		walk(c, visit)
	}
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, child := range n.Content {
		c.Content = append(c.Content, clone(child))
	}
	return &c
}
