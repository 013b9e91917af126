package gen

import (
	"maps"
	"net/netip"
	"slices"

	"sluice/geo"
	"sluice/policies"
)

// geoModule is the same by the geoip2 module: it looks up, and maps make of it
// the same words as compiled tables have.
func (b *builder) geoModule(countries *geo.Countries, asns *geo.ASNs) ([]block, []geoFile) {
	private := block{Kind: word("geo"), Source: word("$sluice_geo_addr"), Variable: word("$sluice_geo_private")}
	private.otherwise(word("0"))
	for _, p := range geo.PrivateNetworks() {
		private.line(cidr(p), word("1"))
		if p.Addr().Is4() { // as sluice_geo_addr writes what NAT64 and 6to4 wrapped
			raw := [16]byte{}
			four := p.Addr().As4()
			copy(raw[12:], four[:])
			private.line(cidr(netip.PrefixFrom(netip.AddrFrom16(raw), 96+p.Bits())), word("1"))
		}
	}
	blocks := []block{private}
	var files []geoFile
	if b.geo.country() || b.geo.continent() {
		db := b.geoDatabase(countries.Info)
		db.line(word("$sluice_geo_country"), geoField(countries.Layout.Country))
		if countries.Layout.Continent != nil {
			db.line(word("$sluice_geo_continent"), geoField(countries.Layout.Continent))
		}
		country := fromDatabase("sluice_geo_country", "sluice_country", "What is no code of ISO 3166-1, such as EU or A1, is unknown.")
		country.include("sluice/geo_country.conf")
		blocks = append(blocks, db, country)
		files = append(files, b.geoWords("sluice/geo_country.conf", "The countries of ISO 3166-1, after a 0 that says that an address is not private.", countryWords()))
	}
	if b.geo.continent() {
		continent, words := b.continentWords(countries.Layout.Continent != nil)
		continent.include("sluice/geo_continent.conf")
		blocks = append(blocks, continent)
		files = append(files, b.geoWords("sluice/geo_continent.conf", "The continents.", words))
	}
	if b.geo.asn() {
		db := b.geoDatabase(asns.Info)
		db.line(word("$sluice_geo_asn"), geoField(asns.Layout.ASN))
		asn := fromDatabase("sluice_geo_asn", "sluice_asn", "")
		asn.line(ownRegex(`^0(?:AS)?(?<sluice_geo_number>[1-9][0-9]{0,9})\z`), word("$sluice_geo_number"))
		blocks = append(blocks, db, asn)
	}
	return blocks, files
}

// geoDatabase is the beginning of a geoip2 block.
func (b *builder) geoDatabase(info geo.Info) block {
	return block{Kind: word("geoip2"), Variable: b.take(Literal(info.File)), Comments: commentLines([]string{"When it was rendered: " + origin(info) + "."})}
}

// fromDatabase is a map of what a database says, after the flag of private addresses.
func fromDatabase(source, variable, about string) block {
	m := newMap(join(isSet("sluice_geo_private"), isSet(source)), variable, about)
	m.otherwise(word(geo.Unknown.String()))
	m.line(ownRegex("^1"), word(geo.Private.String()))
	return m
}

// continentWords is the map of continents: what the database says, or what
// follows from the country where it says none.
func (b *builder) continentWords(said bool) (block, []entry) {
	var words []entry
	if said {
		for _, c := range slices.Sorted(maps.Keys(continentSet())) {
			words = append(words, entry{Key: word("0" + string(c)), Value: word(string(c))})
		}
		return fromDatabase("sluice_geo_continent", "sluice_continent", ""), words
	}
	of := geo.ContinentOf()
	for _, c := range slices.Sorted(maps.Keys(of)) {
		words = append(words, entry{Key: word(string(c)), Value: word(string(of[c]))})
	}
	m := newMap(word("$sluice_country"), "sluice_continent", "The database names no continents.")
	m.otherwise(word(geo.Unknown.String()))
	m.line(word(geo.Private.String()), word(geo.Private.String()))
	return m, words
}

func continentSet() map[policies.Continent]bool {
	set := map[policies.Continent]bool{}
	for _, c := range geo.ContinentOf() {
		set[c] = true
	}
	return set
}

func countryWords() []entry {
	var words []entry
	for _, c := range slices.Sorted(maps.Keys(geo.ContinentOf())) {
		words = append(words, entry{Key: word("0" + string(c)), Value: word(string(c))})
	}
	return words
}

func (b *builder) geoWords(name, about string, words []entry) geoFile {
	return geoFile{name, geoView{Stamp: b.stamp, Comments: commentLines([]string{about}), Words: words}}
}
