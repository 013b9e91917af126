package gen

import (
	"net/netip"
	"strconv"

	"sluice/policies"
)

// clients is the condition that a client is in a set: any entry of any list.
// What it defines is named after name and added to a list of blocks.
func (b *builder) clients(to *[]block, name string, set *policies.ClientSet) condition {
	if set.All {
		return always()
	}
	var any []part
	if len(set.Networks) > 0 {
		*to = append(*to, networks(name+"__net", set.Networks))
		any = append(any, isSet(name+"__net"))
	}
	any = append(any, b.places(to, name, set)...)
	if len(set.UserAgents) > 0 {
		*to = append(*to, b.matching(name+"__agent", "http_user_agent", set.UserAgents))
		any = append(any, isSet(name+"__agent"))
	}
	switch len(any) {
	case 0:
		return never()
	case 1:
		return any[0]
	}
	m := newMap(join(any...), name+"__who")
	m.otherwise(word("0"))
	m.line(ownRegex("1"), word("1"))
	*to = append(*to, m)
	return isSet(name + "__who")
}

// networks is a geo of the client's address: 1 inside any of the prefixes. An
// IPv4 client may also come as NAT64 wrote his address.
func networks(name string, nets []netip.Prefix) block {
	m := block{Kind: word("geo"), Variable: word("$" + name)}
	m.otherwise(word("0"))
	for _, p := range nets {
		m.line(cidr(p), word("1"))
		if p.Addr().Is4() {
			m.line(cidr(nat64(p)), word("1"))
		}
	}
	return m
}

// nat64 is an IPv4 network as NAT64 writes it (RFC 6052).
func nat64(p netip.Prefix) netip.Prefix {
	raw := [16]byte{0, 0x64, 0xff, 0x9b}
	four := p.Addr().As4()
	copy(raw[12:], four[:])
	return netip.PrefixFrom(netip.AddrFrom16(raw), 96+p.Bits())
}

// matching is a map that is 1 when any expression finds something in a variable.
func (b *builder) matching(name, source string, regexes []*policies.Regex) block {
	m := newMap(variable(source), name)
	m.otherwise(word("0"))
	seen := map[string]bool{}
	for _, re := range regexes {
		if !seen[re.Source] {
			seen[re.Source] = true
			m.line(b.take(mapRegex(re)), word("1"))
		}
	}
	return m
}

// when are the conditions on requests, one flag for each line of the policy.
func (b *builder) when(to *[]block, name string, w *policies.When) []condition {
	if w == nil {
		return nil
	}
	var flags []condition
	if len(w.Methods) > 0 {
		m := newMap(word("$request_method"), name+"__method")
		m.otherwise(word("0"))
		for _, method := range w.Methods {
			m.line(b.take(mapKey(method)), word("1"))
		}
		*to = append(*to, m)
		flags = append(flags, isSet(name+"__method"))
	}
	for i := range w.Tests {
		flags = append(flags, b.test(to, name+"__test"+strconv.Itoa(i+1), &w.Tests[i]))
	}
	return flags
}

// test is the condition on one value of a request.
func (b *builder) test(to *[]block, name string, t *policies.Test) condition {
	source := b.value(t.Carrier, t.Name)
	var m block
	switch {
	case t.Present:
		m = newMap(variable(source), name)
		m.otherwise(word("1"))
		m.line(none(), word("0"))
	case t.Absent:
		m = newMap(variable(source), name)
		m.otherwise(word("0"))
		m.line(none(), word("1"))
	default:
		m = b.matching(name, source, t.Regexes)
	}
	*to = append(*to, m)
	return isSet(name)
}
