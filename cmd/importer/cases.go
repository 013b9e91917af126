package importer

import (
	"regexp"
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
)

// cases are what a variable can be, by the one thing that it depends on: maps
// of maps, and maps of geos, are worked out.
type cases struct {
	base      string // the variable at the bottom; the address of a geo
	geo       bool
	list      []oneCase
	otherwise string
}

// oneCase is a key, of a map as it stands there or a network, and the value.
type oneCase struct{ key, value string }

// deepest is how many maps may stand on each other.
const deepest = 8

// cases works out what a variable can be, or says why that is not possible.
func (im *importer) cases(name string, depth int) (cases, string) {
	t := im.tables[name]
	switch {
	case t == nil:
		return cases{}, "$" + name + " is not made by a map or geo"
	case depth > deepest:
		return cases{}, "too many maps stand on each other"
	case t.Ranges:
		return cases{}, "a geo by ranges of addresses; want networks"
	}
	source := nginxconf.Lone(t.Source)
	if source == "" {
		return cases{}, "a map of several things together (" + t.Source + ")"
	}
	if t.Geo() {
		if source != "remote_addr" && source != "binary_remote_addr" {
			return cases{}, "a geo of $" + source + " and not of the client's address"
		}
		c := cases{base: source, geo: true, otherwise: t.Default}
		for _, e := range t.Entries {
			c.list = append(c.list, oneCase{e.Key.Text, e.Value})
		}
		return c, ""
	}
	if im.tables[source] == nil {
		c := cases{base: source, otherwise: t.Default}
		for _, e := range t.Entries {
			c.list = append(c.list, oneCase{e.Key.Text, e.Value})
		}
		return c, ""
	}
	inner, why := im.cases(source, depth+1)
	if why != "" {
		return cases{}, why
	}
	out := cases{base: inner.base, geo: inner.geo, otherwise: look(t, inner.otherwise)}
	for _, k := range inner.list {
		out.list = append(out.list, oneCase{k.key, look(t, k.value)})
	}
	return out, ""
}

// look is what a map gives for a value: the same text without regard to case,
// then the first expression that fits, then the default.
func look(t *nginxconf.Table, value string) string {
	for _, e := range t.Entries {
		if strings.EqualFold(strings.TrimPrefix(e.Key.Text, `\`), value) && !strings.HasPrefix(e.Key.Text, "~") {
			return e.Value
		}
	}
	for _, e := range t.Entries {
		if re, ok := strings.CutPrefix(e.Key.Text, "~"); ok {
			if strings.HasPrefix(re, "*") {
				re = "(?i)" + re[1:]
			}
			if compiled, err := regexp.Compile(namedGroup.ReplaceAllString(re, "(")); err == nil && compiled.MatchString(value) {
				return e.Value
			}
		}
	}
	return t.Default
}

// values are the different values, the empty one left out.
func (c cases) values() []string {
	var out []string
	for _, v := range append([]oneCase{{value: c.otherwise}}, c.list...) {
		if v.value != "" && !slices.Contains(out, v.value) {
			out = append(out, v.value)
		}
	}
	return out
}
