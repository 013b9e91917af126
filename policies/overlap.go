package policies

import "net/netip"

// prefixTable finds the networks that hold another, by one look-up for each
// prefix length in use. The zero table is empty.
type prefixTable struct {
	owners map[netip.Prefix][]int
	used   [2][129]bool // prefix lengths, of IPv4 and IPv6
}

func family(p netip.Prefix) int {
	if p.Addr().Is4() {
		return 0
	}
	return 1
}

// add says that a network belongs to an owner. Owners are added in their order.
func (t *prefixTable) add(p netip.Prefix, owner int) {
	if t.owners == nil {
		t.owners = map[netip.Prefix][]int{}
	}
	t.owners[p] = append(t.owners[p], owner)
	t.used[family(p)][p.Bits()] = true
}

// covering are the owners of the network itself and of all that hold it, the
// narrowest first.
func (t *prefixTable) covering(p netip.Prefix) []int {
	var all []int
	used := &t.used[family(p)]
	for bits := p.Bits(); bits >= 0; bits-- {
		if used[bits] {
			wider, _ := p.Addr().Prefix(bits)
			all = append(all, t.owners[wider]...)
		}
	}
	return all
}
