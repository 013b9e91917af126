package geo

import (
	"slices"
	"strconv"
	"strings"

	"github.com/oschwald/maxminddb-golang/v2"

	"sluice/policies"
)

// Field is where a value stands in the records of a database, as NGINX's
// geoip2 and the database's own documentation have it: names from the outside in.
type Field []string

// String is the field with dots, as documentation writes it.
func (f Field) String() string { return strings.Join(f, ".") }

// Layout is where a database keeps what is asked of it.
type Layout struct {
	Country   Field
	Continent Field // nil: it follows from the country
	ASN       Field
}

// countryLayouts are the layouts of country databases, the surest first: where
// IPinfo has a code beside a name, `country` is the name.
func countryLayouts() []Layout {
	return []Layout{
		{Country: Field{"country", "iso_code"}, Continent: Field{"continent", "code"}}, // GeoLite2, GeoIP2, DB-IP
		{Country: Field{"country_code"}, Continent: Field{"continent_code"}},           // IPinfo Lite, ip-location-db
		{Country: Field{"country"}, Continent: Field{"continent"}},                     // IPinfo
	}
}

func asnLayouts() []Layout {
	return []Layout{
		{ASN: Field{"autonomous_system_number"}},           // GeoLite2, GeoIP2 ISP, DB-IP
		{ASN: Field{"traits", "autonomous_system_number"}}, // GeoIP2 Enterprise
		{ASN: Field{"asn"}},                                // IPinfo, with AS in front
	}
}

// read is the value of a field as text, empty when it is absent or of another kind.
func (f Field) read(r maxminddb.Result) string {
	if f == nil {
		return ""
	}
	path := make([]any, len(f))
	for i, name := range f {
		path[i] = name
	}
	var value any
	if err := r.DecodePath(&value, path...); err != nil {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case uint64:
		return strconv.FormatUint(v, 10)
	}
	return ""
}

// findLayout is the first layout that some record has. What comes late in a
// database is not looked for: a database of the right kind has it everywhere.
func findLayout(r *maxminddb.Reader, layouts []Layout, fits func(Layout, maxminddb.Result) bool) (Layout, bool) {
	const enough = 100_000
	looked := 0
	seen := map[uintptr]bool{}
	best := len(layouts)
	for n := range r.Networks() {
		if looked++; looked > enough || best == 0 {
			break
		}
		if seen[n.Offset()] {
			continue
		}
		seen[n.Offset()] = true
		for i, l := range layouts[:best] {
			if fits(l, n) {
				best = i
				break
			}
		}
	}
	if best == len(layouts) {
		return Layout{}, false
	}
	return layouts[best], true
}

// hasCountry tells whether a record has a code where a layout says.
func hasCountry(l Layout, r maxminddb.Result) bool {
	code := l.Country.read(r)
	return len(code) == 2 && strings.Trim(strings.ToUpper(code), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// hasContinent tells whether a record has one where a layout says.
func hasContinent(l Layout, r maxminddb.Result) bool {
	_, ok := continent(l.Continent.read(r))
	return ok
}

func hasASN(l Layout, r maxminddb.Result) bool {
	_, ok := number(l.ASN.read(r))
	return ok
}

// country is a code of ISO 3166-1. What some databases say of regions, proxies
// and satellites is none.
func country(code string) (policies.Country, bool) {
	var c policies.Country
	if len(code) != 2 || c.UnmarshalText([]byte(code)) != nil {
		return UnknownCountry, false
	}
	return c, true
}

func continent(code string) (policies.Continent, bool) {
	var c policies.Continent
	if len(code) != 2 || c.UnmarshalText([]byte(code)) != nil {
		return UnknownContinent, false
	}
	return c, true
}

// number is an ASN: digits, with or without AS in front.
func number(text string) (policies.ASN, bool) {
	digits := strings.TrimPrefix(text, "AS")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n == 0 || digits[0] == '0' || digits[0] == '+' {
		return 0, false
	}
	return policies.ASN(n), true
}

// fields are those of some layouts, for messages.
func fields(layouts []Layout, of func(Layout) Field) string {
	var names []string
	for _, l := range layouts {
		names = append(names, of(l).String())
	}
	return strings.Join(slices.Compact(names), ", ")
}
