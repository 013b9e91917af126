package gen

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
)

// hops are pieces of lists of addresses: good ones, trusted and not, and what
// people, proxies and attackers write (C051, C053).
var hops = []string{
	"203.0.113.9", "198.51.100.7", "10.0.0.2", "10.255.255.255", "127.0.0.1", "2001:db8::1", "2001:db8:ff::2", "::1", "::", "::ffff:10.0.0.2", "::ffff:198.51.100.7",
	"192.0.2.1:80", "192.0.2.1:0", "192.0.2.1:65535", "192.0.2.1:65536", "192.0.2.1:", "192.0.2.1:080", "192.0.2.1:8o", "10.0.0.3:1234", "[2001:db8::1]:443", "[2001:db8::1]", "[::1]:", "[192.0.2.9]:8", "[10.0.0.4]:9", "[]:1", "[", "]", "[::1]x:1", "[::1]:1:1", "2001:db8::1:443",
	"unknown", "_hidden", "localhost", "-", "", " ", ",", ", ,", ",,", "\t", "\t192.0.2.5", "192.0.2.5\t", "for=192.0.2.6", `"192.0.2.6"`, "fe80::1%eth0", "fe80::1%25eth0", "[fe80::1%1]:80", "192.0.2.010", "010.0.0.1", "0300.0.2.1", "192.0.2.256", "192.0.2", "192.0.2.", ".192.0.2", "...", "1..2.3", "192.0.2.1.5", "3221225985", "0xc0.0.2.1", "255.255.255.255", "255.255.255.254", "0.0.0.0", "::255.255.255.255", "::ffff:1.2.3", "::1.2.3.4", "1::1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "::0001.2.3.4", "::00001.2.3.4", "::ffff:a.2.3.4", "1.2.3.4::", ".::1",
	"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:9", ":1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8:", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "::1:2:3:4:5:6:7:8", "1::3:4:5:6:7:8", ":::", "::1::", "1:::2", ":1", "1:", ":", "::1:", "12345::", "::G", "2001:DB8::AbC", "a:b:c:d:e:f:0:1", "64:ff9b::10.0.0.1", "é", "\x01", "192.0.2.1\x7f", strings.Repeat("9", 400), strings.Repeat("0", 50) + "1.2.3.4", strings.Repeat(":", 40),
}

// headerOf draws the values of a header in one request.
func headerOf(random *rand.Rand) []string {
	values := make([]string, random.IntN(4))
	for i := range values {
		var v strings.Builder
		for n := range random.IntN(5) {
			if n > 0 {
				v.WriteString([]string{", ", ",", " ", " , ", ",  "}[random.IntN(5)])
			}
			hop := hops[random.IntN(len(hops))]
			if random.IntN(2) == 0 { // mostly proxies, so that walks are long
				hop = []string{"10.0.0.2", "10.1.2.3", "2001:db8:ff::2", "::ffff:10.9.9.9", "[2001:db8:ff::3]:80", "198.51.100.7"}[random.IntN(6)]
			}
			if random.IntN(12) == 0 && hop != "" { // something slightly else
				at := random.IntN(len(hop))
				hop = hop[:at] + string(".:0f1]["[random.IntN(7)]) + hop[at+random.IntN(2):]
			}
			v.WriteString(hop)
		}
		values[i] = v.String()
	}
	return values
}

