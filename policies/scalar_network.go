package policies

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// UnmarshalText reads a network or a single address.
func (n *Network) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "private" {
		*n = Network{Private: true}
		return nil
	}
	address, bits, slash := strings.Cut(s, "/")
	addr, err := netip.ParseAddr(address)
	if err != nil || addr.Zone() != "" {
		return wrongf(ruleNetwork, "%s %s", show(s), networkHint(s))
	}
	length := addr.BitLen()
	if slash {
		if strings.ContainsAny(bits, "#, ") {
			return wrongf(ruleNetwork, "%s %s", show(s), networkHint(s))
		}
		if length, err = prefixLength(bits, addr); err != nil {
			return wrongf(ruleNetwork, "%s %s", show(s), err)
		}
	}
	if addr.Is4In6() {
		if length < 96 {
			return wrongf(ruleNetwork, "%s holds more than all IPv4-mapped addresses; want an IPv4 network such as %s/8", show(s), addr.Unmap())
		}
		addr, length = addr.Unmap(), length-96
	}
	prefix := netip.PrefixFrom(addr, length)
	if prefix != prefix.Masked() {
		return wrongf(ruleNetwork, "%s has bits set behind its length; want %s, or %s for the one address", show(s), prefix.Masked(), addr)
	}
	*n = Network{Prefix: prefix}
	return nil
}

// prefixLength reads what follows the slash.
func prefixLength(bits string, addr netip.Addr) (int, error) {
	n, err := whole(ruleNetwork, bits, int64(addr.BitLen()))
	if err == nil {
		return int(n), nil
	}
	mask, merr := netip.ParseAddr(bits)
	if merr == nil && mask.Is4() && addr.Is4() {
		if ones, size := net.IPMask(mask.AsSlice()).Size(); size != 0 {
			return 0, fmt.Errorf("has a netmask; want %s/%d", addr, ones)
		}
		return 0, fmt.Errorf("has a netmask with holes; want networks with a prefix length")
	}
	if only(bits, digit) && bits != "" && bits[0] == '0' {
		return 0, fmt.Errorf("has a leading zero in its length; want %s/%s", addr, plain(bits))
	}
	return 0, fmt.Errorf("has no good prefix length; want 0 to %d", addr.BitLen())
}

var (
	dottedShort = regexp.MustCompile(`^([0-9]{1,3})(\.[0-9]{1,3}){0,2}$`)
	dottedQuad  = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+$`)
)

// networkHint says what is odd about a text whose beginning is no address.
func networkHint(s string) string {
	const want = "want a network such as 192.0.2.0/24 or 2001:db8::/32, a single address, or private"
	address, bits, slash := strings.Cut(s, "/")
	from, to, dash := strings.Cut(s, "-")
	switch {
	case strings.Contains(s, "#"):
		return "has a comment in its value: a comment begins with a space before the #; want that, or no comment"
	case strings.Contains(s, ",") || strings.Contains(s, " ") && !dash:
		return "is more than one; want each network as its own entry"
	case strings.Contains(s, "%"):
		return "has a zone; want the address without %…"
	case dash && addressLike(strings.TrimSpace(from)) && addressLike(strings.TrimSpace(to)):
		return "is a range; want it as networks with a prefix length" + rangeHint(strings.TrimSpace(from), strings.TrimSpace(to))
	case dottedQuad.MatchString(address) && leadingZero(address):
		return "has a leading zero, which some programs read as octal; want decimal parts without it"
	case dottedShort.MatchString(strings.TrimSuffix(address, ".")) && slash:
		parts := strings.Split(strings.TrimSuffix(address, "."), ".")
		for len(parts) < 4 {
			parts = append(parts, "0")
		}
		if !only(bits, digit) {
			bits = "…"
		}
		return fmt.Sprintf("is abbreviated; want all four parts: %s/%s", strings.Join(parts, "."), bits)
	case strings.Contains(s, "*"):
		return "has a wildcard; want a network with a prefix length, such as 10.1.0.0/16"
	case dottedQuad.MatchString(address):
		return "has a part above 255; " + want
	case portOf(s) != "":
		return "has a port; want the address alone: " + portOf(s)
	case strings.HasPrefix(s, "["):
		return "has brackets; want the address without them"
	case s == "localhost" || s == "loopback":
		return "is a name; want 127.0.0.0/8 and ::1, or private, which holds them and more"
	case s == "all" || s == "any" || s == "*":
		return "is no network; want 0.0.0.0/0 and ::/0, or `all` in place of the whole mapping"
	}
	return "is no network" + didYouMean(s, []string{"private"}) + "; " + want
}

func addressLike(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || dottedShort.MatchString(s)
}

// rangeHint names the network that a range is, when it is one.
func rangeHint(from, to string) string {
	low, err := netip.ParseAddr(from)
	high, err2 := netip.ParseAddr(to)
	if err != nil || err2 != nil || low.BitLen() != high.BitLen() {
		return ""
	}
	for bits := range low.BitLen() + 1 {
		if p := netip.PrefixFrom(low, bits); p.Masked() == p && last(p) == high {
			return ": " + p.String()
		}
	}
	return ""
}

// last is the last address of a network.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for i := p.Bits(); i < len(b)*8; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

func leadingZero(address string) bool {
	for part := range strings.SplitSeq(address, ".") {
		if len(part) > 1 && part[0] == '0' {
			return true
		}
	}
	return false
}

// portOf is the address of a text that has a port, or nothing.
func portOf(s string) string {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().String()
	}
	return ""
}

func (n Network) String() string {
	switch {
	case n.Private:
		return "private"
	case !n.Prefix.IsValid():
		return ""
	case n.Prefix.IsSingleIP():
		return n.Prefix.Addr().String()
	}
	return n.Prefix.String()
}

// UnmarshalText reads an autonomous system: AS64500, as64500, "AS 64500",
// 64500, the dotted 1.10, or unknown.
func (a *ASN) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "unknown" {
		*a = 0
		return nil
	}
	number := strings.TrimSpace(strings.TrimPrefix(strings.ToUpper(s), "AS"))
	high, low, dotted := strings.Cut(number, ".")
	if !dotted {
		high, low = "0", number
	}
	most := int64(1<<32 - 1)
	if dotted {
		most = 1<<16 - 1
	}
	h, err := whole(ruleASN, high, most)
	l, err2 := whole(ruleASN, low, most)
	switch {
	case err != nil || err2 != nil:
		if d := plain(number); only(number, digit) && d != number && number != "" {
			return wrongf(ruleASN, "%s has a leading zero, which some programs read as octal; want AS%s", show(s), d)
		}
		return wrongf(ruleASN, "%s is no autonomous system; want a number from 1 to 4294967295, such as AS64500", show(s))
	case h == 0 && l == 0:
		return wrongf(ruleASN, "%s is reserved and stands for nobody; want 1 to 4294967295, or unknown", show(s))
	}
	*a = ASN(h<<16 + l)
	return nil
}

func (a ASN) String() string {
	if a == 0 {
		return "unknown"
	}
	return "AS" + strconv.FormatUint(uint64(a), 10)
}
