package geo

import "net/netip"

// trie maps every address of one family to a label. A reference is the index of
// a node, or the complement of a label where all that lies below is alike.
type trie struct {
	root  int32
	nodes [][2]int32
	free  []int32 // nodes whose halves became alike
}

// newTrie is a trie in which every address has one label.
func newTrie(label int32) *trie { return &trie{root: ^label} }

// put labels a network, and forgets what was said of its parts.
func (t *trie) put(p netip.Prefix, label int32) {
	key := p.Addr().As16()
	first := 0
	if p.Addr().Is4() {
		first = 96 // As16 is the mapped address
	}
	t.root = t.putBelow(t.root, &key, first, first+p.Bits(), label)
}

func (t *trie) putBelow(ref int32, key *[16]byte, depth, bits int, label int32) int32 {
	switch {
	case depth == bits:
		t.drop(ref)
		return ^label
	case ref == ^label:
		return ref
	case ref < 0:
		ref = t.node(ref)
	}
	side := key[depth/8] >> (7 - depth%8) & 1
	// The nodes may move while the half is made.
	half := t.putBelow(t.nodes[ref][side], key, depth+1, bits, label)
	t.nodes[ref][side] = half
	if other := t.nodes[ref][1-side]; half < 0 && half == other {
		t.free = append(t.free, ref)
		return half
	}
	return ref
}

// node is a new node with two halves alike.
func (t *trie) node(half int32) int32 {
	if n := len(t.free); n > 0 {
		ref := t.free[n-1]
		t.free = t.free[:n-1]
		t.nodes[ref] = [2]int32{half, half}
		return ref
	}
	t.nodes = append(t.nodes, [2]int32{half, half})
	return int32(len(t.nodes) - 1)
}

// drop gives back what hangs below a reference.
func (t *trie) drop(ref int32) {
	if ref < 0 {
		return
	}
	t.drop(t.nodes[ref][0])
	t.drop(t.nodes[ref][1])
	t.free = append(t.free, ref)
}
