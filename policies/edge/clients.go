package edge

import (
	"net/netip"
	"slices"
	"unsafe"

	"go4.org/netipx"

	"sluice/geo"
	"sluice/policies"
)

// Clients are who a rule means, by the part that fits: Network, Country,
// Continent, ASN, UserAgent or All. Empty: none does.
type Clients string

// The parts of a set of clients.
const (
	ByAll       Clients = "all"
	ByNetwork   Clients = "network"
	ByCountry   Clients = "country"
	ByContinent Clients = "continent"
	ByASN       Clients = "asn"
	ByUserAgent Clients = "user agent"
)

// unwrapped is an address as $sluice_ip has it: IPv4 out of ::ffff:0:0/96 and
// 64:ff9b::/96. What is no address stays so.
func unwrapped(addr netip.Addr) netip.Addr {
	if !addr.IsValid() || addr.Is4() {
		return addr
	}
	b := addr.As16()
	if [12]byte(b[:12]) == [12]byte{0x00, 0x64, 0xff, 0x9b} {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr.Unmap()
}

// looked is the address as a geo block looks it up: a mapped one as IPv4, and
// none as 255.255.255.255.
func looked(addr netip.Addr) netip.Addr {
	if !addr.IsValid() {
		return netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	return addr.Unmap()
}

// clientSet is a set of clients, ready to be asked.
type clientSet struct {
	*policies.ClientSet
	nets *netipx.IPSet // nil: no network
}

func newClientSet(s *policies.ClientSet) *clientSet {
	if s == nil {
		return nil
	}
	set := &clientSet{ClientSet: s}
	if len(s.Networks) > 0 {
		set.nets = ipSet(s.Networks)
	}
	return set
}

// ipSet is a set of networks that is searched and not walked: lists are long.
func ipSet(nets []netip.Prefix) *netipx.IPSet {
	var b netipx.IPSetBuilder
	for _, p := range nets {
		b.AddPrefix(p)
	}
	set, err := b.IPSet()
	if err != nil {
		panic("BUG: a network that is none: " + err.Error())
	}
	return set
}

// inNetworks tells whether the client is in one of the networks. An IPv4 client
// may also come as NAT64 wrote his address.
func (s *clientSet) inNetworks(addr netip.Addr) bool {
	if s.nets == nil {
		return false
	}
	four := unwrapped(addr)
	return s.nets.Contains(looked(addr)) || four.Is4() && s.nets.Contains(four)
}

// fits tells which part of a set the visitor is in, empty when he is in none.
func (m *Model) fits(v *Visit, set *clientSet) Clients {
	switch {
	case set.All:
		return ByAll
	case set.inNetworks(v.Client):
		return ByNetwork
	case len(set.Countries) > 0 && slices.Contains(set.Countries, m.Place(v).Country),
		set.UnknownCountry && m.Place(v).Country == geo.UnknownCountry:
		return ByCountry
	case len(set.Continents) > 0 && slices.Contains(set.Continents, m.Place(v).Continent):
		return ByContinent
	case (len(set.ASNs) > 0 || set.UnknownASN) && m.inASNs(v, set):
		return ByASN
	case len(set.UserAgents) > 0 && anyMatch(set.UserAgents, v.Request.Get("User-Agent")):
		return ByUserAgent
	}
	return ""
}

func (m *Model) inASNs(v *Visit, set *clientSet) bool {
	asn, state := m.ASN(v)
	switch state {
	case geo.Known:
		return slices.Contains(set.ASNs, asn)
	case geo.Unknown:
		return set.UnknownASN
	}
	return false
}

// Place is where the client is, looked up once.
func (m *Model) Place(v *Visit) geo.Place {
	if v.placed {
		return v.place
	}
	v.placed = true
	switch {
	case v.Request.Country != "":
		continent, known := m.continents[v.Request.Country]
		if !known {
			continent = policies.Continent(v.Request.Country) // unknown and private are both alike
		}
		v.place = geo.Place{Country: v.Request.Country, Continent: continent}
	case m.geo.Countries != nil:
		v.place = m.geo.Countries.Lookup(v.Client)
	default:
		v.place = geo.Place{Country: geo.UnknownCountry, Continent: geo.UnknownContinent}
		if geo.IsPrivate(v.Client) {
			v.place = geo.Place{Country: geo.PrivateCountry, Continent: geo.PrivateContinent}
		}
	}
	return v.place
}

// ASN is the client's autonomous system, if its state is known.
func (m *Model) ASN(v *Visit) (policies.ASN, geo.State) {
	switch {
	case v.Request.ASN != 0:
		return v.Request.ASN, geo.Known
	case m.geo.ASNs != nil:
		return m.geo.ASNs.Lookup(v.Client)
	case geo.IsPrivate(v.Client):
		return 0, geo.Private
	}
	return 0, geo.Unknown
}

// anyMatch is a map of regular expressions. NGINX tries none on an empty value.
func anyMatch(regexes []*policies.Regex, value string) bool {
	if value == "" {
		return false
	}
	// An expression only reads, and keeps nothing.
	subject := unsafe.Slice(unsafe.StringData(value), len(value))
	for _, re := range regexes {
		if re.Match(subject) {
			return true
		}
	}
	return false
}

// Unmet is the first condition of w that does not hold: "method", or the carrier
// and name of a value. Empty: all hold.
func (r *Request) Unmet(w *policies.When) string {
	if w == nil {
		return ""
	}
	if len(w.Methods) > 0 && !slices.Contains(w.Methods, r.method()) {
		return "method"
	}
	for i := range w.Tests {
		t := &w.Tests[i]
		value, holds := r.Value(t.Carrier, t.Name), false
		switch {
		case t.Present:
			holds = value != ""
		case t.Absent:
			holds = value == ""
		default:
			holds = anyMatch(t.Regexes, value)
		}
		if !holds {
			return CarrierName(t.Carrier) + " " + t.Name
		}
	}
	return ""
}

func (r *Request) method() string {
	if r.Method == "" {
		return "GET"
	}
	return r.Method
}

// CarrierName is the word of the language for a part of a request.
func CarrierName(c policies.Carrier) string {
	switch c {
	case policies.CarrierQuery:
		return "query"
	case policies.CarrierCookie:
		return "cookie"
	}
	return "header"
}
