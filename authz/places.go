package authz

import (
	"fmt"
	"net/netip"
	"strconv"

	"sluice/geo"
	"sluice/policies"
)

// Places say where clients are, for limits that count by it. What they lack is
// nil. They are asked while a decision is made: they neither wait nor allocate.
type Places struct {
	Country func(netip.Addr) policies.Country
	ASN     func(netip.Addr) (policies.ASN, geo.State)
	// tables are what they come from, for access rules and edge limits.
	tables geo.Tables
}

// PlacesOf are the places of databases.
func PlacesOf(t geo.Tables) Places {
	p := Places{tables: t}
	if t.Countries != nil {
		p.Country = func(addr netip.Addr) policies.Country { return t.Countries.Lookup(addr).Country }
	}
	if t.ASNs != nil {
		p.ASN = t.ASNs.Lookup
	}
	return p
}

// Locate puts other places in force. Those that the policy in force counts by
// must be among them: else the old ones stay. Not to be called while Swap is.
func (e *Engine) Locate(p Places) error {
	if b := e.state.Load(); b != nil {
		if err := p.serve(b); err != nil {
			return err
		}
	}
	e.places.Store(&p)
	return nil
}

// serve refuses a policy that counts by what the places lack.
func (p *Places) serve(b *bound) error {
	switch {
	case b.country != "" && p.Country == nil:
		return fmt.Errorf("limit %q counts by country, and no database says where clients are; want --country-db FILE", b.country)
	case b.asn != "" && p.ASN == nil:
		return fmt.Errorf("limit %q counts by autonomous system, and no database says where clients are; want --asn-db FILE", b.asn)
	}
	return nil
}

// appendCountry appends the client's country. Clients whose country is unknown
// have one counter, as at the edge, and so have those of private networks.
func (p *Places) appendCountry(dst []byte, c client) []byte {
	return append(append(dst, "country="...), p.Country(c.addr)...)
}

// appendASN is appendCountry for autonomous systems.
func (p *Places) appendASN(dst []byte, c client) []byte {
	dst = append(dst, "asn="...)
	asn, state := p.ASN(c.addr)
	if state != geo.Known {
		return append(dst, state.String()...)
	}
	return strconv.AppendUint(dst, uint64(asn), 10)
}
