package geo

import (
	"net/netip"
	"slices"
)

// route is a prefix and the label of those of its addresses that no longer
// prefix claims.
type route struct {
	prefix netip.Prefix
	label  int32
}

// shrink writes a trie as the fewest routes of which the most specific decides,
// when root stands for everything that none claims. This is the construction of
// Draves, King, Venkatachary and Zill ("Constructing Optimal IP Routing
// Tables", 1999): bottom up, each node learns which labels cost it the fewest
// routes; top down, it takes the one that it inherits if that is among them.
func (t *trie) shrink(bits int, root int32) []route {
	s := &shrinker{trie: t, best: make([][]int32, len(t.nodes)), alone: map[int32][]int32{}}
	s.learn(t.root)
	s.write(t.root, root, netip.PrefixFrom(firstAddr(bits), 0), true)
	return s.out
}

type shrinker struct {
	*trie
	best  [][]int32         // by node: sorted labels
	alone map[int32][]int32 // lists of one label, which most are
	out   []route
}

// learn is which labels cost the fewest routes below.
func (s *shrinker) learn(ref int32) []int32 {
	if ref < 0 {
		return s.only(^ref)
	}
	a, b := s.learn(s.nodes[ref][0]), s.learn(s.nodes[ref][1])
	best := meet(a, b)
	if len(best) == 1 {
		best = s.only(best[0])
	}
	s.best[ref] = best
	return best
}

// only is the list of one label.
func (s *shrinker) only(label int32) []int32 {
	list, ok := s.alone[label]
	if !ok {
		list = []int32{label}
		s.alone[label] = list
	}
	return list
}

// meet is what two sorted lists have in common, or both together when that is nothing.
func meet(a, b []int32) []int32 {
	common := make([]int32, 0, 1)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			common = append(common, a[i])
			i, j = i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	if len(common) > 0 {
		return common
	}
	both := slices.Concat(a, b)
	slices.Sort(both)
	return both
}

func (s *shrinker) write(ref, inherited int32, p netip.Prefix, root bool) {
	if ref < 0 {
		if ^ref != inherited {
			s.emit(p, ^ref, root)
		}
		return
	}
	if _, found := slices.BinarySearch(s.best[ref], inherited); !found && !root {
		inherited = s.best[ref][0]
		s.emit(p, inherited, false)
	}
	low, high := halves(p)
	s.write(s.nodes[ref][0], inherited, low, false)
	s.write(s.nodes[ref][1], inherited, high, false)
}

// emit adds a route. One for everything would be a second default, so it is
// written as its halves.
func (s *shrinker) emit(p netip.Prefix, label int32, root bool) {
	if !root {
		s.out = append(s.out, route{p, label})
		return
	}
	low, high := halves(p)
	s.out = append(s.out, route{low, label}, route{high, label})
}

// halves are the two parts of a prefix.
func halves(p netip.Prefix) (low, high netip.Prefix) {
	bits := p.Bits()
	b := p.Addr().AsSlice()
	b[bits/8] |= 0x80 >> (bits % 8)
	// The slice has the length of an address.
	top, _ := netip.AddrFromSlice(b)
	return netip.PrefixFrom(p.Addr(), bits+1), netip.PrefixFrom(top, bits+1)
}

func firstAddr(bits int) netip.Addr {
	if bits == 32 {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}