// TestForwarded: NGINX and the Go side find the same client in thousands of
// headers of every kind (C051, C053).
func TestForwarded(t *testing.T) {
	t.Parallel()
	for _, header := range []string{"X-Forwarded-For", "X-Real-IP", "True-Client-IP"} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			c := compiled(t, "version: 1\nclient_ip: {header: "+header+", trusted_proxies: [127.0.0.1, 10.0.0.0/8, \"2001:db8:ff::/48\"]}\n")
			s := startCompiled(t, c, tellAddress)
			conn := dial(t, s.addr)
			r := bufio.NewReader(conn)
			ask := func(values []string) {
				t.Helper()
				var req strings.Builder
				req.WriteString("GET / HTTP/1.1\r\nHost: x\r\n")
				for _, v := range values {
					fmt.Fprintf(&req, "%s: %s\r\n", header, v)
				}
				req.WriteString("\r\n")
				if _, err := io.WriteString(conn, req.String()); err != nil {
					t.Fatal(err)
				}
				got := readText(t, r)
				for i, v := range values { // as NGINX has them: without spaces around
					values[i] = strings.Trim(v, " ")
				}
				want := c.ClientAddress(netip.MustParseAddr("127.0.0.1"), values)
				if addr, err := netip.ParseAddr(got); err != nil || addr != want {
					t.Errorf("%q is %s to NGINX and %s here", values, got, want)
				}
			}
			for _, hop := range hops {
				if strings.ContainsAny(hop, "\x01") {
					continue // refused as a whole
				}
				ask([]string{hop})
				ask([]string{"198.51.100.7, " + hop + ", 10.0.0.2"})
				ask([]string{hop + ",10.0.0.2"})
				ask([]string{"198.51.100.7", hop, "10.0.0.2"})
			}
			random := rand.New(rand.NewPCG(7, uint64(len(header))))
			for range 3000 {
				values := headerOf(random)
				if !strings.Contains(strings.Join(values, ""), "\x01") {
					ask(values)
				}
			}
		})
	}
}

