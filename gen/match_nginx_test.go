package gen

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/policies"
)

// matchPolicy has every kind of match, in the ways that collide.
const matchPolicy = `
version: 1
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: slash, match: {exact: /v1/}}
  - {name: www, match: {hosts: [www.example.com, "*.cdn.example.com"], prefix: /assets}}
  - {name: deep, match: {hosts: ["*.img.cdn.example.com"], prefix: /assets/img}}
  - {name: assets, match: {prefix: /assets}}
  - {name: file, match: {regex: '^/v1/files/[0-9a-f]{8}$'}}
  - {name: self, match: {regex: '^/v1/search$'}}
  - {name: php, match: {regex: '(?i)\.PHP$'}}
  - {name: odd, match: {regex: '^/o/[^/]{3}$'}}
  - {name: cafe, match: {regex: '^/caf(é|e)/'}}
  - {name: dots, match: {regex: '^/d/a.b$'}}
  - {name: host_regex, match: {hosts: [www.example.com], regex: '^/v1/www'}}
  - {name: search, match: {prefix: /v1/search}}
  - {name: v1, match: {prefix: /v1}}
  - {name: a, match: {prefix: /a}}
  - {name: space, match: {prefix: "/a b;c"}}
  - {name: rest, match: {prefix: /}}
`

// TestMatchAsNGINX puts thousands of request targets to a real NGINX, with the
// rendered locations, and to the matcher in Go: they choose the same route, or
// both refuse. Sections A and 9 of what goes wrong: encodings, doubled slashes,
// dots, parameters, case, newlines. C008 C048
func TestMatchAsNGINX(t *testing.T) {
	for name, policy := range map[string]string{
		"with a catch-all":    matchPolicy,
		"without a catch-all": strings.Replace(matchPolicy, "  - {name: rest, match: {prefix: /}}\n", "", 1),
	} {
		t.Run(name, func(t *testing.T) { testMatchAsNGINX(t, policy) })
	}
}

func testMatchAsNGINX(t *testing.T, policy string) {
	c := compiled(t, policy)
	s := startWith(t, policy, func(f Files, _ string) {
		for i := range c.Routes {
			f["sluice/routes/"+c.Routes[i].Name+".conf"] = fmt.Appendf(nil, "return 299 %s;\n", c.Routes[i].Name)
		}
	})
	conn := &targets{addr: s.addr}
	defer conn.close()
	matched := map[string]int{}
	hosts := []string{"other.example", "www.example.com", "WWW.example.com:8080", "x.cdn.example.com", "a.img.cdn.example.com", "cdn.example.com"}
	ask := func(host, target string) {
		got, want := conn.route(t, host, target), matchInGo(c, host, target)
		if got != want {
			t.Errorf("%s %q: nginx takes %q, Go %q", host, target, got, want)
		}
		matched[want]++
	}
	for _, target := range pickedTargets() {
		for _, host := range hosts {
			ask(host, target)
		}
	}
	for i, target := range randomTargets() {
		ask(hosts[i%len(hosts)], target)
	}
	for i := range c.Routes {
		if matched[c.Routes[i].Name] == 0 {
			t.Errorf("no target reaches route %s: the test is blind there", c.Routes[i].Name)
		}
	}
	t.Logf("%v", matched)
}

// matchInGo is the route's name, "404" for none, "400" for a refusal.
func matchInGo(c *policies.Compiled, host, target string) string {
	path, ok := policies.NormalizePath(nil, []byte(target))
	if !ok {
		return "400"
	}
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	r := c.Match(host, "", path)
	if r == nil {
		return "404"
	}
	return r.Name
}

// targets sends request targets exactly as they are, on one connection as long
// as NGINX keeps it.
type targets struct {
	addr   string
	conn   net.Conn
	reader *bufio.Reader
}

func (c *targets) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// route asks for a target and returns the route that NGINX took, or the status.
func (c *targets) route(t *testing.T, host, target string) string {
	t.Helper()
	if c.conn == nil {
		conn, err := net.DialTimeout("tcp", c.addr, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		c.conn, c.reader = conn, bufio.NewReader(conn)
	}
	_ = c.conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, host); err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	if resp.Close {
		c.close()
	}
	switch resp.StatusCode {
	case 299:
		return string(body)
	case 403: // no location: a directory without an index
		return "404"
	}
	return fmt.Sprint(resp.StatusCode)
}

// pickedTargets are what people and attackers write.
func pickedTargets() []string {
	return []string{
		"/", "/healthz", "/healthz/", "/healthzz", "/healthz/../v1/x", "/v1", "/v1/", "/v1x", "/v1/search", "/v1/search/", "/v1/searching",
		"/v1/files/00c0ffee", "/v1/files/00c0ffee%0A", "/v1/files/00c0ffee%0a/", "/v1/files/00C0FFEE", "/x.php", "/x.PhP", "/x.php%0A", "/v1/x.php/y",
		"/assets", "/assets/", "/assets/x", "/assetsx", "/assets/img/1", "/assets/img", "/a%20b;c", "/a%20b;c/x", "/a%20b;cx", "/a/b", "/api",
		"/%61", "/%2561", "/a%2fb", "/a%2Fb", "//a//b", "/./a", "/a/./b", "/a/../v1", "/a/..", "/..", "/../a", "/a/../..", "/%2e%2e/a", "/a/%2e%2e/v1",
		"/a%00", "/%zz", "/%", "/%6", "/a?x=/v1", "/a#/v1", "/a;x=1", "/a/..;/v1", "/A", "/V1", "/v1/www", "/v1/wwwx", "/o/abc", "/o/%ff%fe%fd", "/o/%C3%A9x", "/o/%C3%A9",
		"/caf%C3%A9/x", "/cafe/x", "/caf%E9/x", "/d/a%0Ab", "/d/axb", "/d/a%C3%A9b", "/d/a%E9b", "/%2f%2f", "/...", "/.../x", "/a/...", "/..a", "/a..", "/.a", "/a./b",
		"http://www.example.com/v1/x", "http://other.example?x", "/v1/x%3Fy", "/v1/x%23y", "/%3Fa", "/a%25/..", "/a%2525", "/a+b", "/a%2Bb", "/~", "/a%7e", "/\xc3\xa9", "/a\\b", "/a%5C..%5Cb",
	}
}

// randomTargets are made of the same pieces, the same thousands every time: a
// failure is found again.
func randomTargets() []string {
	pieces := []string{
		"/", "/", "/", "//", ".", "..", "/./", "/../", "%2e", "%2E", "%2f", "%2F", "%25", "%3f", "%23", "%0a", "%61", "%41", "%20", "%ff", "%c3%a9",
		"a", "v1", "search", "files", "00c0ffee", "assets", "img", "healthz", ".php", ".PHP", "o", "abc", "d", "axb", "caf", "e", "www", "a b;c", ";x=1", "?q", "#f", "+", "~", "%",
	}
	var out []string
	random := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		var b strings.Builder
		b.WriteByte('/')
		for range 1 + random.IntN(7) {
			b.WriteString(strings.ReplaceAll(pieces[random.IntN(len(pieces))], " ", "%20"))
		}
		out = append(out, b.String())
	}
	return out
}
