package policies

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"
)

// Format gives a policy, or a file that tenant_files names, its canonical form:
// keys in the order of the language, values in their usual spelling, no spaces at
// the ends of lines. Comments, blank lines, lists, names and everything that the
// writer has laid out stay as they are, and so does what the policy means: a step
// that would change it is left out.
//
// Mappings with an anchor or an alias in them keep their order, since an alias
// must follow its anchor. A file that cannot be read is not formatted: the
// findings say why. Files that it names are not looked at.
func Format(name string, text []byte) ([]byte, Diagnostics) {
	r := readForm(name, text)
	if r.found.HasErrors() {
		return nil, r.found
	}
	for _, step := range []func(*reading) []byte{(*reading).spelled, (*reading).arranged, (*reading).trimmed} {
		next := readForm(name, step(r))
		if !next.found.HasErrors() && reflect.DeepEqual(next.value, r.value) {
			r = next
		}
	}
	return r.src.text, nil
}

// reading is a file with what the decoder saw in it.
type reading struct {
	src   *source
	value any // *Policy or []TenantSpec
	found Diagnostics

	scalars  []spelling
	mappings map[*yaml.Node][]fieldSpec
}

// spelling is a value and how its type writes it.
type spelling struct {
	node *yaml.Node
	want string
}

// sawScalar notes a value that was read.
func (r *reading) sawScalar(n *yaml.Node, v reflect.Value) {
	if s, ok := v.Addr().Interface().(fmt.Stringer); ok {
		r.scalars = append(r.scalars, spelling{n, s.String()})
	}
}

// sawMapping notes a mapping with fixed keys.
func (r *reading) sawMapping(n *yaml.Node, known []fieldSpec) { r.mappings[n] = known }

// readForm reads a file without those that it names.
func readForm(name string, text []byte) *reading {
	r := &reading{mappings: map[*yaml.Node][]fieldSpec{}}
	r.src, r.found = readTree(name, text, "a policy that begins with version: 1")
	if len(r.found) > 0 {
		return r
	}
	p := &Policy{}
	d := &decoder{
		policy: p, src: r.src, seen: r, budget: expansion,
		fields: map[reflect.Type][]fieldSpec{}, lists: map[FileName]*source{},
		files: files{read: func(FileName) ([]byte, error) { return nil, nil }},
	}
	if r.src.root.Kind == yaml.SequenceNode {
		d.value(r.src.root, reflect.ValueOf(&p.Tenants).Elem(), "tenants")
		r.value = p.Tenants
	} else {
		d.value(r.src.root, reflect.ValueOf(p).Elem(), "")
		d.version()
		r.value = p
	}
	// What is said of the files that the policy names is said of nothing here.
	for _, f := range d.list {
		if f.Pos.File == name {
			r.found = append(r.found, f)
		}
	}
	r.found = tidy(r.found)
	return r
}

// spelled is the text with every value as its type writes it. A value that spans
// lines, or has escapes, stays as it is.
func (r *reading) spelled() []byte {
	edits := map[int]spelling{} // by offset: an alias is seen more than once
	for _, s := range r.scalars {
		if at, raw := r.raw(s.node); raw != "" && s.want != s.node.Value && s.want != "" {
			edits[at] = s
		}
	}
	var out bytes.Buffer
	last := 0
	for _, at := range slices.Sorted(maps.Keys(edits)) {
		s := edits[at]
		_, raw := r.raw(s.node)
		want := s.want
		switch {
		case raw != s.node.Value:
			want = raw[:1] + want + raw[:1]
		case want[0] == ':':
			want = `"` + want + `"` // which YAML would take for a key's colon
		}
		out.Write(r.src.text[last:at])
		out.WriteString(want)
		last = at + len(raw)
	}
	out.Write(r.src.text[last:])
	return out.Bytes()
}

// raw is where a value stands and how it is written there, quotes included; empty
// when it is not written in one piece.
func (r *reading) raw(n *yaml.Node) (int, string) {
	pos := r.src.at(n)
	if n.Line == 0 || n.Kind != yaml.ScalarNode || n.Anchor != "" {
		return 0, ""
	}
	at := r.src.starts[pos.Line-1] + pos.Col - 1
	for _, quote := range []string{"", `"`, "'"} {
		if raw := quote + n.Value + quote; bytes.HasPrefix(r.src.text[at:], []byte(raw)) {
			return at, raw
		}
	}
	return 0, ""
}

// trimmed is the text with lines that end where their last word does, and one end.
func (r *reading) trimmed() []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(bytes.TrimRight(r.src.text, " \t\r\n")) {
		out.Write(bytes.TrimRight(line, " \t\r\n"))
		out.WriteByte('\n')
	}
	return out.Bytes()
}
