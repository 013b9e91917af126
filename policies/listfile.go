package policies

import (
	"bytes"
	"encoding"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// decode reads a list whose entries may be files.
func (l *List[T]) decode(d *decoder, n *yaml.Node, path string) bool {
	if !d.is(n, yaml.SequenceNode, reflect.TypeFor[List[T]](), path) {
		return false
	}
	if len(n.Content) == 0 {
		return d.emptyList(n, path)
	}
	out := make(List[T], 0, len(n.Content))
	for i, c := range n.Content {
		if d.joins(c, elem(path, i)) {
			continue
		}
		var e Entry[T]
		if e.decode(d, c, elem(path, i)) {
			out = append(out, e)
		}
	}
	*l = out
	return true
}

// decode reads one entry: a value, or {file: F} with the values of that file.
func (e *Entry[T]) decode(d *decoder, n *yaml.Node, path string) bool {
	if follow(n).Kind != yaml.MappingNode {
		return d.value(n, reflect.ValueOf(&e.Value).Elem(), path)
	}
	var spec struct {
		File FileName `yaml:"file"`
	}
	if !d.value(n, reflect.ValueOf(&spec).Elem(), path) || spec.File == "" {
		return false
	}
	e.File = spec.File
	f := d.listFile(e.File, n, path)
	if f == nil {
		return true
	}
	found := false
	for i := 1; i <= len(f.starts); i++ {
		text, col := listLine(f.line(i))
		if text == "" {
			continue
		}
		found = true
		it := Item[T]{Line: i}
		if err := any(&it.Value).(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			d.list = append(d.list, Diagnostic{Pos: Pos{f.name, i, col}, Path: path, Message: err.Error(), Rule: ruleOf(err)})
			continue
		}
		e.Items = append(e.Items, it)
	}
	if !found {
		d.list = append(d.list, Diagnostic{Pos: Pos{File: f.name}, Path: path, Rule: ruleEmptyList,
			Message: "the list file has no entry, which could mean everything or nothing; want at least one, or no such file in the list"})
	}
	return true
}

// listLine is the entry of a line and the column it begins in. A # begins a
// comment at the start of a line, and after a space.
func listLine(line []byte) (string, int) {
	text := strings.TrimLeft(string(line), " \t")
	col := len(line) - len(text) + 1
	for i := range len(text) {
		if text[i] == '#' && (i == 0 || text[i-1] == ' ' || text[i-1] == '\t') {
			text = text[:i]
			break
		}
	}
	return strings.TrimRight(text, " \t"), col
}

// listFile reads a list file once; nil when there is none to be had.
func (d *decoder) listFile(name FileName, n *yaml.Node, path string) *source {
	if f, ok := d.lists[name]; ok {
		return f
	}
	d.lists[name] = nil
	if d.files.read == nil {
		d.errorf(n, path, ruleRead, "%s is a file, and files cannot be read here; want the entries themselves", show(string(name)))
		return nil
	}
	text, err := d.files.read(name)
	if err != nil {
		d.errorf(n, path, ruleRead, "%s", readProblem(err))
		return nil
	}
	f := newSource(d.policy.File(name), text)
	if begin := bytes.ToLower(bytes.TrimSpace(f.text)); bytes.HasPrefix(begin, []byte("<!doctype")) || bytes.HasPrefix(begin, []byte("<html")) || bytes.HasPrefix(begin, []byte("<?xml")) {
		d.list = append(d.list, Diagnostic{Pos: Pos{f.name, 1, 1}, Path: path, Rule: ruleRead,
			Message: "this is a web page, no list; want one entry a line (the download has failed?)"})
		return nil
	}
	if bad := encoding8(f); bad != nil {
		bad.Path = path
		d.list = append(d.list, *bad)
		return nil
	}
	d.lists[name] = f
	return f
}
