package geo

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	"pgregory.net/rapid"

	"sluice/geo/geotest"
	"sluice/policies"
)

// at is what a table says of an address, found the slow way.
func (t *Table) at(addr netip.Addr) string {
	value, longest := t.Default, -1
	for _, e := range t.Entries {
		if e.Prefix.Contains(addr) && e.Prefix.Bits() > longest {
			value, longest = e.Value, e.Prefix.Bits()
		}
	}
	return value
}

func named(codes ...policies.Country) func(policies.Country) bool {
	return func(c policies.Country) bool { return slices.Contains(codes, c) }
}

// TestTable: the fewest prefixes, the most specific first in mind.
func TestTable(t *testing.T) {
	t.Parallel()
	c := countries(t, geotest.Options{Aliases: true}, world(geotest.MaxMind))
	got := map[string]string{}
	table := c.Table(named("DE", "KP"), false)
	for _, e := range table.Entries {
		if e.Value != "private" {
			got[e.Prefix.String()] = e.Value
		}
	}
	want := map[string]string{
		"5.0.0.0/8": "DE", "5.1.0.0/16": "other", "5.200.0.0/16": "other", "203.0.113.0/24": "KP",
		"2a00::/16": "DE", "2a00:1::/32": "other",
	}
	if diff := cmp.Diff(want, got); diff != "" || table.Default != "other" {
		t.Errorf("default %s\n%s", table.Default, diff)
	}
	if got := c.Table(named(), true).at(netip.MustParseAddr("5.200.0.1")); got != "unknown" {
		t.Errorf("a region is %s", got)
	}
	if got := c.ContinentTable(func(c policies.Continent) bool { return c == "EU" }, false).at(netip.MustParseAddr("5.200.0.1")); got != "EU" {
		t.Errorf("the continent of a region is %s", got)
	}
}

// network draws networks near each other, so that they nest and touch.
func network(t *rapid.T) netip.Prefix {
	if rapid.Bool().Draw(t, "v6") {
		b := [16]byte{0x2a, 0, byte(rapid.IntRange(0, 3).Draw(t, "a")), byte(rapid.IntRange(0, 255).Draw(t, "b"))}
		p, _ := netip.AddrFrom16(b).Prefix(rapid.IntRange(8, 36).Draw(t, "bits"))
		return p
	}
	b := [4]byte{5, byte(rapid.IntRange(0, 3).Draw(t, "a")), byte(rapid.IntRange(0, 255).Draw(t, "b"))}
	p, _ := netip.AddrFrom4(b).Prefix(rapid.IntRange(6, 26).Draw(t, "bits"))
	return p
}

// edges are addresses at and beside the borders of networks.
func edges(nets []netip.Prefix) []netip.Addr {
	var out []netip.Addr
	for _, p := range nets {
		r := netipx.RangeOfPrefix(p)
		for _, a := range []netip.Addr{r.From(), r.To(), r.From().Prev(), r.To().Next()} {
			if a.IsValid() {
				out = append(out, a)
			}
		}
	}
	return out
}

