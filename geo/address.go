package geo

import (
	"net/netip"

	"sluice/policies"
)

// State says what is known of an address.
type State uint8

// The states of an address.
const (
	Unknown State = iota // public, and the database does not say
	Private              // no public address
	Known
)

// String is the word that stands for a state where a value would stand.
func (s State) String() string {
	switch s {
	case Unknown:
		return "unknown"
	case Private:
		return "private"
	}
	return "known"
}

// PrivateNetworks are the networks without a place: what the policy calls
// private, and the shared addresses of RFC 6598, behind which carriers and
// overlay networks keep their own. Those are not `private` in a list of cidrs,
// for whoever is behind them need not be a friend; but they are in no country,
// and no public address that a database lacks either.
func PrivateNetworks() []netip.Prefix {
	return append(policies.PrivateNetworks(), netip.MustParsePrefix("100.64.0.0/10"))
}

// IPv6 forms that hold an IPv4 address: two whose address is the client, and
// two whose address says nothing of him. A database may alias any of them to
// its IPv4 part, or hold something of its own there: neither is asked.
const (
	formPlain = iota
	formWraps // mapped, NAT64 and 6to4: the client's IPv4 address
	formVoid  // IPv4-compatible and Teredo
)

// unwrap takes the client's IPv4 address out of IPv6. It is false for an
// address that can be nobody's.
func unwrap(addr netip.Addr) (netip.Addr, bool) {
	if !addr.IsValid() {
		return addr, true
	}
	if addr.Is4() {
		b := addr.As4()
		return addr, b[0] != 0 && b[0] < 240
	}
	addr = addr.WithZone("")
	b := addr.As16()
	switch at, form := formOf(b); form {
	case formWraps:
		return unwrap(netip.AddrFrom4([4]byte(b[at : at+4])))
	case formVoid:
		return addr, addr.IsLoopback()
	}
	return addr, true
}

// formOf is the form of an address, and where the IPv4 address stands in it.
func formOf(b [16]byte) (at, form int) {
	zeros := 0
	for zeros < 12 && b[zeros] == 0 {
		zeros++
	}
	switch {
	case zeros == 12:
		return 12, formVoid
	case zeros == 10 && b[10] == 0xff && b[11] == 0xff:
		return 12, formWraps
	case [12]byte(b[:12]) == [12]byte{0, 0x64, 0xff, 0x9b}:
		return 12, formWraps
	case b[0] == 0x20 && b[1] == 0x02:
		return 2, formWraps
	case [4]byte(b[:4]) == [4]byte{0x20, 0x01}:
		return 0, formVoid
	}
	return 0, formPlain
}

// unasked are the networks of those forms, and of IPv4 addresses that can be
// nobody's; no database is asked about them. NGINX looks up what is no address
// as 255.255.255.255, so it must be nowhere, and cannot be a network of its own.
func unasked() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),
		netip.MustParsePrefix("240.0.0.0/4"),
		netip.MustParsePrefix("::/96"),
		netip.PrefixFrom(netip.AddrFrom16([16]byte{10: 0xff, 11: 0xff}), 96),
		netip.MustParsePrefix("64:ff9b::/96"),
		netip.MustParsePrefix("2001::/32"),
		netip.MustParsePrefix("2002::/16"),
	}
}

// IsPrivate tells whether an address is in no country, whatever database one
// asks: what Lookup answers with Private.
func IsPrivate(addr netip.Addr) bool {
	addr, ok := unwrap(addr)
	return ok && isPrivate(addr)
}

// isPrivate tells whether an unwrapped address is private. What is no address,
// such as the peer at a unix socket, is nobody from outside.
func isPrivate(addr netip.Addr) bool {
	return !addr.IsValid() || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() || isShared(addr)
}

// isShared tells whether an address is in 100.64.0.0/10.
func isShared(addr netip.Addr) bool {
	if !addr.Is4() {
		return false
	}
	b := addr.As4()
	return b[0] == 100 && b[1]&0xc0 == 64
}
