package gen

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/geo"
	"sluice/policies"
	"sluice/policies/edge"
)

// modelPolicy has every form that access rules and edge limits have, with rates
// so slow that in the time of the test no second matters. WORDS in capitals are
// filled in.
const modelPolicy = `
version: 1
mode: MODE
client_ip: {trusted_proxies: [127.0.0.1, 10.0.0.0/8], ipv6_prefix: BITS, direct: DIRECT}
identity:
  sources:
    - api_key: {header: X-API-Key}
    - api_key: {header: Authorization, scheme: Bearer, prefix: sk_}
    - api_key: {query: api_key}
    - api_key: {cookie: ck}
  missing: {plan: p}
plans: {p: {limits: {speed: {per: [{header: X-Org}, {query: q}, {cookie: c}, server], rate: 1/s, burst: 1}, again: {per: ip, retries: 60/m}}}}
edge:
  nodes: NODES
  access:
    - {name: office, exempt: {cidrs: [198.18.7.0/24, "2001:db8:7::/48"]}}
    - {name: watched, deny: {user_agents: ['(?i)bot']}, mode: shadow}
    - {name: bad, deny: {cidrs: [198.51.100.0/24, "2001:db8:bad::/48"], user_agents: ['(?i)zgrab', '^$']}}
    - {name: gone, deny: all, status: 451, routes: [only], when: {methods: [DELETE, PUT], cookies: {session: absent}, headers: {Referer: ['^https://', 'x$']}}}
    - {name: friends, allow: {cidrs: [203.0.113.0/26, private]}, routes: [only, keyed]}
    - {name: closed, deny: all, status: 410, routes: [only], when: {query: {open: absent}}}
  limits:
    a_ip: {per: ip, rate: 1/m, burst: 12, routes: [keyed, only, several, posted]}
    key: {per: {header: X-API-Key}, rate: 1/m, burst: 3, routes: [keyed], when: {headers: {X-API-Key: present}}}
    org: {per: [{header: X-Org}, {cookie: c}], rate: 1/m, burst: 4, routes: [several, posted]}
    part: {per: [{query: q, capture: '^a(.*)b'}, server], rate: 1/m, burst: 5, routes: [several, posted]}
    some: {per: [ip, route], only: {cidrs: [203.0.113.0/24, "2001:db8::/32"]}, except: {user_agents: ['our']}, rate: 1/m, burst: 2, routes: [only, keyed]}
    all: {per: global, rate: 1/m, burst: 150, routes: [shared]}
    shy: {per: ip, rate: 1/m, burst: 1, routes: [shadowed], mode: shadow}
    conns: {per: ip, connections: 1, routes: [keyed]}
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: keyed, match: {prefix: /keyed}, on_store_down: closed}
  - {name: only, match: {prefix: /only}, service: false}
  - {name: several, match: {prefix: /several, methods: [GET]}}
  - {name: posted, match: {prefix: /several, methods: [POST]}}
  - {name: shared, match: {hosts: [shared.example, "*.shared.example"], regex: '^/s/[a-z]+$'}}
  - {name: shadowed, match: {prefix: /shadowed}}
  - {name: rest, match: {prefix: /}}
`

