package importer

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
	"sluice/policies"
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

// networks says a condition by networks. The most specific one decides in a
// geo, while a list of the language takes all that lies in it.
func networks(out *counted, c cases, fits func(string) bool, usual bool) string {
	var chosen, rest []string
	for _, k := range c.list {
		n, why := network(k.key)
		switch {
		case why != "":
			return why
		case fits(k.value) != usual:
			chosen = append(chosen, n)
		default:
			rest = append(rest, n)
		}
	}
	for _, inner := range rest {
		for _, outer := range chosen {
			if within(inner, outer) {
				return inner + " is an exception within " + outer + ", which lists do not have; want the networks around it"
			}
		}
	}
	if usual {
		out.except.cidrs = append(out.except.cidrs, unique(chosen)...)
	} else {
		out.only.cidrs = append(out.only.cidrs, unique(chosen)...)
	}
	return ""
}

// network is a network as the language has it.
func network(text string) (string, string) {
	p, err := netip.ParsePrefix(text)
	if err == nil {
		text = p.Masked().String()
	}
	var n policies.Network
	if err := n.UnmarshalText([]byte(text)); err != nil || text == "private" {
		return "", "network " + text + " is none of the language"
	}
	return n.String(), ""
}

func within(inner, outer string) bool {
	in, out := prefix(inner), prefix(outer)
	return in.IsValid() && out.IsValid() && out.Contains(in.Addr()) && out.Bits() <= in.Bits()
}

func prefix(text string) netip.Prefix {
	if p, err := netip.ParsePrefix(text); err == nil {
		return p
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(addr, addr.BitLen())
}

func unique(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// pattern is the key of a map as an expression of the language.
func pattern(key string) (string, string) {
	re, fold := "", false
	switch {
	case strings.HasPrefix(key, "~*"):
		re, fold = key[2:], true
	case strings.HasPrefix(key, "~"):
		re = key[1:]
	default:
		re, fold = "^"+regexp.QuoteMeta(strings.TrimPrefix(key, `\`))+"$", true
	}
	re, err := expression(re, fold)
	if err != nil {
		return "", err.Error()
	}
	return re, ""
}

// agents says a condition by User-Agent.
func agents(out *counted, keys []string, usual bool) string {
	to := &out.only
	if usual {
		to = &out.except
	}
	for _, k := range keys {
		if k == "" {
			return "an empty User-Agent is no entry of user_agents; want a rule with headers: {User-Agent: absent}"
		}
		re, why := pattern(k)
		if why != "" {
			return why
		}
		to.userAgents = append(to.userAgents, re)
	}
	to.userAgents = unique(to.userAgents)
	return ""
}

func allMethods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}

// methods says a condition by the method: those named, or all others.
func methods(out *counted, keys []string, usual bool) string {
	named := map[string]bool{}
	for _, k := range keys {
		k = strings.TrimSuffix(strings.TrimPrefix(strings.TrimLeft(k, "~*"), "^"), "$")
		for _, m := range strings.Split(strings.Trim(k, "()"), "|") {
			if err := new(policies.Method).UnmarshalText([]byte(m)); err != nil {
				return err.Error()
			}
			named[m] = true
		}
	}
	var list []string
	for _, m := range allMethods() {
		if named[m] != usual {
			list = append(list, m)
		}
		delete(named, m)
	}
	if !usual {
		for m := range named {
			list = append(list, m)
		}
		slices.Sort(list)
	}
	if len(list) == 0 {
		return "no method is left"
	}
	out.when = append(out.when, "methods: ["+strings.Join(list, ", ")+"]")
	return ""
}

func country(name string) bool {
	return strings.Contains(name, "country_code") || name == "http_cf_ipcountry"
}

// countries says a condition by country.
func countries(out *counted, keys []string, usual bool) string {
	to := &out.only
	if usual {
		to = &out.except
	}
	for _, k := range keys {
		if err := new(policies.Country).UnmarshalText([]byte(k)); err != nil {
			return err.Error()
		}
		to.countries = append(to.countries, strings.ToUpper(k))
	}
	to.countries = unique(to.countries)
	return ""
}

// values says a condition by a header, cookie or parameter. There is no word
// for "not this value", but for absent and present.
func values(out *counted, base string, keys []string, usual bool) string {
	kind, name := "", ""
	for prefix, k := range map[string]string{"http_": "headers", "cookie_": "cookies", "arg_": "query"} {
		if rest, ok := strings.CutPrefix(base, prefix); ok {
			kind, name = k, rest
		}
	}
	if _, why := valueDim(base); kind == "" || why != "" {
		return "$" + base + " is nothing that a condition can be about"
	}
	if kind == "headers" {
		name = headerName(name)
	}
	line := func(value string) string {
		out.when = append(out.when, kind+": {"+scalar(name)+": "+value+"}")
		return ""
	}
	if len(keys) == 1 && keys[0] == "" {
		return line(map[bool]string{true: "present", false: "absent"}[usual])
	}
	if usual {
		return "it counts all but some values of $" + base + ", and a condition has no word for not; want plans, or a limit with another condition"
	}
	var list []string
	for _, k := range keys {
		if k == "" {
			return "it counts an absent $" + base + " and some values together; want a limit for each"
		}
		re, why := pattern(k)
		if why != "" {
			return why
		}
		list = append(list, single(re))
	}
	return line("[" + strings.Join(unique(list), ", ") + "]")
}
