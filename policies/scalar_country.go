package policies

import (
	"bytes"
	"strings"
)

// isoCountries are the two-letter codes of ISO 3166-1, and XK, which is
// assigned by everybody but ISO.
const isoCountries = " AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV BW BY BZ" +
	" CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR" +
	" GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP" +
	" KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT" +
	" MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW" +
	" SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG" +
	" UM US UY UZ VA VC VE VG VI VN VU WF WS XK YE YT ZA ZM ZW "

func upper(text []byte) []byte { return bytes.ToUpper(text) }

// UnmarshalText reads a country; lower case is understood.
func (c *Country) UnmarshalText(text []byte) error {
	code := strings.ToUpper(string(text))
	if code == "UNKNOWN" {
		*c = UnknownCountry
		return nil
	}
	if len(code) == 2 && only(code, letter) && strings.Contains(isoCountries, " "+code+" ") {
		*c = Country(code)
		return nil
	}
	return wrongf(ruleCountry, "%s is no country%s", show(string(text)), countryHint(code))
}

// countryHint says what a code that is no country may have meant.
func countryHint(code string) string {
	const want = "; want a two-letter code of ISO 3166-1, such as DE, or unknown"
	switch code {
	case "UK":
		return " of ISO 3166-1; did you mean GB?"
	case "EL":
		return " of ISO 3166-1; did you mean GR?"
	case "EU":
		return ", and a list with it would miss Germany; want groups: [eu_members] for the union, or continents: [EU]"
	case "AP":
		return " but a region that some databases use; want continents: [AS], or unknown"
	case "A1", "A2", "O1", "T1":
		return " but what some databases say of proxies, satellites and Tor; want lists of networks or asns for those, or unknown"
	case "XX", "ZZ", "--", "??":
		return " but what some databases say of addresses they lack; want unknown"
	case "FALSE":
		return ": some YAML tools turn NO into that; want \"NO\" in quotes"
	}
	if len(code) == 3 && only(code, letter) {
		return ": it has three letters" + want
	}
	return want
}

func (c Country) String() string { return string(c) }
