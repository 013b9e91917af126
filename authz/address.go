package authz

import (
	"net/netip"
	"unsafe"
)

// client is who asks, by address.
type client struct {
	// addr is the address itself, IPv4 unwrapped; invalid when NGINX named none,
	// as for clients on a unix socket ("unix:").
	addr netip.Addr
	// prefix is the one client that addr belongs to: an IPv4 address, or an IPv6
	// prefix of the policy's length.
	prefix netip.Prefix
}

// noAddress stands for all clients without an address. They are one subject:
// there is nothing to tell them apart by.
const noAddress = "none"

// newClient reads an address as NGINX writes $remote_addr. IPv4 inside of IPv6
// (mapped, or behind NAT64's well-known prefix) is taken out first.
func newClient(text []byte, ipv6Prefix int) client {
	if len(text) == 0 {
		return client{}
	}
	// The string lives no longer than the call: an error that would keep it is
	// dropped, and a zone is copied.
	addr, err := netip.ParseAddr(unsafe.String(&text[0], len(text)))
	if err != nil {
		return client{}
	}
	addr = unwrap(addr.WithZone(""))
	bits := addr.BitLen()
	if addr.Is6() && ipv6Prefix > 0 {
		bits = min(bits, ipv6Prefix)
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return client{}
	}
	return client{addr: addr, prefix: prefix}
}

// unwrap takes an IPv4 address out of ::ffff:0:0/96 and 64:ff9b::/96.
func unwrap(addr netip.Addr) netip.Addr {
	if addr.Is4() {
		return addr
	}
	b := addr.As16()
	if [12]byte(b[:12]) == [12]byte{0x00, 0x64, 0xff, 0x9b} {
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr.Unmap()
}

// within tells whether the address lies in one of the networks; without any
// network everywhere is within.
func (c client) within(networks []netip.Prefix) bool {
	if networks == nil {
		return true
	}
	for _, n := range networks {
		if n.Contains(c.addr) {
			return true
		}
	}
	return false
}

// appendTo writes the client in its one canonical form: 192.0.2.7,
// 2001:db8:0:1::/64, or none.
func (c client) appendTo(dst []byte) []byte {
	switch {
	case !c.prefix.IsValid():
		return append(dst, noAddress...)
	case c.prefix.IsSingleIP() && c.addr.Is4():
		return c.addr.AppendTo(dst)
	}
	return c.prefix.AppendTo(dst)
}

// String is the canonical form.
func (c client) String() string { return string(c.appendTo(nil)) }