// tellAddress lets the site answer with the client's address.
func tellAddress(f Files, _ string) {
	f["nginx.conf"] = []byte(strings.Replace(string(f["nginx.conf"]), "include sluice/locations.conf;", `default_type text/plain; keepalive_requests 100000; location / { return 200 "$remote_addr"; }`, 1))
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func readText(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestProxyProtocol: the address out of a PROXY line or header, from a trusted
// proxy alone, is the client; what a client says in headers is nothing.
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	binary4 := "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c" + "\xcb\x00\x71\x09" + "\x7f\x00\x00\x01" + "\x12\x34\x00\x50"
	binary6 := "\r\n\r\n\x00\r\nQUIT\n\x21\x21\x00\x24" + "\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x05" + strings.Repeat("\x00", 15) + "\x01" + "\x12\x34\x00\x50"
	lines := map[string]string{
		"PROXY TCP4 203.0.113.9 127.0.0.1 4660 80\r\n":  "203.0.113.9",
		"PROXY TCP4 10.0.0.9 127.0.0.1 4660 80\r\n":     "10.0.0.9",
		"PROXY TCP6 2001:db8::5 ::1 4660 80\r\n":        "2001:db8::5",
		"PROXY TCP6 ::ffff:203.0.113.9 ::1 4660 80\r\n": "::ffff:203.0.113.9",
		"PROXY UNKNOWN\r\n":                             "127.0.0.1",
		binary4:                                         "203.0.113.9",
		binary6:                                         "2001:db8::5",
		"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00":        "127.0.0.1", // LOCAL: a health check of the proxy
	}
	c := compiled(t, "version: 1\nclient_ip: {header: proxy_protocol, direct: deny, trusted_proxies: [127.0.0.1, 10.0.0.0/8]}\nedge: {access: [{name: bad, deny: {cidrs: [203.0.113.0/24]}, status: 451}]}\n")
	s := startCompiled(t, c, tellAddress)
	for line, want := range lines {
		conn := dial(t, s.addr)
		if _, err := io.WriteString(conn, line+"GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 6.6.6.6\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got := readText(t, bufio.NewReader(conn)); got != want {
			t.Errorf("%q is %s; want %s", line, got, want)
		}
		var values []string
		if f := strings.Fields(line); strings.HasPrefix(line, "PROXY TCP") {
			values = f[2:3]
		}
		if addr := c.ClientAddress(netip.MustParseAddr("127.0.0.1"), values); values != nil && addr.String() != want {
			t.Errorf("%q is %s here; want %s", line, addr, want)
		}
	}
	// Without such a line there is no request, nor with one that cannot be read.
	for _, line := range []string{"", "PROXY TCP4 203.0.113.9, 127.0.0.1 4660 80\r\n", "PROXY TCP4\r\n", "PROXY \r\n"} {
		conn := dial(t, s.addr)
		if _, err := io.WriteString(conn, line+"GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && resp.StatusCode < 400 {
			t.Errorf("%q got %v", line, resp.Status)
		}
	}
	// Rules see that address, and a proxy that is trusted is no direct client.
	s = startCompiled(t, c, func(Files, string) {})
	for ip, want := range map[string]int{"203.0.113.9": 451, "198.51.100.1": 200} {
		conn := dial(t, s.addr)
		if _, err := fmt.Fprintf(conn, "PROXY TCP4 %s 127.0.0.1 4660 80\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", ip); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != want {
			t.Errorf("%s got %v, %v; want %d", ip, resp, err, want)
		}
	}
	// An untrusted peer cannot name anybody.
	s = startCompiled(t, compiled(t, "version: 1\nclient_ip: {header: proxy_protocol, trusted_proxies: [10.0.0.0/8]}\n"), tellAddress)
	conn := dial(t, s.addr)
	if _, err := io.WriteString(conn, "PROXY TCP4 203.0.113.9 127.0.0.1 4660 80\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got := readText(t, bufio.NewReader(conn)); got != "127.0.0.1" {
		t.Errorf("an untrusted peer named %s", got)
	}
}

// TestDirectDeny: only trusted proxies come in, also one that is reached over
// IPv6 with an IPv4 address in it.
func TestDirectDeny(t *testing.T) {
	t.Parallel()
	const policy = "version: 1\nclient_ip: {trusted_proxies: [127.0.0.1], direct: deny}\nroutes:\n  - {name: health, match: {exact: /healthz}, exempt: true}\n  - {name: rest, match: {prefix: /}}\n"
	s := start(t, policy)
	if got := s.get("/", "X-Forwarded-For", "1.2.3.4"); got.status != 200 {
		t.Errorf("through a proxy it is %d", got.status)
	}
	if got := s.get("/"); got.status != 200 {
		t.Errorf("a request of the proxy's own is %d", got.status)
	}
	other := start(t, strings.Replace(policy, "127.0.0.1", "10.0.0.0/8, 127.0.0.2", 1))
	got := other.get("/", "X-Forwarded-For", "10.0.0.1")
	if got.status != 403 || field(other.logged(1)[0], "rule") != "direct" {
		t.Errorf("past the proxies it is %+v", got)
	}
	for from, want := range map[string]int{"127.0.0.2": 200, "127.0.0.3": 403} {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := &http.Client{Transport: &http.Transport{DialContext: d.DialContext}}
		resp, err := client.Get("http://" + other.addr + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		client.CloseIdleConnections()
		if resp.StatusCode != want {
			t.Errorf("from %s it is %d; want %d", from, resp.StatusCode, want)
		}
	}
	// A dual-stack listener shows an IPv4 peer as ::ffff:127.0.0.1.
	_, port, err := net.SplitHostPort(gentest.FreePort(t))
	if err != nil {
		t.Fatal(err)
	}
	dual := startWith(t, policy, func(f Files, listen string) {
		f["nginx.conf"] = []byte(strings.Replace(string(f["nginx.conf"]), "listen "+listen, "listen [::]:"+port+" ipv6only=off default_server; listen "+listen, 1))
	})
	dual.addr = "127.0.0.1:" + port
	if got := dual.get("/", "X-Forwarded-For", "1.2.3.4"); got.status != 200 || !strings.HasPrefix(dual.logged(1)[0], "1.2.3.4 ") {
		t.Errorf("over a dual-stack listener it is %d, and logged as %s", got.status, dual.logged(1)[0])
	}
}
