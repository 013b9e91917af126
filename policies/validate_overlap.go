package policies

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
)

// accessEntry is one entry of an access rule: a network, or a word. The word
// private is decided before where it was said before, not where some of the
// networks that it stands for were.
type accessEntry struct {
	prefixes []netip.Prefix
	word     string // empty for a network
	rule     int
	text     string
	at       place
}

// checkAccessEntries finds entries that an earlier rule decides: with another
// verdict for the very same entry that is a contradiction, else a warning.
func checkAccessEntries(p *Policy, f *findings) {
	if p.Edge == nil {
		return
	}
	o := newAccessOrder(p.Edge.Access)
	var nets prefixTable
	var seen []accessEntry
	words := map[string][]int{}
	found := collisions{}
	for j := range o.rules {
		for e := range accessEntries(&o.rules[j], j) {
			earlier := words[e.word]
			if e.word == "" {
				earlier = nets.covering(e.prefixes[0])
			}
			for _, k := range earlier {
				if o.decides(seen[k].rule, j) {
					found.add(o, seen[k], e)
					break
				}
			}
			for _, prefix := range e.prefixes {
				nets.add(prefix, len(seen))
			}
			if e.word != "" {
				words[e.word] = append(words[e.word], len(seen))
			}
			seen = append(seen, e)
		}
	}
	found.report(f)
}

// accessEntries are the entries of a rule but `all` and user agents, which
// checkAccessEffect and nobody can compare.
func accessEntries(a *AccessSpec, rule int) iter.Seq[accessEntry] {
	return func(yield func(accessEntry) bool) {
		verdict, c := a.verdict()
		if c == nil {
			return
		}
		path := field(elem("edge.access", rule), verdict.key())
		for n, at := range places(field(path, "cidrs"), c.CIDRs) {
			e := accessEntry{prefixes: []netip.Prefix{n.Prefix}, rule: rule, text: n.String(), at: at}
			if n.Private {
				e.prefixes, e.word = PrivateNetworks(), "private"
			}
			if !yield(e) {
				return
			}
		}
		_ = yieldWords(yield, rule, field(path, "countries"), c.Countries) &&
			yieldWords(yield, rule, field(path, "continents"), c.Continents) &&
			yieldWords(yield, rule, field(path, "groups"), c.Groups) &&
			yieldWords(yield, rule, field(path, "asns"), c.ASNs)
	}
}

func yieldWords[T any](yield func(accessEntry) bool, rule int, path string, list List[T]) bool {
	for v, at := range places(path, list) {
		e := accessEntry{word: fmt.Sprintf("%T %v", v, v), rule: rule, text: fmt.Sprint(v), at: at}
		if !yield(e) {
			return false
		}
	}
	return true
}

// same tells whether an entry is the very one that was said before: a network
// is the same as `private` when it is one of those.
func (e accessEntry) same(earlier accessEntry) bool {
	return e.word != "" || slices.Contains(earlier.prefixes, e.prefixes[0])
}

// collision is what two rules say about the same clients.
type collision struct {
	earlier, later accessEntry // the first pair of entries
	contradict     bool
	times          int
}

// collisions are kept by the two rules and what is wrong, so that two long
// lists make one finding.
type collisions map[[3]int]*collision

func (m collisions) add(o *accessOrder, earlier, later accessEntry) {
	before, _ := o.rules[earlier.rule].verdict()
	after, _ := o.rules[later.rule].verdict()
	c := &collision{earlier: earlier, later: later, contradict: before != after && later.same(earlier)}
	id := [3]int{later.rule, earlier.rule, 0}
	if c.contradict {
		id[2] = 1
	}
	if first, ok := m[id]; ok {
		first.times++
		return
	}
	m[id] = c
}

func (m collisions) report(f *findings) {
	order := make([][3]int, 0, len(m))
	for id := range m {
		order = append(order, id)
	}
	slices.SortFunc(order, func(a, b [3]int) int { return slices.Compare(a[:], b[:]) })
	for _, id := range order {
		c := m[id]
		if c.contradict {
			f.errorf(c.later.at.path, ruleContradiction, "%s%s%s has two verdicts: %s has decided it before; want it in one of them",
				c.later.text, f.from(c.later.at), more(c.times), f.where(c.earlier.at))
			continue
		}
		f.warnf(c.later.at.path, ruleHidden, "%s%s%s is never asked about here: %s (%s) has decided it before; want it earlier, or left out",
			c.later.text, f.from(c.later.at), more(c.times), f.where(c.earlier.at), c.earlier.text)
	}
}
