package importer

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"sluice/policies"
)

// condition says which requests are meant: those whose value fits.
func (im *importer) condition(out *counted, c cases, fits func(string) bool) string {
	var in, others []string // keys of cases that fit, and that do not
	for _, k := range c.list {
		if fits(k.value) {
			in = append(in, k.key)
		} else {
			others = append(others, k.key)
		}
	}
	usual := fits(c.otherwise)
	if usual && len(others) == 0 {
		return ""
	}
	if c.geo {
		return networks(out, c, fits, usual)
	}
	chosen := in
	if usual {
		chosen = others
	}
	switch {
	case c.base == "http_user_agent":
		return agents(out, chosen, usual)
	case c.base == "request_method":
		return methods(out, chosen, usual)
	case im.located[c.base] == "country":
		return countries(out, chosen, usual)
	}
	return values(out, c.base, chosen, usual)
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
