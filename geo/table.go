package geo

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"

	"sluice/policies"
)

// Table maps every address to a value, in the fewest prefixes that say it: of
// those that hold an address the longest decides, and Default when there is
// none. That is what a geo block of NGINX does.
type Table struct {
	Default string
	Entries []Entry // by address, IPv4 first
}

// Entry is one prefix of a table.
type Entry struct {
	Prefix netip.Prefix
	Value  string
}

// OtherValue is the value of an address that nobody asked to tell apart.
const OtherValue = "other"

// Table tells the wanted countries apart, each by its code, and private
// addresses from all. With unknown it also tells unknown ones from the rest;
// else the two are one and the same.
func (c *Countries) Table(wanted func(policies.Country) bool, unknown bool) *Table {
	return c.table(unknown, func(p Place) (string, bool) {
		return string(p.Country), p.Country == UnknownCountry || wanted(p.Country)
	})
}

// ContinentTable is Table for continents.
func (c *Countries) ContinentTable(wanted func(policies.Continent) bool, unknown bool) *Table {
	return c.table(unknown, func(p Place) (string, bool) {
		return string(p.Continent), p.Continent == UnknownContinent || wanted(p.Continent)
	})
}

// Table is Countries.Table for autonomous systems; their values are plain numbers.
func (a *ASNs) Table(wanted func(policies.ASN) bool, unknown bool) *Table {
	return a.table(unknown, func(asn policies.ASN) (string, bool) {
		if asn == 0 {
			return Unknown.String(), true
		}
		return strconv.FormatUint(uint64(asn), 10), wanted(asn)
	})
}

// table builds a table. The value of a record is false when it is like any other.
func (d *database[V]) table(unknown bool, value func(V) (string, bool)) *Table {
	fallback := OtherValue
	if unknown {
		fallback = Unknown.String()
	}
	word := func(v V) string {
		w, told := value(v)
		switch {
		case !told:
			return OtherValue
		case w == Unknown.String():
			return fallback
		}
		return w
	}
	labels := map[string]int32{fallback: 0, Private.String(): 0}
	for _, v := range d.values {
		labels[word(v)] = 0
	}
	words := slices.Sorted(maps.Keys(labels))
	for i, w := range words {
		labels[w] = int32(i)
	}
	byOffset := make(map[uintptr]int32, len(d.values))
	for offset, v := range d.values {
		byOffset[offset] = labels[word(v)]
	}
	return build(words, labels, fallback, func(put func(netip.Prefix, int32)) {
		for n := range d.reader.Networks() {
			put(n.Prefix(), byOffset[n.Offset()])
		}
	})
}

// build is the table of what put is told, over which private networks and
// those that nobody asks about are laid. Labels are the indexes of words, which
// are sorted.
func build(words []string, labels map[string]int32, fallback string, walk func(put func(netip.Prefix, int32))) *Table {
	four, six := newTrie(labels[fallback]), newTrie(labels[fallback])
	put := func(p netip.Prefix, label int32) {
		t := six
		if p.Addr().Is4() {
			t = four
		}
		t.put(p, label)
	}
	walk(put)
	for _, p := range unasked() {
		put(p, labels[fallback])
	}
	for _, p := range PrivateNetworks() {
		put(p, labels[Private.String()])
	}
	t := &Table{Default: fallback}
	for _, r := range append(four.shrink(32, labels[fallback]), six.shrink(128, labels[fallback])...) {
		t.Entries = append(t.Entries, Entry{r.prefix, words[r.label]})
	}
	return t
}
