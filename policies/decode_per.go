package policies

import (
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"
)

func (p *Per) decode(d *decoder, n *yaml.Node, path string) bool {
	if n.Kind != yaml.SequenceNode {
		var dim Dim
		if !dim.decode(d, n, path) {
			return false
		}
		*p = Per{dim}
		return true
	}
	if len(n.Content) == 0 {
		d.errorf(n, path, ruleEmptyList, "the list is empty; want %s (global counts everybody together)", wantOf(reflect.TypeFor[Per]()))
		return false
	}
	return d.sequence(n, reflect.ValueOf((*[]Dim)(p)).Elem(), path)
}

// dimWords are the dimensions that a single word names.
func dimWords() []string {
	return []string{"ip", "country", "asn", "server", "route", "global", "key", "tenant", "user", "scope"}
}

func (m *Dim) decode(d *decoder, n *yaml.Node, path string) bool {
	t := reflect.TypeFor[Per]()
	switch n.Kind {
	case yaml.MappingNode:
		return m.decodeValue(d, n, path)
	case yaml.ScalarNode:
		if kind := DimKind(n.Value); slices.Contains([]DimKind{DimHeader, DimCookie, DimQuery}, kind) {
			d.errorf(n, path, ruleShape, "the %s needs its name; want {%s: NAME}", kind, kind)
			return false
		}
		m.Kind = DimKind(n.Value)
		return d.word(n, t, path, dimWords()...)
	}
	return d.is(n, yaml.ScalarNode, t, path)
}

// decodeValue reads {header: N}, {cookie: N} or {query: N, capture: R}.
func (m *Dim) decodeValue(d *decoder, n *yaml.Node, path string) bool {
	var spec struct {
		Header  HeaderName `yaml:"header"`
		Cookie  ParamName  `yaml:"cookie"`
		Query   ParamName  `yaml:"query"`
		Capture *Regex     `yaml:"capture"`
	}
	before := len(d.list)
	d.mapping(n, reflect.ValueOf(&spec).Elem(), path)
	if len(d.list) > before {
		return false
	}
	said := 0
	for kind, name := range map[DimKind]string{DimHeader: string(spec.Header), DimCookie: string(spec.Cookie), DimQuery: string(spec.Query)} {
		if name != "" {
			said++
			m.Kind, m.Name = kind, name
		}
	}
	switch {
	case said != 1:
		d.errorf(n, path, ruleChoice, "want one of {header: N}, {cookie: N} and {query: N}; several are a list")
	case spec.Capture != nil && m.Kind != DimQuery:
		d.errorf(n, field(path, "capture"), ruleChoice, "a capture takes a part of a query parameter; want it with query alone")
	case spec.Capture != nil && spec.Capture.Go.NumSubexp() == 0:
		d.errorf(n, field(path, "capture"), ruleRegex, "the capture has no group; want ( ) around the part to count by")
	default:
		m.Capture = spec.Capture
		return true
	}
	return false
}
