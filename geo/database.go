package geo

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"sluice/policies"
)

// Limits are what is asked of a database besides its kind.
type Limits struct {
	MaxAge time.Duration // 0: any age
	Now    time.Time     // needed with MaxAge
}

// Tables are the databases that a policy is rendered or served with. Either
// may be nil.
type Tables struct {
	Countries *Countries
	ASNs      *ASNs
}

// Info is what a database says of itself, and where it came from.
type Info struct {
	File   string // as it was named
	Type   string // such as GeoLite2-Country
	Built  time.Time
	Layout Layout
}

// database is a database whose records were read into values, by their
// offsets: there are few of them, and a lookup then decodes nothing.
type database[V any] struct {
	Info
	reader *maxminddb.Reader
	values map[uintptr]V
}

// Countries is a country database.
type Countries struct{ database[Place] }

// ASNs is a database of autonomous systems.
type ASNs struct{ database[policies.ASN] }

// Place is where an address is. Each part is a code, or the word for its
// state: unknown or private.
type Place struct {
	Country   policies.Country
	Continent policies.Continent
}

// OpenCountries reads a country database.
func OpenCountries(file string, limits Limits) (*Countries, error) {
	fail := func(err error) (*Countries, error) {
		return nil, fmt.Errorf("cannot use country database %q: %w", file, err)
	}
	r, err := open(file, limits)
	if err != nil {
		return fail(err)
	}
	layout, ok := findLayout(r, countryLayouts(), hasCountry)
	if !ok {
		return fail(fmt.Errorf("its records (%s) hold no code of a country; want one of the fields %s",
			r.Metadata.DatabaseType, fields(countryLayouts(), func(l Layout) Field { return l.Country })))
	}
	if _, ok := findLayout(r, []Layout{layout}, hasContinent); !ok {
		layout.Continent = nil
	}
	c := &Countries{newDatabase[Place](file, r, layout)}
	of := ContinentOf()
	err = c.readValues(func(n maxminddb.Result) Place {
		p := Place{UnknownCountry, UnknownContinent}
		if code, ok := country(layout.Country.read(n)); ok {
			p.Country = code
		}
		if code, ok := continent(layout.Continent.read(n)); ok {
			p.Continent = code
		} else if code, ok := of[p.Country]; ok && layout.Continent == nil {
			p.Continent = code
		}
		return p
	})
	if err != nil {
		return fail(err)
	}
	return c, nil
}

// OpenASNs reads a database of autonomous systems.
func OpenASNs(file string, limits Limits) (*ASNs, error) {
	fail := func(err error) (*ASNs, error) {
		return nil, fmt.Errorf("cannot use ASN database %q: %w", file, err)
	}
	r, err := open(file, limits)
	if err != nil {
		return fail(err)
	}
	layout, ok := findLayout(r, asnLayouts(), hasASN)
	if !ok {
		return fail(fmt.Errorf("its records (%s) hold no number of an autonomous system; want one of the fields %s",
			r.Metadata.DatabaseType, fields(asnLayouts(), func(l Layout) Field { return l.ASN })))
	}
	a := &ASNs{newDatabase[policies.ASN](file, r, layout)}
	err = a.readValues(func(n maxminddb.Result) policies.ASN {
		asn, _ := number(layout.ASN.read(n))
		return asn
	})
	if err != nil {
		return fail(err)
	}
	return a, nil
}

// open reads a whole file into memory. It is never mapped: a file that is
// overwritten in place would end the process.
func open(file string, limits Limits) (*maxminddb.Reader, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, fmt.Errorf("%w; want the path of an .mmdb file", err)
	}
	r, err := maxminddb.OpenBytes(raw)
	if err != nil {
		return nil, fmt.Errorf("%w; want a whole .mmdb file of GeoLite2, GeoIP2, DB-IP or IPinfo", err)
	}
	built := r.Metadata.BuildTime()
	if age := limits.Now.Sub(built); limits.MaxAge > 0 && age > limits.MaxAge {
		return nil, fmt.Errorf("it was built on %s, %d days ago; want one that is at most %d days old",
			built.UTC().Format(time.DateOnly), int(age.Hours()/24), int(limits.MaxAge.Hours()/24))
	}
	return r, nil
}

func newDatabase[V any](file string, r *maxminddb.Reader, l Layout) database[V] {
	return database[V]{
		Info:   Info{File: file, Type: r.Metadata.DatabaseType, Built: r.Metadata.BuildTime().UTC(), Layout: l},
		reader: r, values: map[uintptr]V{},
	}
}

// readValues reads every record once. A record that cannot be read is an
// error now, and not at the first client whom it concerns.
func (d *database[V]) readValues(value func(maxminddb.Result) V) error {
	for n := range d.reader.Networks() {
		if err := n.Err(); err != nil {
			return fmt.Errorf("it is damaged: %w", err)
		}
		if _, known := d.values[n.Offset()]; known {
			continue
		}
		var all any
		if err := n.Decode(&all); err != nil {
			return fmt.Errorf("it is damaged at %s: %w", n.Prefix(), err)
		}
		d.values[n.Offset()] = value(n)
	}
	return nil
}

// lookup is the value of an address, and whether there is one.
func (d *database[V]) lookup(addr netip.Addr) (V, State) {
	var none V
	addr, ok := unwrap(addr)
	if !ok {
		return none, Unknown
	}
	if isPrivate(addr) {
		return none, Private
	}
	n := d.reader.Lookup(addr)
	if !n.Found() {
		return none, Unknown
	}
	return d.values[n.Offset()], Known
}

// Lookup is where an address is. It does not allocate.
func (c *Countries) Lookup(addr netip.Addr) Place {
	p, state := c.lookup(addr)
	switch state {
	case Private:
		return Place{PrivateCountry, PrivateContinent}
	case Unknown:
		return Place{UnknownCountry, UnknownContinent}
	}
	return p
}

// Lookup is the autonomous system of an address, if its state is known. It
// does not allocate.
func (a *ASNs) Lookup(addr netip.Addr) (policies.ASN, State) {
	asn, state := a.lookup(addr)
	if state == Known && asn == 0 {
		state = Unknown
	}
	return asn, state
}
