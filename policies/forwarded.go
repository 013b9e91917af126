package policies

import (
	"net/netip"
	"strings"
)

// ClientAddress is the address that NGINX takes for the client's, with the
// rendered real_ip.conf: the peer's, unless it is a trusted proxy and names
// another in the header of the policy. Values are those of that header, in the
// order in which they came; for proxy_protocol, the one address of its line.
//
// The list is walked from the right past trusted hops, and the walk ends at the
// first address that is not trusted, or in front of what NGINX cannot read. What
// it can read is more than what is well written, and less: see readAddress.
func (c *Compiled) ClientAddress(peer netip.Addr, values []string) netip.Addr {
	if !strings.EqualFold(string(c.Client.Header), "X-Forwarded-For") && len(values) > 1 {
		values = values[:1] // only this header is a list in several lines
	}
	addr := peer
	for i := len(values) - 1; i >= 0; i-- {
		through := false
		if addr, through = c.walk(addr, values[i]); !through {
			break
		}
	}
	return addr
}

// LastHop cuts the last address off the lists of X-Forwarded-For, as they came: who
// connected to the proxy that wrote it. It is false when NGINX could not read it.
func LastHop(values []string) (addr netip.Addr, rest []string, ok bool) {
	if len(values) == 0 {
		return netip.Addr{}, nil, false
	}
	rest, list := values[:len(values)-1:len(values)-1], values[len(values)-1]
	list, start := lastHop(list)
	if addr, ok = readHop(list[start:]); !ok {
		return netip.Addr{}, nil, false
	}
	if start > 0 {
		rest = append(rest, list[:start-1])
	}
	return addr, rest, true
}

// walk goes through one value from the right. It tells whether it came through
// to the value's beginning, so that the value before it counts too.
func (c *Compiled) walk(addr netip.Addr, list string) (netip.Addr, bool) {
	for {
		if !within(netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), c.Client.Trusted) {
			return addr, false
		}
		var start int
		list, start = lastHop(list)
		next, ok := readHop(list[start:])
		if !ok {
			return addr, false
		}
		addr = next
		if start == 0 {
			return addr, true
		}
		list = list[:start-1]
	}
}

// lastHop cuts separators off the end and finds where the last hop begins. A
// tab is no separator to NGINX, and the first byte of all is never one.
func lastHop(list string) (string, int) {
	separator := func(c byte) bool { return c == ' ' || c == ',' }
	for len(list) > 1 && separator(list[len(list)-1]) {
		list = list[:len(list)-1]
	}
	start := len(list)
	for start > 1 && !separator(list[start-1]) {
		start--
	}
	if start == 1 {
		start = 0
	}
	return list, start
}

// readHop reads an address, or one with a port: 192.0.2.1:80, [2001:db8::1]:80.
// Brackets without a port are not read.
func readHop(s string) (netip.Addr, bool) {
	if addr, ok := readAddress(s); ok {
		return addr, true
	}
	host, port, ok := strings.Cut(s, ":")
	if inner, bracket := strings.CutPrefix(s, "["); bracket {
		host, port, ok = strings.Cut(inner, "]")
		ok = ok && strings.HasPrefix(port, ":")
		port = strings.TrimPrefix(port, ":")
	}
	if !ok || !isPort(port) {
		return netip.Addr{}, false
	}
	return readAddress(host)
}

// isPort tells of 1 to 65535, with zeros in front as one likes.
func isPort(s string) bool {
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
		if n = n*10 + int(c-'0'); n > 65535 {
			return false
		}
	}
	return n > 0
}

// readAddress reads an address as NGINX does, which knows no zones, takes
// 255.255.255.255 for none, and lets pass what netip does not: parts with zeros
// in front or without a digit (1..2.3), and one colon too many in front.
func readAddress(s string) (netip.Addr, bool) {
	if four, ok := readIPv4(s); ok {
		return netip.AddrFrom4(four), four != [4]byte{255, 255, 255, 255}
	}
	return readIPv6(strings.TrimPrefix(s, ":"))
}

func readIPv4(s string) (four [4]byte, ok bool) {
	part, n := 0, 0
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			if n = n*10 + int(c-'0'); n > 255 {
				return four, false
			}
		case c == '.' && part < 3:
			four[part] = byte(n)
			part, n = part+1, 0
		default:
			return four, false
		}
	}
	four[part] = byte(n)
	return four, part == 3
}

// readIPv6 reads groups of up to four hexadecimal digits. A colon was taken off
// in front, so that a gap there is an empty first group.
func readIPv6(s string) (netip.Addr, bool) {
	var out []byte
	gap, start := -1, 0 // where the groups left out belong, and this group begins
	for i := 0; i <= len(s); i++ {
		switch {
		case i < len(s) && s[i] == '.' && i > start:
			four, ok := readIPv4(s[start:])
			if !ok || start == 0 || len(out) > 12 || four == [4]byte{255, 255, 255, 255} {
				return netip.Addr{}, false
			}
			return filled(append(out, four[:]...), gap)
		case i < len(s) && s[i] != ':':
			if hexDigit(s[i]) < 0 || i-start == 4 {
				return netip.Addr{}, false
			}
		case i > start:
			out = append(out, group(s[start:i])...)
			start = i + 1
		case i == len(s):
			// A gap at the very end holds one group of zeros for certain.
			if gap < 0 {
				return netip.Addr{}, false
			}
			out = append(out, 0, 0)
		case gap >= 0:
			return netip.Addr{}, false
		default:
			gap, start = len(out), i+1
		}
		if len(out) > 16 || len(out) == 16 && i < len(s) {
			return netip.Addr{}, false
		}
	}
	return filled(out, gap)
}

// filled puts zeros into the gap. Without one, all must be there; with one, not all.
func filled(out []byte, gap int) (netip.Addr, bool) {
	missing := 16 - len(out)
	if missing < 0 || (gap < 0) != (missing == 0) {
		return netip.Addr{}, false
	}
	var raw [16]byte
	if gap < 0 {
		gap = 0
	}
	copy(raw[:], out[:gap])
	copy(raw[gap+missing:], out[gap:])
	return netip.AddrFrom16(raw), true
}

func group(s string) []byte {
	n := 0
	for i := range len(s) {
		n = n<<4 | hexDigit(s[i])
	}
	return []byte{byte(n >> 8), byte(n)}
}

// hexDigit is the value of a hexadecimal digit, -1 for anything else.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
