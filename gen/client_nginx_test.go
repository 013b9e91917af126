package gen

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// TestIPv6Prefix: two addresses have one key at the edge exactly when they are
// one client to the policy: for every length, IPv4 unwrapped (C056).
func TestIPv6Prefix(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for _, bits := range []int{48, 49, 52, 55, 56, 57, 60, 63, 64, 65, 71, 96, 120, 127, 128} {
		s := startWith(t, fmt.Sprintf("version: 1\nclient_ip: {trusted_proxies: [127.0.0.1], ipv6_prefix: %d}\nedge: {limits: {x: {per: [ip, server], rate: 1/s, burst: 1}}}\n", bits),
			func(f Files, _ string) {
				f["nginx.conf"] = []byte(strings.Replace(string(f["nginx.conf"]), "include sluice/locations.conf;", `default_type text/plain; location / { return 200 "$sluice_family$sluice_ip"; }`, 1))
			})
		byKey, byClient := map[string]netip.Prefix{}, map[netip.Prefix]string{}
		for _, addr := range addresses(random, bits) {
			key := s.get("/", "X-Forwarded-For", addr.String()).body
			client := clientOf(addr, bits)
			if other, ok := byKey[key]; ok && other != client {
				t.Errorf("/%d: %s and %s have one key", bits, other, client)
			}
			if other, ok := byClient[client]; ok && other != key {
				t.Errorf("/%d: %s has two keys, %q and %q", bits, client, other, key)
			}
			byKey[key], byClient[client] = client, key
		}
		s.noWarnings()
		s.nginx.Stop()
	}
}

// clientOf is the client that an address belongs to.
func clientOf(addr netip.Addr, bits int) netip.Prefix {
	if raw := addr.As16(); netip.MustParsePrefix("64:ff9b::/96").Contains(addr) {
		addr = netip.AddrFrom4([4]byte(raw[12:]))
	}
	addr = addr.Unmap()
	if addr.Is4() {
		bits = 32
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		panic(err)
	}
	return p
}

// addresses are some that lie close together around the end of a prefix, with
// line breaks among their bytes.
func addresses(random *rand.Rand, bits int) []netip.Addr {
	var out []netip.Addr
	for _, s := range []string{"192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "192.0.2.2", "10.10.10.10", "::ffff:10.10.10.10", "::1", "::", "64:ff9b:0:0:0:1:c000:201", "::fffe:192.0.2.1"} {
		out = append(out, netip.MustParseAddr(s))
	}
	base := netip.MustParseAddr("2001:db8:a0a:a0a:a0a:a0a:a0a:a0a").As16()
	for range 40 {
		raw := base
		for range 1 + random.IntN(2) {
			bit := min(127, max(32, bits-6+random.IntN(12)))
			raw[bit/8] ^= 0x80 >> (bit % 8)
		}
		out = append(out, netip.AddrFrom16(raw))
	}
	return out
}