// anyOf draws one of several.
func anyOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// modelRequest draws a request.
func modelRequest(r *rand.Rand) *edge.Request {
	req := &edge.Request{
		Peer:   netip.MustParseAddr("127.0.0.1"),
		Method: anyOf(r, "GET", "GET", "GET", "POST", "DELETE", "OPTIONS"),
		Host:   anyOf(r, "a.example", "shared.example", "X.Shared.Example", "shared.example."),
		URI: anyOf(r, "/keyed", "/keyed/a", "/only", "/only/../only/x", "/several/", "/several", "/s/abc", "/s/a%62c", "/shadowed", "/healthz", "/keyedx", "/", "/x/..//keyed", "/..") +
			anyOf(r, "", "", "?q=axb", "?q=ayb&open=1", "?open=1", "?x=1&q=zz&q=ab", "?api_key=k1&open=", "?api_key=k%20", "?qq=1&open=1&c=2"),
	}
	put := func(name string, values ...string) {
		if v := anyOf(r, values...); v != "" {
			req.Header = append(req.Header, edge.Field{Name: name, Value: v})
		}
	}
	put("X-Forwarded-For", "", "203.0.113.7", "203.0.113.70", "198.51.100.9", "198.18.7.1", "192.168.1.1", "2001:db8:bad::1", "2001:db8:7:1::2",
		fmt.Sprintf("203.0.113.%d", r.IntN(20)), fmt.Sprintf("203.0.113.%d", 64+r.IntN(20)), fmt.Sprintf("192.0.2.%d", r.IntN(30)), fmt.Sprintf("2001:db8:1:%x::%x", r.IntN(40), r.IntN(3)),
		"64:ff9b::198.51.100.1", "::ffff:203.0.113.7", "192.0.2.1, 10.1.1.1", "nonsense", "192.0.2.1:80")
	put("User-Agent", "curl", "curl", "Bot/1", "ZGrab", "our-monitor", " ")
	put("X-API-Key", "", "", "k1", "k2", fmt.Sprintf("k%d", r.IntN(50)), "two words", strings.Repeat("k", 201), strings.Repeat("k", 513))
	put("X-API-Key", "", "", "", "", "k9")
	put("Authorization", "", "", "Bearer sk_1", "bearer sk_1", "Bearer", "Bearerx", "Basic eDp5", "Bearer a b")
	put("X-Org", "", "a", "b", fmt.Sprintf("o%d", r.IntN(40)), strings.Repeat("o", 130), strings.Repeat("p", 200))
	put("Cookie", "", "", "c=1", "c=2; session=x", "xc=3; c=4;c=5", " ck=abc", "session=", "c="+strings.Repeat("c", 150))
	put("Cookie", "", "", "c=7; ck=k")
	put("Referer", "", "https://x", "http://y", "maxx")
	put("Retry-Attempt", "", "", "0", "2", "002", "x")
	put("X-Retry-Attempt", "", "", "1|0")
	put("Idempotency-Key", "", "", "abc", "a\tb")
	put("Origin", "", "https://o")
	put("Access-Control-Request-Method", "", "GET")
	return req
}

// TestModelAsNGINX puts thousands of requests to a real NGINX and to the model:
// the same status, the same headers, and the service is told the same.
func TestModelAsNGINX(t *testing.T) {
	t.Parallel()
	for _, f := range []struct{ name, mode, bits, direct, nodes string }{
		{"plain", "enforce", "64", "allow", "1"},
		{"shared by nodes, bits within a byte", "enforce", "60", "allow", "2"},
		{"only proxies may connect", "enforce", "128", "deny", "3"},
		{"in shadow", "shadow", "64", "deny", "1"},
		{"disabled", "disabled", "64", "allow", "1"},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			policy := strings.NewReplacer("MODE", f.mode, "BITS", f.bits, "DIRECT", f.direct, "NODES", f.nodes).Replace(modelPolicy)
			if f.mode == "shadow" {
				policy = strings.ReplaceAll(policy, ", mode: shadow}\nroutes", "}\nroutes")
			}
			testModel(t, policy, 1500)
		})
	}
}

func testModel(t *testing.T, policy string, requests int) {
	c := compiled(t, policy)
	s := startWith(t, policy, func(f Files, _ string) {
		f["nginx.conf"] = []byte(strings.Replace(string(f["nginx.conf"]), "server_tokens off;", "server_tokens off; large_client_header_buffers 8 16k;", 1))
	})
	m := edge.New(c, geo.Tables{})
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	client := &http.Client{Timeout: 10 * time.Second}
	defer client.CloseIdleConnections()
	now, wrong := time.Now(), 0
	verdicts := map[string]int{}
	for i := range requests {
		req := modelRequest(r)
		want := modelAnswer(m, c, req, now)
		got := s.put(client, req)
		verdicts[strings.Fields(want)[0]]++
		if got != want {
			t.Errorf("seed %d, request %d: %s %s\nheaders %q\ncame  %s\nmodel %s", seed, i, req.Method, req.URI, req.Header, got, want)
			if wrong++; wrong == 5 {
				t.FailNow()
			}
		}
	}
	if f := c.Mode; f == policies.ModeEnforce && (verdicts["200"] < 100 || verdicts["429"] < 50 || verdicts["403"] < 20 || verdicts["451"] == 0 || verdicts["410"] == 0) {
		t.Errorf("the requests were not of all kinds: %v", verdicts)
	}
	s.noWarnings()
}