// TestTableAgrees: a table says of every address what a lookup says, whatever
// the database, and takes no more prefixes than sets of each value would.
func TestTableAgrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		networks := geotest.Networks{"5.0.0.0/8": geotest.Country(geotest.MaxMind, "DE", "EU")}
		for range rapid.IntRange(0, 30).Draw(rt, "n") {
			code := rapid.SampledFrom([]string{"DE", "AT", "CH", "FR", "EU", "KP"}).Draw(rt, "code")
			networks[network(rt).String()] = geotest.Country(geotest.MaxMind, code, "EU")
		}
		c := countries(t, geotest.Options{Aliases: rapid.Bool().Draw(rt, "aliases")}, networks)
		unknown := rapid.Bool().Draw(rt, "unknown")
		wanted := named(rapid.SliceOf(rapid.SampledFrom([]policies.Country{"DE", "AT", "CH", "FR"})).Draw(rt, "wanted")...)
		table := c.Table(wanted, unknown)

		var nets []netip.Prefix
		sets := map[string]*netipx.IPSetBuilder{}
		for n := range c.reader.Networks() {
			nets = append(nets, n.Prefix())
		}
		nets = append(nets, PrivateNetworks()...)
		word := func(addr netip.Addr) string {
			p := c.Lookup(addr).Country
			switch {
			case p == PrivateCountry || wanted(p) || p == UnknownCountry && unknown:
				return string(p)
			}
			return OtherValue
		}
		for _, addr := range edges(append(nets, unasked()...)) {
			plain, ok := unwrap(addr)
			if got, want := table.at(addr), word(addr); plain == addr && ok && got != want {
				rt.Fatalf("%s is %s in the table, %s looked up\n%v", addr, got, want, table)
			}
		}
		for _, p := range nets {
			if w := word(p.Addr()); w != table.Default {
				if sets[w] == nil {
					sets[w] = &netipx.IPSetBuilder{}
				}
				sets[w].AddPrefix(p)
			}
		}
		disjoint := 0
		for w, b := range sets {
			for other := range sets {
				if w != other && w != "private" && other == "private" {
					for _, p := range PrivateNetworks() {
						b.RemovePrefix(p)
					}
				}
			}
			set, err := b.IPSet()
			if err != nil {
				rt.Fatal(err)
			}
			disjoint += len(set.Prefixes())
		}
		if len(table.Entries) > disjoint {
			rt.Fatalf("%d entries where %d disjoint prefixes do", len(table.Entries), disjoint)
		}
	})
}

// small is a trie of a few bits of IPv4, and its labels by number.
func small(data []byte) (*trie, []int32) {
	const bits = 5
	t, labels := newTrie(0), make([]int32, 1<<bits)
	for i := 0; i+1 < len(data); i += 2 {
		length, label := int(data[i]>>5)%(bits+1), int32(data[i+1]%4)
		first := int(data[i]) & 31 >> (bits - length) << (bits - length)
		t.put(netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(first << 3)}), length), label)
		for j := first; j < first+1<<(bits-length); j++ {
			labels[j] = label
		}
	}
	return t, labels
}

// fewest is the least number of routes for labels when one is inherited: tried out.
func fewest(labels []int32, inherited int32, root bool) int {
	best := 1 << 20
	for choice := int32(-1); choice < 4; choice++ {
		cost, holds := 1, choice
		if choice < 0 || choice == inherited {
			cost, holds = 0, inherited
		} else if root {
			continue
		}
		if len(labels) == 1 {
			if labels[0] != holds {
				continue
			}
		} else if all(labels, holds) {
		} else if cost < best {
			half := len(labels) / 2
			cost += fewest(labels[:half], holds, false) + fewest(labels[half:], holds, false)
		}
		best = min(best, cost)
	}
	return best
}

func all(labels []int32, label int32) bool {
	return !slices.ContainsFunc(labels, func(l int32) bool { return l != label })
}

// FuzzShrink: what the routes say is what the trie said, and no fewer could say it.
func FuzzShrink(f *testing.F) {
	for _, seed := range []string{"", "\xa01\xa12\xa23", "\x001", "\x200\x310\x512", "abcdefghijklmnopqrstuvwxyz"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		trie, labels := small(data[:min(len(data), 64)])
		routes := trie.shrink(32, 0)
		table := &Table{Default: "0"}
		for _, r := range routes {
			table.Entries = append(table.Entries, Entry{r.prefix, fmt.Sprint(r.label)})
		}
		for i, want := range labels {
			if got := table.at(netip.AddrFrom4([4]byte{byte(i << 3), 255})); got != fmt.Sprint(want) {
				t.Fatalf("%d is %s in the routes, %d in the trie: %v", i, got, want, routes)
			}
		}
		if want := fewest(labels, 0, true); len(routes) != want {
			t.Fatalf("%d routes where %d do: %v for %v", len(routes), want, routes, labels)
		}
		if len(trie.nodes)-len(trie.free) > 31 {
			t.Fatalf("%d nodes are in use", len(trie.nodes)-len(trie.free))
		}
	})
}
