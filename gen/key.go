package gen

import (
	"fmt"
	"strings"

	"sluice/policies"
	"sluice/policies/edge"
)

// How many bytes NGINX's allocator takes for a state, by the length of its key
// (measured; a little more than the slot, for the tables of the allocator).
const (
	slotSmall  = 132 // keys up to 48 bytes
	slotMedium = 264 // 49 to 176
	slotLarge  = 528 // 177 to 432
)

// keyText is what a limit counts by.
type keyText struct {
	text  *text
	slot  int64
	route bool
}

// limitKey builds the key from the dimensions. An address stands first, with
// its family in front when others follow; values of the client begin with =,
// and a tab, which no value may hold, is between all: so no two tuples meet,
// and no value is another client's address.
func (b *builder) limitKey(name string, l *policies.EdgeLimit) keyText {
	k := keyText{text: &text{}, slot: slotSmall}
	if len(l.Per) == 1 && l.Per[0].Kind == policies.DimIP {
		k.text.v("sluice_ip")
		return k
	}
	values := 0
	for _, d := range edge.KeyDims(l.Per) {
		if len(k.text.parts) > 0 {
			k.text.lit("\t")
		}
		switch d.Kind {
		case policies.DimIP:
			b.family = true
			k.text.v("sluice_family", "sluice_ip")
		case policies.DimServer:
			k.text.v("server_name")
			k.slot = max(k.slot, slotMedium)
		case policies.DimRoute:
			k.text.v("sluice_route")
			k.slot, k.route = max(k.slot, slotMedium), true
		case policies.DimCountry, policies.DimASN:
			k.text.v(b.countedPlace(d.Kind))
		case policies.DimGlobal:
			k.text.lit("all")
		case policies.DimHeader, policies.DimCookie, policies.DimQuery:
			values++
			k.text.v(b.countedValue(d))
			k.slot = slotLarge
		default:
			b.take(Token{}, fmt.Errorf("cannot render edge limit %q: NGINX cannot count by %s here", l.Name, d.Kind))
		}
	}
	if values > 1 {
		k.text = b.bounded(name+"__key", k.text)
	}
	if l.Connections == 0 {
		k.text = b.padded(k)
	}
	return k
}

// countedValue is the variable of a client's value as a part of keys: the
// address stands in when the value is absent, too long or holds control characters.
func (b *builder) countedValue(d policies.Dim) string {
	source, _ := b.carried(d)
	name := "sluice_by" + strings.TrimPrefix(strings.TrimPrefix(source, "sluice"), "http")
	if d.Kind == policies.DimHeader {
		name = "sluice_by_header_" + headerIdent(d.Name)
	}
	if !b.named[name] {
		b.named[name] = true
		b.family = true
		m := newMap(variable(source), name)
		m.otherwise((&text{}).v("sluice_family", "sluice_ip").mustToken())
		m.line(ownRegex(fmt.Sprintf(`^[^\x00-\x1f\x7f]{1,%d}\z`, policies.MaxValue)), (&text{}).lit("=").v(source).mustToken())
		b.keys = append(b.keys, m)
	}
	return name
}

// bounded keeps a key with several values of the client short enough: the
// address stands in for one that is not.
func (b *builder) bounded(name string, key *text) *text {
	m := newMap(key.mustToken(), name)
	m.otherwise(key.mustToken())
	m.line(ownRegex(fmt.Sprintf(`(?s)^.{%d}`, edge.MaxJoined+1)), (&text{}).v("sluice_family", "sluice_ip").mustToken())
	b.keys = append(b.keys, m)
	return (&text{}).v(name)
}

// padded makes all keys of a zone take slots of one size: a full zone makes
// room by dropping its oldest state, which helps only a key of the same size,
// and would refuse everybody else.
func (b *builder) padded(k keyText) *text {
	pad := ""
	switch k.slot {
	case slotMedium:
		pad = "sluice_pad_49"
	case slotLarge:
		pad = "sluice_pad_177"
	default:
		return k.text
	}
	b.named[pad] = true
	return k.text.v(pad)
}
