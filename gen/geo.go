package gen

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/geo"
	"sluice/policies"
)

// geoUse is what a policy asks about the places of clients. It is gathered
// while rules and keys are built, and tells how much of a database is rendered.
type geoUse struct {
	countries  map[policies.Country]bool
	continents map[policies.Continent]bool
	asns       map[policies.ASN]bool

	unknownCountry, unknownASN bool // must be told from what nobody names
	byCountry, byASN           bool // counted by: each is told from all others
}

func newGeoUse() geoUse {
	return geoUse{map[policies.Country]bool{}, map[policies.Continent]bool{}, map[policies.ASN]bool{}, false, false, false, false}
}

func (u *geoUse) country() bool   { return len(u.countries) > 0 || u.unknownCountry || u.byCountry }
func (u *geoUse) continent() bool { return len(u.continents) > 0 }
func (u *geoUse) asn() bool       { return len(u.asns) > 0 || u.unknownASN || u.byASN }

// places are the conditions that a client is where a set says, one for each
// kind of place that it names.
func (b *builder) places(to *[]block, name string, set *policies.ClientSet) []condition {
	var flags []condition
	flag := func(source, suffix string, values []string) {
		m := newMap(variable(source), name+suffix)
		m.otherwise(word("0"))
		for _, v := range values {
			m.line(word(v), word("1"))
		}
		*to = append(*to, m)
		flags = append(flags, isSet(name+suffix))
	}
	if values := b.useCountries(set); len(values) > 0 {
		flag("sluice_country", "__geo", values)
	}
	if len(set.Continents) > 0 {
		var values []string
		for _, c := range set.Continents {
			b.geo.continents[c] = true
			values = append(values, string(c))
		}
		flag("sluice_continent", "__cont", values)
	}
	if values := b.useASNs(set); len(values) > 0 {
		flag("sluice_asn", "__asn", values)
	}
	return flags
}

// useCountries are the values of $sluice_country that a set means.
func (b *builder) useCountries(set *policies.ClientSet) []string {
	var values []string
	for _, c := range set.Countries {
		b.geo.countries[c] = true
		values = append(values, string(c))
	}
	if set.UnknownCountry {
		b.geo.unknownCountry = true
		values = append(values, geo.Unknown.String())
	}
	return values
}

// useASNs are the values of $sluice_asn that a set means.
func (b *builder) useASNs(set *policies.ClientSet) []string {
	var values []string
	for _, n := range set.ASNs {
		b.geo.asns[n] = true
		values = append(values, strconv.FormatUint(uint64(n), 10))
	}
	if set.UnknownASN {
		b.geo.unknownASN = true
		values = append(values, geo.Unknown.String())
	}
	return values
}

// countedPlace is the variable of a dimension that is a place.
func (b *builder) countedPlace(kind policies.DimKind) string {
	if kind == policies.DimCountry {
		b.geo.byCountry = true
		return "sluice_country"
	}
	b.geo.byASN = true
	return "sluice_asn"
}

// geoFile is one include file of places.
type geoFile struct {
	name string
	view geoView
}

