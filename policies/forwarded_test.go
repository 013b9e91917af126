package policies

import (
	"net/netip"
	"testing"
)

// TestClientAddress: who the client is behind which hops (C051, C053). That
// NGINX agrees is tested where there is one, in package gen.
func TestClientAddress(t *testing.T) {
	t.Parallel()
	p, ds := Parse("policy.yaml", []byte("version: 1\nclient_ip: {trusted_proxies: [10.0.0.0/8, \"2001:db8:ff::/48\"]}\n"), nil)
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	c := Compile(p)
	const proxy = "10.0.0.2"
	for _, f := range []struct {
		peer   string
		values []string
		want   string
	}{
		{"198.51.100.1", []string{"203.0.113.9"}, "198.51.100.1"}, // nobody believes a stranger
		{proxy, nil, proxy},
		{proxy, []string{"203.0.113.9, 198.51.100.7"}, "198.51.100.7"},
		{proxy, []string{"6.6.6.6, 203.0.113.9, 10.9.9.9"}, "203.0.113.9"},
		{proxy, []string{"198.51.100.7, unknown, 10.0.0.3"}, "10.0.0.3"}, // garbage ends the walk
		{proxy, []string{"198.51.100.7, unknown"}, proxy},
		{proxy, []string{""}, proxy},
		{proxy, []string{"203.0.113.9", "10.0.0.3"}, "203.0.113.9"}, // several lines are one list
		{proxy, []string{"203.0.113.9:8080"}, "203.0.113.9"},
		{proxy, []string{"[2001:db8::1]:443"}, "2001:db8::1"},
		{proxy, []string{"[2001:db8::1]"}, proxy},
		{proxy, []string{"fe80::1%eth0"}, proxy},
		{proxy, []string{"203.0.113.9,,10.0.0.3"}, "203.0.113.9"},
		{"::ffff:10.0.0.2", []string{"203.0.113.9"}, "203.0.113.9"},
		{"2001:db8:ff::1", []string{"::ffff:10.0.0.3"}, "::ffff:10.0.0.3"},
	} {
		if got := c.ClientAddress(netip.MustParseAddr(f.peer), f.values); got != netip.MustParseAddr(f.want) {
			t.Errorf("%s with %q is %s; want %s", f.peer, f.values, got, f.want)
		}
	}
}

// FuzzReadHop: no text is too odd, and what Go writes is read back.
func FuzzReadHop(f *testing.F) {
	for _, s := range []string{"192.0.2.1:80", "[::1]:1", "::1.2.3.4", "1:2:3:4:5:6:7::", ":1::", "...", "[", "]:", "::ffff:a.1"} {
		f.Add(s, []byte("\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x01"))
	}
	f.Fuzz(func(t *testing.T, s string, raw []byte) {
		readHop(s)
		want, ok := netip.AddrFromSlice(raw)
		if !ok || want.Unmap() == netip.MustParseAddr("255.255.255.255") {
			return
		}
		for _, text := range []string{want.String(), netip.AddrPortFrom(want, 80).String()} {
			if got, ok := readHop(text); !ok || got != want {
				t.Errorf("%q is %v, %v; want %s", text, got, ok, want)
			}
		}
	})
}
