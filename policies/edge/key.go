package edge

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"

	"sluice/geo"
	"sluice/policies"
)

// A counter's key is what NGINX counts by, spelled for people: one part for each
// dimension, joined by commas. It tells the same requests apart as the rendered
// key does, which has addresses in binary: no value of a client holds a control
// character, and one stands between the parts.

// appendKey appends the key of a limit.
func (m *Model) appendKey(dst []byte, l *edgeLimit, v *Visit) []byte {
	start, values := len(dst), 0
	size := 0 // of NGINX's own key, when values of the client are in it
	for i, d := range l.dims {
		if i > 0 {
			dst, size = append(dst, '\t'), size+1
		}
		before := len(dst)
		switch d.Kind {
		case policies.DimIP:
			dst, size = appendClient(dst, v), size+v.clientSize()
		case policies.DimServer:
			dst = append(append(dst, "server="...), v.Server...)
			size += len(v.Server)
		case policies.DimRoute:
			dst = append(append(dst, "route="...), v.Location.Name...)
			size += len(v.Location.Name)
		case policies.DimCountry:
			dst = append(append(dst, "country="...), m.Place(v).Country...)
			size += len(dst) - before - len("country=")
		case policies.DimASN:
			dst = m.appendASN(dst, v)
			size += len(dst) - before - len("asn=")
		case policies.DimGlobal:
			dst = append(dst, "all"...)
		default:
			values++
			value := countedValue(d, v.Request)
			if value == "" {
				dst, size = appendClient(dst, v), size+v.clientSize()
				continue
			}
			dst = append(append(dst, "value="...), value...)
			size += 1 + len(value)
		}
	}
	if values > 1 && size > MaxJoined {
		return appendClient(dst[:start], v)
	}
	return dst
}

// appendClient appends the client as he is counted: an IPv4 address, or an IPv6
// prefix.
func appendClient(dst []byte, v *Visit) []byte {
	dst = append(dst, "ip="...)
	switch {
	case !v.Counted.IsValid():
		return append(dst, "none"...)
	case v.Counted.Addr().Is4():
		return v.Counted.Addr().AppendTo(dst)
	}
	return v.Counted.AppendTo(dst)
}

// clientSize is how many bytes the client takes in a key, his family included.
func (v *Visit) clientSize() int {
	switch {
	case !v.Counted.IsValid():
		return 1
	case v.Counted.Addr().Is4():
		return 1 + 4
	case v.Counted.Bits()%8 == 0:
		return 1 + v.Counted.Bits()/8
	}
	return 1 + v.Counted.Bits()/8 + v.Counted.Bits()%8
}

func (m *Model) appendASN(dst []byte, v *Visit) []byte {
	dst = append(dst, "asn="...)
	if asn, state := m.ASN(v); state == geo.Known {
		return strconv.AppendUint(dst, uint64(asn), 10)
	} else {
		return append(dst, state.String()...)
	}
}

// countedValue is a value of the client that a limit counts by; empty when the
// address stands in: it is absent, too long, or holds control characters.
func countedValue(d policies.Dim, r *Request) string {
	value := ""
	switch d.Kind {
	case policies.DimHeader:
		value = r.Get(d.Name)
	case policies.DimCookie:
		value = r.Value(policies.CarrierCookie, d.Name)
	case policies.DimQuery:
		value = r.Value(policies.CarrierQuery, d.Name)
		if d.Capture != nil && value != "" {
			value, _ = d.Capture.Capture([]byte(value))
		}
	}
	if !printable(value, policies.MaxValue) {
		return ""
	}
	return value
}

// counted is the one client that an address belongs to: $sluice_ip.
func counted(addr netip.Addr, ipv6Prefix int) netip.Prefix {
	addr = unwrapped(addr).WithZone("")
	if !addr.IsValid() {
		return netip.Prefix{}
	}
	bits := addr.BitLen()
	if addr.Is6() && ipv6Prefix > 0 {
		bits = min(bits, ipv6Prefix)
	}
	return netip.PrefixFrom(addr, bits).Masked()
}

// shownKey is a key for people: values of the client may be secrets, and stand in
// it as the beginning of their hash.
func shownKey(key []byte) string {
	parts := strings.Split(string(key), "\t")
	for i, part := range parts {
		if value, ok := strings.CutPrefix(part, "value="); ok {
			sum := sha256.Sum256([]byte(value))
			parts[i] = "value=~" + hex.EncodeToString(sum[:6])
		}
	}
	return strings.Join(parts, ", ")
}
