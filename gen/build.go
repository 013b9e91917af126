package gen

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice/policies"
)

// builder turns a compiled policy into views. The first error stays and is
// what Render returns; until then what is built is thrown away.
type builder struct {
	c   *policies.Compiled
	opt Options
	err error

	stamp  Token
	values []block // of queries and cookies, in the order of their first use
	access []block
	keys   []block
	zones  []zone
	limits []edgeLimit // by index of Compiled.Edge
	chains map[string]chain
	named  map[string]bool // values already defined

	// The variables that hold the message in each kind of body, and the parts of
	// the page.
	detail, paragraph, spoken  []string
	head, support, supportLink []string

	geo geoUse

	zoneKilobytes int64

	asked bool // some route asks the service

	family bool // a key needs the client's address family
}

func newBuilder(c *policies.Compiled, opt Options) *builder {
	return &builder{c: c, opt: opt.withDefaults(), chains: map[string]chain{}, named: map[string]bool{}, geo: newGeoUse()}
}

// take passes a token on and keeps the first error.
func (b *builder) take(t Token, err error) Token {
	if err != nil && b.err == nil {
		b.err = err
	}
	return t
}

// newMap begins a map of a source that is a variable or several.
func newMap(source Token, variable string, comments ...string) block {
	return block{Kind: word("map"), Source: source, Variable: word("$" + variable), Comments: commentLines(comments)}
}

func commentLines(lines []string) []Token {
	var out []Token
	for _, l := range lines {
		if l != "" {
			out = append(out, comment(shortened(l)))
		}
	}
	return out
}

// shortened keeps a comment readable, and NGINX able to read it: a comment must
// fit into its buffer, as an argument must.
func shortened(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	end := most
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + " ..."
}

// line adds a line to a block.
func (m *block) line(key, value Token) { m.Entries = append(m.Entries, entry{Key: key, Value: value}) }

// otherwise adds the default, which every block states.
func (m *block) otherwise(value Token) { m.line(word("default"), value) }

// condition is a flag in the source of a map: a variable that is 0 or 1, or a
// literal 0 or 1 when it is known already.
type condition = part

// always and never are conditions that are known.
func always() condition { return condition{lit: "1"} }
func never() condition  { return condition{lit: "0"} }

func isSet(variable string) condition { return condition{variable: variable} }

// join writes parts one after the other as one argument.
func join(parts ...part) Token {
	if len(parts) == 1 && parts[0].variable != "" {
		return variable(parts[0].variable)
	}
	return (&text{parts: parts}).mustToken()
}

// concatenated is join for any number of flags: what would be longer than
// NGINX's longest argument is put together of pieces first.
func (b *builder) concatenated(to *[]block, name string, flags []part) Token {
	const room = maxToken - 2
	var pieces [][]part
	left := 0
	for _, f := range flags {
		size := len(f.lit) + len(f.variable) + len("${}")
		if left < size {
			pieces, left = append(pieces, nil), room
		}
		pieces[len(pieces)-1] = append(pieces[len(pieces)-1], f)
		left -= size
	}
	if len(pieces) == 1 {
		return join(flags...)
	}
	var whole []part
	for i, piece := range pieces {
		m := newMap(none(), name+strconv.Itoa(i+1))
		m.otherwise(join(piece...))
		*to = append(*to, m)
		whole = append(whole, isSet(m.name()))
	}
	return join(whole...)
}

// fewFlags are so many that NGINX finds them in the table of a map.
const fewFlags = 32

// flagsKey is the key of a map over flags, which are digits. A long one must not
// stand in the map's table, whose buckets are 64 bytes.
func flagsKey(flags string) Token {
	if len(flags) > fewFlags {
		return ownRegex("^" + flags + `\z`)
	}
	return own(flags)
}

// both is the condition that all of the flags hold, as one flag: a map over
// their concatenation when it takes more than one variable.
func (b *builder) both(to *[]block, name string, flags ...condition) condition {
	var open []part
	for _, f := range flags {
		switch f {
		case never():
			return never()
		case always():
		default:
			open = append(open, f)
		}
	}
	switch len(open) {
	case 0:
		return always()
	case 1:
		return open[0]
	}
	m := newMap(b.concatenated(to, name+"__part", open), name)
	m.otherwise(word("0"))
	all := word(strings.Repeat("1", len(open)))
	if len(open) > fewFlags {
		all = flagsKey(all.text)
	}
	m.line(all, word("1"))
	*to = append(*to, m)
	return isSet(name)
}