// modelAnswer is what the model says of a request, in one line.
func modelAnswer(m *edge.Model, c *policies.Compiled, req *edge.Request, now time.Time) string {
	v := &edge.Visit{Request: req}
	m.Enter(v, now)
	status := 200
	if v.Verdict == edge.Passed || v.Shadow {
		m.Connect(v)
	}
	switch {
	case v.Verdict == edge.Bad:
		status = 400
	case v.Verdict == edge.Access:
		status = v.Refused
	case (v.Verdict == edge.EdgeRate || v.Verdict == edge.EdgeConn) && !v.Shadow:
		status = 429
	}
	header := http.Header{}
	for _, f := range m.Header(v) {
		header.Set(f.Name, f.Value)
	}
	question := "not asked"
	if mode, asked := m.Asks(v); asked && status == 200 {
		var told []string
		for _, f := range m.Tell(nil, v) {
			told = append(told, http.CanonicalHeaderKey(f.Name)+"="+f.Value)
		}
		told = append(told, "X-Sluice-Method="+req.Method, "X-Sluice-Uri="+req.URI, "X-Sluice-Host="+v.Host, "X-Sluice-Ip="+v.Client.String(), "X-Sluice-Policy="+c.Hash)
		slices.Sort(told)
		question = policies.AuthPath(mode, v.Location.Name) + " " + strings.Join(told, " ")
	}
	m.Leave(v)
	return modelLine(status, header, question)
}

func modelLine(status int, header http.Header, question string) string {
	return fmt.Sprintf("%d retry=%s limit=%s reason=%s %s", status, header.Get("Retry-After"), header.Get(policies.HeaderLimit), header.Get(policies.HeaderReason), question)
}

// put puts a request to NGINX, and says what came and what the service was told.
func (s *stack) put(client *http.Client, r *edge.Request) string {
	req, err := http.NewRequest(r.Method, "http://"+s.addr+"/", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	req.URL.Opaque = r.URI
	req.Host = r.Host
	req.Header.Set("User-Agent", "")
	for _, f := range r.Header {
		if f.Name == "User-Agent" {
			req.Header.Set(f.Name, f.Value)
		} else {
			req.Header.Add(f.Name, f.Value)
		}
	}
	s.authz.Asked()
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = resp.Body.Close()
	question := "not asked"
	if paths, headers := s.authz.Asked(); len(paths) > 0 {
		var told []string
		for name, values := range headers[0] {
			switch name {
			case "Method", "Body-Length", "X-Sluice-Request", "User-Agent", "Accept-Encoding":
			default:
				if values[0] != "" {
					told = append(told, name+"="+values[0])
				}
			}
		}
		slices.Sort(told)
		question = paths[0] + " " + strings.Join(told, " ")
	}
	return modelLine(resp.StatusCode, resp.Header, question)
}

// TestModelTimes: bursts and pauses, each far from where the next request would
// just fit, come to the same with NGINX's own clock.
func TestModelTimes(t *testing.T) {
	t.Parallel()
	const policy = `version: 1
client_ip: {trusted_proxies: [127.0.0.1]}
edge:
  limits:
    one: {per: ip, rate: 2/s, burst: 3, routes: [one]}
    two: {per: ip, rate: 40/m, burst: 2, routes: [both]}
    also: {per: [ip, server], rate: 1/s, burst: 4, routes: [both]}
routes: [{name: one, match: {prefix: /one}}, {name: both, match: {prefix: /both}}]
`
	s, m := start(t, policy), edge.New(compiled(t, policy), geo.Tables{})
	begin := time.Now()
	for i, at := range []time.Duration{0, 750, 1250, 2250, 4250} {
		time.Sleep(time.Until(begin.Add(at * time.Millisecond)))
		for _, path := range []string{"/one", "/both"} {
			for n := range 4 {
				v := &edge.Visit{Request: &edge.Request{Peer: netip.MustParseAddr("127.0.0.1"), URI: path, Host: "x"}}
				m.Enter(v, begin.Add(at*time.Millisecond))
				want := map[bool]int{true: 200, false: 429}[v.Verdict == edge.Passed]
				if late := time.Since(begin) - at*time.Millisecond; late > 150*time.Millisecond {
					t.Skipf("this machine is %v late: it would blur what is compared", late)
				}
				if got := s.get(path).status; got != want {
					t.Errorf("pause %d, %s number %d: %d; the model says %d", i, path, n+1, got, want)
				}
			}
		}
	}
}
