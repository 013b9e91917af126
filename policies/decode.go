package policies

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"gopkg.in/yaml.v3"
)

// decoder walks a YAML tree along the types of the language and fills them. It
// goes on after a mistake, so that one run tells all of them.
type decoder struct {
	policy *Policy
	src    *source
	files  files
	list   Diagnostics

	fields map[reflect.Type][]fieldSpec
	lists  map[FileName]*source // list files that were read
	owners []owner              // the mappings that we are in, outermost first
	budget int                  // nodes that aliases and merge keys may still bring
	full   bool                 // and it was said that they bring too many
	seen   *reading             // notes what is read, for Format; else nil
	depth  int                  // of aliases
}

// expansion is how many nodes aliases may bring altogether.
const expansion = 1_000_000

// union is a type that the file writes in several ways.
type union interface {
	decode(d *decoder, n *yaml.Node, path string) bool
}

// errorf adds an error at a node.
func (d *decoder) errorf(n *yaml.Node, path, rule, format string, args ...any) {
	d.list = append(d.list, Diagnostic{Pos: d.src.at(n), Path: path, Message: fmt.Sprintf(format, args...), Rule: rule})
}

// value decodes a node into v and tells whether v now holds something.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) bool {
	if n.Kind == yaml.AliasNode {
		d.depth++
		defer func() { d.depth-- }()
		n = follow(n)
	}
	if d.depth > 0 {
		if d.budget--; d.budget < 0 {
			return d.spent(n, path)
		}
	}
	if v.Kind() == reflect.Pointer {
		fresh := reflect.New(v.Type().Elem())
		if !d.value(n, fresh.Elem(), path) {
			return false
		}
		v.Set(fresh)
		return true
	}
	if n.Style&yaml.TaggedStyle != 0 {
		d.errorf(n, path, ruleTag, "the tag %s is not part of the language; want the value alone", show(n.Tag))
		return false
	}
	if isNull(n) {
		what := "key"
		if strings.HasSuffix(path, "]") {
			what = "entry"
		}
		d.errorf(n, path, ruleNull, "there is no value; leave the %s out, or write %s", what, wantOf(v.Type()))
		return false
	}
	if u, ok := v.Addr().Interface().(union); ok {
		return u.decode(d, n, path)
	}
	return d.shaped(n, v, path)
}

// shaped decodes what has one form in the file.
func (d *decoder) shaped(n *yaml.Node, v reflect.Value, path string) bool {
	if _, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return d.scalar(n, v, path)
	}
	switch v.Kind() {
	case reflect.Struct:
		return d.mapping(n, v, path)
	case reflect.Map:
		return d.named(n, v, path)
	case reflect.Slice:
		return d.sequence(n, v, path)
	}
	return d.scalar(n, v, path)
}

// spent says once that aliases brought too much.
func (d *decoder) spent(n *yaml.Node, path string) bool {
	if !d.full {
		d.full = true
		d.errorf(n, path, ruleAlias, "aliases and merge keys bring more than %d values; want a policy that says them once", expansion)
	}
	return false
}

// is tells whether a node has the form that a type needs, and says so when not.
func (d *decoder) is(n *yaml.Node, kind yaml.Kind, t reflect.Type, path string) bool {
	if n.Kind == kind {
		return true
	}
	d.errorf(n, path, ruleShape, "this is %s; want %s", formOf(n), wantOf(t))
	return false
}

// formOf names the form of a node for a message.
func formOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	if looksSecret(n.Value) {
		return "a single value"
	}
	return "the single value " + show(n.Value)
}

// isNull tells whether nothing is written, or one of YAML's words for nothing.
func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Style == 0
}

// scalar decodes a single value from its text.
func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) bool {
	if !d.is(n, yaml.ScalarNode, v.Type(), path) {
		return false
	}
	if n.Value == "" {
		d.errorf(n, path, ruleNull, "the value is empty; leave the key out, or write %s", wantOf(v.Type()))
		return false
	}
	if err := d.text(n, v, path); err != nil {
		hint := d.scalarHint(n, v)
		if strings.Contains(err.Error(), "single quotes") {
			hint = ""
		}
		d.errorf(n, path, ruleOf(err), "%s%s", err, hint)
		return false
	}
	if d.seen != nil {
		d.seen.sawScalar(n, v)
	}
	return true
}

// text puts the text of a scalar into v.
func (d *decoder) text(n *yaml.Node, v reflect.Value, path string) error {
	if path == "client_ip.header" && fold(n.Value) == fold(string(ProxyProtocol)) {
		if n.Value != string(ProxyProtocol) {
			return wrongf(ruleHeader, "%s is neither a header nor the word; want %s", show(n.Value), ProxyProtocol)
		}
		v.SetString(n.Value) // the one word that is no header
		return nil
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(n.Value))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		b, err := truth(n.Value)
		v.SetBool(b)
		return err
	case reflect.Int:
		const most = 1<<31 - 1
		i, err := whole(ruleNumber, n.Value, most)
		v.SetInt(i)
		return err
	default:
		panic("BUG: a type without a form: " + v.Type().String())
	}
	return nil
}

// truth reads true or false, and nothing else that YAML once took for them.
func truth(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	switch strings.ToLower(text) {
	case "yes", "on", "y", "true", "1":
		return false, wrongf(ruleBool, "%s is not how yes is said here; want true", show(text))
	case "no", "off", "n", "false", "0":
		return false, wrongf(ruleBool, "%s is not how no is said here; want false", show(text))
	}
	return false, wrongf(ruleBool, "%s is neither; want true or false", show(text))
}

// scalarHint adds what YAML may have done to a refused value.
func (d *decoder) scalarHint(n *yaml.Node, v reflect.Value) string {
	_, regex := v.Addr().Interface().(*Regex)
	if regex && n.Style&yaml.DoubleQuotedStyle != 0 && strings.Contains(string(d.src.line(n.Line)), `\`) {
		return ` (in "double quotes" YAML reads the backslash itself)`
	}
	return ""
}

// sequence decodes a list.
func (d *decoder) sequence(n *yaml.Node, v reflect.Value, path string) bool {
	if !d.is(n, yaml.SequenceNode, v.Type(), path) {
		return false
	}
	if len(n.Content) == 0 && selects(v.Type().Elem()) {
		return d.emptyList(n, path)
	}
	out := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	for i, c := range n.Content {
		if d.joins(c, elem(path, i)) {
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if d.value(c, item, elem(path, i)) || item.Kind() == reflect.Struct {
			out = reflect.Append(out, item)
		}
	}
	v.Set(out)
	return true
}

// joins finds an alias of a list as an entry of another list. In no type of the
// language a list holds lists.
func (d *decoder) joins(n *yaml.Node, path string) bool {
	if n.Kind != yaml.AliasNode || follow(n).Kind != yaml.SequenceNode {
		return false
	}
	d.errorf(n, path, ruleAlias, "*%s is a list inside a list: YAML replaces lists and never joins them; want its entries written out, or a list file", n.Value)
	return true
}

// selects tells whether a list of such entries chooses requests or clients. Its
// empty list could mean all of them as well as none.
func selects(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[Name](), reflect.TypeFor[Method](), reflect.TypeFor[Host](), reflect.TypeFor[SourceSpec]():
		return true
	}
	return false
}

func (d *decoder) emptyList(n *yaml.Node, path string) bool {
	d.errorf(n, path, ruleEmptyList, "the list is empty, which could mean everything or nothing; leave the key out, or want at least one entry")
	return false
}
