package gen

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"sluice/gen/gentest"
)

// TestIPv6Prefix: two addresses have one key at the edge exactly when they are
// one client to the policy: for every length from 48 to 128, IPv4 unwrapped (C056).
func TestIPv6Prefix(t *testing.T) {
	t.Parallel()
	gentest.Binary(t)
	var maps, locations strings.Builder
	for bits := 48; bits <= 128; bits++ {
		files := rendered(t, fmt.Sprintf("version: 1\nclient_ip: {trusted_proxies: [127.0.0.1], ipv6_prefix: %d}\nedge: {limits: {x: {per: [ip, server], rate: 1/s, burst: 1}}}\n", bits))
		_, client, _ := strings.Cut(string(files["sluice/http.conf"]), "# ---- Who the client is\n")
		client, _, _ = strings.Cut(client, "# ----")
		// All lengths in one NGINX: each has its names.
		name := fmt.Sprintf("b%d_", bits)
		maps.WriteString(strings.ReplaceAll(client, "sluice_", name))
		fmt.Fprintf(&locations, "location = /%d { return 200 \"$%sfamily$%sip\"; }\n", bits, name, name)
	}
	addr := gentest.FreePort(t)
	main, http := gentest.Hermetic()
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, map[string]string{"nginx.conf": fmt.Sprintf("%sevents { }\nhttp {\n%saccess_log off; variables_hash_max_size 8192; set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;\n%s\nserver { listen %s; keepalive_requests 100000;\n%s}\n}\n",
		main, http, maps.String(), addr, locations.String())})
	gentest.Start(t, dir, "nginx.conf", addr)
	conn := dial(t, addr)
	r := bufio.NewReader(conn)
	random := rand.New(rand.NewPCG(3, 4))
	for bits := 48; bits <= 128; bits++ {
		byKey, byClient := map[string]netip.Prefix{}, map[netip.Prefix]string{}
		for _, addr := range addresses(random, bits) {
			if _, err := fmt.Fprintf(conn, "GET /%d HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: %s\r\n\r\n", bits, addr); err != nil {
				t.Fatal(err)
			}
			key := readText(t, r)
			client := clientOf(addr, bits)
			if other, ok := byKey[key]; ok && other != client {
				t.Errorf("/%d: %s and %s have one key", bits, other, client)
			}
			if other, ok := byClient[client]; ok && other != key {
				t.Errorf("/%d: %s has two keys, %q and %q", bits, client, other, key)
			}
			byKey[key], byClient[client] = client, key
		}
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
