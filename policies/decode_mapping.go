package policies

import (
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// fieldSpec is a key of a mapping that has fixed keys.
type fieldSpec struct {
	key   string
	index int
	typ   reflect.Type
}

// owner is a mapping with fixed keys that the walk is inside of.
type owner struct {
	path string
	typ  reflect.Type
}

// fieldsOf are the keys that a struct knows.
func (d *decoder) fieldsOf(t reflect.Type) []fieldSpec {
	if known, ok := d.fields[t]; ok {
		return known
	}
	known := fieldsOf(t)
	d.fields[t] = known
	return known
}

func fieldsOf(t reflect.Type) []fieldSpec {
	var known []fieldSpec
	for i := range t.NumField() {
		f := t.Field(i)
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			known = append(known, fieldSpec{key, i, f.Type})
		}
	}
	return known
}

// keys are the entries of a mapping, each key once and each a plain text.
func (d *decoder) keys(n *yaml.Node, path string) []entry {
	seen := map[string]*yaml.Node{}
	var out []entry
	before := d.budget
	all := entries(n, &d.budget)
	if own := len(n.Content) / 2; d.depth == 0 {
		d.budget = before - max(0, len(all)-own)
	}
	if d.budget < 0 {
		d.spent(n, path)
		return nil
	}
	d.checkMerges(n, path)
	for _, e := range all {
		key := e.key
		if key.Kind == yaml.AliasNode {
			key = follow(key)
		}
		switch first := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			d.errorf(e.key, path, ruleShape, "a key is %s; want plain text", formOf(key))
		case key.Style&yaml.TaggedStyle != 0:
			d.errorf(e.key, path, ruleTag, "the tag %s is not part of the language; want the key alone", show(key.Tag))
		case first != nil:
			d.errorf(e.key, field(path, key.Value), ruleDuplicate, "%s is here twice, first in line %d; want it once", show(key.Value), first.Line)
		default:
			seen[key.Value] = e.key
			out = append(out, entry{key, e.value})
		}
	}
	return out
}

// checkMerges says what is wrong with the merge keys of a mapping.
func (d *decoder) checkMerges(n *yaml.Node, path string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Tag != mergeTag {
			continue
		}
		from := n.Content[i+1]
		parts := []*yaml.Node{from}
		if list := follow(from); list.Kind == yaml.SequenceNode {
			parts = list.Content
		}
		for _, m := range parts {
			switch target := follow(m); {
			case target.Kind != yaml.MappingNode:
				d.errorf(m, path, ruleAlias, "<< merges %s; want an alias of a mapping, or a list of such aliases", formOf(target))
			case target == n:
				d.errorf(m, path, ruleAlias, "<< merges the mapping that it stands in; want an anchor that ended before")
			}
		}
	}
}

// mapping decodes a mapping with fixed keys.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) bool {
	if !d.is(n, yaml.MappingNode, v.Type(), path) {
		return false
	}
	known := d.fieldsOf(v.Type())
	if d.seen != nil {
		d.seen.sawMapping(n, known)
	}
	d.owners = append(d.owners, owner{path, v.Type()})
	for _, e := range d.keys(n, path) {
		f := find(known, e.key.Value)
		if f == nil {
			d.unknown(n, e, path)
			continue
		}
		d.field(e, v.Field(f.index), field(path, f.key))
	}
	d.owners = d.owners[:len(d.owners)-1]
	d.complete(n, v, path)
	return true
}

// field decodes the value of a key. A value that is not written has no place of
// its own: its key is shown.
func (d *decoder) field(e entry, v reflect.Value, path string) {
	value := e.value
	if isNull(value) && value.Value == "" {
		empty := *value
		empty.Line, empty.Column = e.key.Line, e.key.Column
		value = &empty
	}
	d.value(value, v, path)
}

func find(known []fieldSpec, key string) *fieldSpec {
	for i := range known {
		if known[i].key == key {
			return &known[i]
		}
	}
	return nil
}

// unknown reports a key that the mapping does not know.
func (d *decoder) unknown(n *yaml.Node, e entry, path string) {
	key := e.key.Value
	if path == "" && strings.HasPrefix(key, "x-") {
		return // free space
	}
	at := field(path, key)
	if looksSecret(key) {
		at = path
	}
	if isNull(e.value) && e.value.Value == "" && n.Style&yaml.FlowStyle != 0 {
		d.errorf(e.key, at, ruleUnknown, "%s is no key here and has no value: a comma ends a value inside { }; quote the value before it", show(key))
		return
	}
	d.errorf(e.key, at, ruleUnknown, "%s is no key here%s", show(key), d.keyHint(key))
}

// named decodes a mapping whose keys are names that the file gives.
func (d *decoder) named(n *yaml.Node, v reflect.Value, path string) bool {
	t := v.Type()
	if !d.is(n, yaml.MappingNode, t, path) {
		return false
	}
	all := d.keys(n, path)
	if len(all) == 0 && t.Elem() == reflect.TypeFor[Condition]() {
		d.errorf(n, path, ruleEmptyList, "there is no condition here; leave the key out, or want at least one")
		return false
	}
	out := reflect.MakeMapWithSize(t, len(all))
	folded := map[string]*yaml.Node{}
	for _, e := range all {
		at := field(path, e.key.Value)
		key, value := reflect.New(t.Key()).Elem(), reflect.New(t.Elem()).Elem()
		if err := d.text(e.key, key, at); err != nil {
			d.errorf(e.key, at, ruleOf(err), "%s", err)
			continue
		}
		d.similar(folded, e.key, t.Key(), at)
		d.field(e, value, at)
		out.SetMapIndex(key, value)
	}
	v.Set(out)
	return true
}

// similar finds names that differ in capitals only. Headers are the same then;
// other names are at least easy to mistake.
func (d *decoder) similar(folded map[string]*yaml.Node, key *yaml.Node, t reflect.Type, path string) {
	low := strings.ToLower(key.Value)
	first := folded[low]
	switch {
	case first == nil:
		folded[low] = key
	case t == reflect.TypeFor[HeaderName]() || t == reflect.TypeFor[Language]():
		d.errorf(key, path, ruleDuplicate, "%s and %s (line %d) are the same; want one of them", show(key.Value), show(first.Value), first.Line)
	default:
		d.errorf(key, path, ruleSimilar, "%s and %s (line %d) differ in capitals only; want names that are easy to tell apart", show(key.Value), show(first.Value), first.Line)
		d.list[len(d.list)-1].Warning = true
	}
}