// geoBlocks are the blocks that say where a client is, and the files that they
// include. They come after all rules and keys, which say what is needed.
func (b *builder) geoBlocks() ([]block, []geoFile) {
	countries, asns := b.opt.Geo.Countries, b.opt.Geo.ASNs
	needCountry, needASN := b.geo.country() || b.geo.continent(), b.geo.asn()
	switch {
	case needCountry && countries == nil:
		b.take(Token{}, fmt.Errorf("the policy asks for countries or continents, and no database says them; want --country-db FILE"))
	case needASN && asns == nil:
		b.take(Token{}, fmt.Errorf("the policy asks for autonomous systems, and no database says them; want --asn-db FILE"))
	}
	if b.err != nil || !needCountry && !needASN {
		return nil, nil
	}
	blocks := []block{b.geoAddress()}
	if b.opt.GeoModule {
		more, files := b.geoModule(countries, asns)
		return append(blocks, more...), files
	}
	var files []geoFile
	add := func(name, variable, title string, info geo.Info, t *geo.Table) {
		m := block{Kind: word("geo"), Source: word("$sluice_geo_addr"), Variable: word("$" + variable)}
		m.Comments = commentLines([]string{title + "."})
		m.otherwise(word(t.Default))
		m.include(name)
		blocks = append(blocks, m)
		files = append(files, geoFile{name, geoView{
			Stamp:    b.stamp,
			Comments: commentLines([]string{title + ", out of " + origin(info) + "; the longest prefix decides."}),
			Lines:    cidrLines(t.Entries),
		}})
	}
	if b.geo.country() {
		t := countries.Table(func(c policies.Country) bool { return b.geo.byCountry || b.geo.countries[c] }, b.geo.unknownCountry || b.geo.byCountry)
		add("sluice/geo_country.conf", "sluice_country", "The country of a client: "+told(b.geo.byCountry, keys(b.geo.countries), b.geo.unknownCountry), countries.Info, t)
	}
	if b.geo.continent() {
		t := countries.ContinentTable(func(c policies.Continent) bool { return b.geo.continents[c] }, false)
		add("sluice/geo_continent.conf", "sluice_continent", "The continent of a client: "+told(false, keys(b.geo.continents), false), countries.Info, t)
	}
	if b.geo.asn() {
		t := asns.Table(func(n policies.ASN) bool { return b.geo.byASN || b.geo.asns[n] }, b.geo.unknownASN || b.geo.byASN)
		add("sluice/geo_asn.conf", "sluice_asn", "The autonomous system of a client: "+told(b.geo.byASN, keys(b.geo.asns), b.geo.unknownASN), asns.Info, t)
	}
	return blocks, files
}

// geoAddress is the map of the address to look up: the IPv4 address out of
// IPv6 where there is one, as package geo unwraps it. It is the client after
// real_ip, and the text is NGINX's own writing of it.
func (b *builder) geoAddress() block {
	// NGINX's geo looks a mapped address up as IPv4. A database need not, but has
	// its IPv4 part where the first 96 bits are zero.
	four := "::ffff:"
	if b.opt.GeoModule {
		four = "::"
	}
	m := newMap(word("$remote_addr"), "sluice_geo_addr",
		"The address to look up: an IPv4 address, also out of a mapped, NAT64 or 6to4 one. Teredo and the like name nobody.")
	m.otherwise(word("$remote_addr"))
	m.line(word("unix:"), word("127.0.0.1"))
	m.line(ownRegex(`^[0-9.]+\z`), word("$remote_addr"))
	m.line(ownRegex(`^::ffff:(?<sluice_geo_four>[0-9.]+)\z`), word("$sluice_geo_four"))
	const (
		high = `(?!f[0-9a-f]{3}:)[1-9a-f][0-9a-f]{2,3}` // the first half of an address from 1.0.0.0 to 239.255.255.255
		half = `[0-9a-f]{1,4}`
	)
	m.line(ownRegex(`^64:ff9b::(?<sluice_geo_nat>`+high+`:`+half+`)\z`), (&text{}).lit(four).v("sluice_geo_nat").mustToken())
	m.line(ownRegex(`^2002:(?<sluice_geo_6to4>`+high+`:`+half+`):`), (&text{}).lit(four).v("sluice_geo_6to4").mustToken())
	m.line(ownRegex(`^2002:(?<sluice_geo_high>`+high+`)::`), (&text{}).lit(four).v("sluice_geo_high").lit(":0").mustToken())
	m.line(ownRegex(`^(?:64:ff9b::(?:`+half+`(?::`+half+`)?)?\z|2002:|2001:0?:|::(?!1\z)(?:`+half+`(?::`+half+`)?|[0-9.]+)?\z)`), word("-"))
	return m
}

// include adds a file of entries to a block.
func (m *block) include(name string) { m.line(word("include"), word(name)) }

// origin says where a table came from.
func origin(info geo.Info) string {
	return info.Type + " of " + info.Built.Format(time.DateOnly)
}

// told says what a table tells apart.
func told(each bool, names []string, unknown bool) string {
	switch {
	case each:
		return "each, unknown, private"
	case len(names) > 12:
		names = append(names[:10:10], fmt.Sprintf("and %d more", len(names)-10))
	}
	if unknown {
		names = append(names, geo.Unknown.String())
	}
	return strings.Join(append(names, geo.Private.String(), "other"), ", ")
}

// keys are the values of a set in order, as people read them.
func keys[K ~string | ~uint32](set map[K]bool) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(set)) {
		out = append(out, fmt.Sprint(k))
	}
	return out
}

// placed tells whether the policy asks where clients are.
func (b *builder) placed() bool { return b.geo.country() || b.geo.continent() || b.geo.asn() }
