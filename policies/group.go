package policies

import (
	"slices"
	"strings"
)

// euMembers are the 27 members of the European Union and the regions of theirs
// that have a code of their own and lie within the Union: Åland, and the
// outermost regions of France (Guadeloupe, French Guiana, Martinique, Réunion,
// Saint Martin, Mayotte). Somebody there is in the EU as somebody in Paris is,
// though databases do not say FR of him. Overseas countries and territories,
// such as Greenland, Aruba or New Caledonia, are associated and not within.
const euMembers = "AT AX BE BG CY CZ DE DK EE ES FI FR GF GP GR HR HU IE IT LT LU LV MF MQ MT NL PL PT RE RO SE SI SK YT"

// Countries are the countries of a group, sorted.
func (g Group) Countries() []Country {
	if g != "eu_members" {
		panic("BUG: no group " + g)
	}
	var out []Country
	for code := range strings.FieldsSeq(euMembers) {
		out = append(out, Country(code))
	}
	return out
}

// places are the countries, continents and systems of a list of clients, each
// sorted and without doubles, groups spelled out, and `unknown` told apart.
func (set *ClientSet) places(s *Clients) {
	countries := s.Countries.All()
	for _, g := range s.Groups.All() {
		countries = append(countries, g.Countries()...)
	}
	set.Countries, set.UnknownCountry = without(countries, UnknownCountry)
	set.ASNs, set.UnknownASN = without(s.ASNs.All(), 0)
	set.Continents = s.Continents.All()
	slices.Sort(set.Continents)
	set.Continents = slices.Compact(set.Continents)
}

// without sorts a list, and takes doubles and one value out of it.
func without[T ~string | ~uint32](list []T, value T) (rest []T, found bool) {
	slices.Sort(list)
	list = slices.Compact(list)
	i, found := slices.BinarySearch(list, value)
	if found {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		return nil, found
	}
	return list, found
}
