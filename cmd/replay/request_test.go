package replay

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sluice/cmd/accesslog"
	"sluice/policies"
	"sluice/policies/edge"
)

// looked is a policy that looks at something of every kind.
const looked = `version: 1
client_ip: {trusted_proxies: [10.0.0.0/8], header: X-Forwarded-For}
identity:
  sources: [{api_key: {header: X-API-Key}}, {api_key: {query: key}}, {api_key: {cookie: token}}]
  missing: {plan: free}
edge:
  access: [{name: bots, deny: {user_agents: ['bot']}, when: {headers: {Referer: present}}}]
  limits: {by_org: {per: {header: X-Org}, rate: 1/s, burst: 1}}
plans: {free: {limits: {speed: {per: ip, rate: 1/s, burst: 1}}}}
`

// escapeDefault and escapeJSON write a value as NGINX does.
func escapeDefault(s string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c == '"' || c == '\\' || c > '~' {
			fmt.Fprintf(&out, `\x%02X`, c)
			continue
		}
		out.WriteByte(c)
	}
	if s == "" {
		return "-"
	}
	return out.String()
}

func escapeJSON(s string) string {
	short := map[byte]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}
	var out strings.Builder
	for _, c := range []byte(s) {
		switch {
		case short[c] != "":
			out.WriteString(short[c])
		case c < ' ':
			fmt.Fprintf(&out, `\u%04X`, c)
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// TestRequests: the request that NGINX had is the request that a trial gets, as far
// as the policy looks at it, whatever bytes are in it and however NGINX writes them.
func TestRequests(t *testing.T) {
	names := []string{"X-API-Key", "User-Agent", "Referer", "X-Org", "Cookie", "X-Forwarded-For"}
	variables := []string{"http_x_api_key", "http_user_agent", "http_referer", "http_x_org", "http_cookie", "http_x_forwarded_for"}
	c := compiled(t, looked)
	rapid.Check(t, func(t *rapid.T) {
		// NGINX lets no control characters into headers but tabs, and none into the line.
		value := rapid.StringOfN(rapid.SampledFrom([]rune("ab\"\\'{}[]:,;=% \tпü\u2028$x22")), 1, 12, -1).Filter(func(s string) bool { return s != "-" })
		want := edge.Request{
			Peer:   netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.1", "10.0.0.1", "2001:db8::1"}).Draw(t, "peer")),
			Method: rapid.SampledFrom([]string{"GET", "POST", "PROPFIND", "M-SEARCH"}).Draw(t, "method"),
			URI:    "/" + strings.Trim(rapid.StringOfN(rapid.SampledFrom([]rune("ab/\"\\'?&=%2fпü#")), 0, 12, -1).Draw(t, "path"), " "),
			Host:   rapid.SampledFrom([]string{"example.com", "a.example:8080", ""}).Draw(t, "host"),
		}
		values := make([]string, len(names))
		for i, name := range names {
			if rapid.Bool().Draw(t, "has "+name) {
				values[i] = value.Draw(t, name)
				want.Header = append(want.Header, edge.Field{Name: name, Value: values[i]})
			}
		}
		request := want.Method + " " + want.URI + " HTTP/1.1"
		for _, escape := range []struct {
			format string
			line   func(string) string
		}{{"", escapeDefault}, {"escape=json ", escapeJSON}} {
			logFormat := escape.format + `$remote_addr|$msec|"$request"|"$host"|"$` + strings.Join(variables, `"|"$`) + `"`
			line := fmt.Sprintf(`%s|1796094245.000|"%s"|"%s"`, want.Peer, escape.line(request), escape.line(want.Host))
			object := fmt.Sprintf(`{"remote_addr":"%s","msec":1796094245.000,"request":"%s","host":"%s"`, want.Peer, escape.line(request), escape.line(want.Host))
			for i, v := range values {
				line += `|"` + escape.line(v) + `"`
				object += `,"` + variables[i] + `":"` + escape.line(v) + `"`
			}
			for logFormat, text := range map[string]string{logFormat: line, "json": object + "}"} {
				if diff := cmp.Diff(want, rebuilt(t, c, logFormat, text), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
					t.Fatalf("%s\n%s\n-want +got:\n%s", logFormat, text, diff)
				}
			}
		}
	})
}

// rebuilt is the request that a replay makes of a line.
func rebuilt(t *rapid.T, c *policies.Compiled, logFormat, line string) edge.Request {
	f, err := accesslog.ParseFormat(logFormat)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBuilder(&Options{Policy: c})
	if err != nil {
		t.Fatal(err)
	}
	log := accesslog.Open([]accesslog.Source{{Name: "x", Reader: strings.NewReader(line)}}, accesslog.Options{Format: f, Vars: b.vars, Workers: 1})
	defer log.Close()
	e := log.Next()
	if e == nil {
		t.Fatalf("%s\n%s\nis not read: %+v", logFormat, line, log.Counts())
	}
	it := &item{}
	b.build(it, e)
	r := it.now.Request
	r.Method, r.URI, r.Host = strings.Clone(r.Method), strings.Clone(r.URI), strings.Clone(r.Host)
	// Headers in the order of the test, and without memory of the line.
	var header []edge.Field
	for _, name := range []string{"X-API-Key", "User-Agent", "Referer", "X-Org", "Cookie", "X-Forwarded-For"} {
		for _, f := range r.Header {
			if f.Name == name {
				header = append(header, edge.Field{Name: name, Value: strings.Clone(f.Value)})
			}
		}
	}
	r.Header = header
	return r
}
