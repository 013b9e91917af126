package authz

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// send gives the handler a whole request, head and body, as a peer's bytes.
func (s *site) send(head, body string) answer {
	s.t.Helper()
	var ctx fasthttp.RequestCtx
	text := head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body)) + body
	if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(text))); err != nil {
		s.t.Fatalf("%q: %v", head, err)
	}
	s.handler.serve(&ctx)
	a := answer{status: ctx.Response.StatusCode(), header: map[string]string{}, raw: ctx.Response.String()}
	for name, value := range ctx.Response.Header.All() {
		a.header[string(name)] = string(value)
	}
	return a
}

// A page in a browser on a peer's machine can post there, without asking first when
// it says text/plain, and under its own name when that was made to point here. It
// takes, frees and settles nothing; a program beside it does.
func TestPagesAreNoApplications(t *testing.T) {
	s := newSite(t, priced)
	s.ask("chat", request("r1")).want(t, "chat", 204)
	said := map[string]string{
		"take": `{"route":"chat","ip":"192.0.2.1","request":"r2"}`, "cost": `{"request":"r1","cost":400}`, "release": `{"request":"r1","route":"chat"}`,
	}
	for _, path := range []string{"take", "cost", "release"} {
		for _, page := range []string{
			"Host: 127.0.0.1:9180\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\n",
			"Host: evil.example:9180\r\nOrigin: http://evil.example:9180\r\nContent-Type: application/json\r\n",
			"Host: 127.0.0.1:9180\r\nOrigin: null\r\n",
			"Host: 127.0.0.1:9180\r\norigin:\r\n",
			"Host: 127.0.0.1:9180\r\nSec-Fetch-Site: same-origin\r\n",
		} {
			a := s.send("POST /v1/"+path+" HTTP/1.1\r\n"+page, said[path])
			a.want(t, path+" by a page", 403, "Access-Control-Allow-Origin: ", "Content-Type: application/problem+json")
		}
		preflight := "OPTIONS /v1/" + path + " HTTP/1.1\r\nHost: a\r\nOrigin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n"
		s.send(preflight, "").want(t, path+" asked for first", 405, "Access-Control-Allow-Origin: ")
		s.send("GET /v1/"+path+"?request=r1&cost=400&route=chat HTTP/1.1\r\nHost: a\r\n", "").want(t, path+" as an image", 405)
	}
	if n := s.used("look", "units"); n != 10 {
		t.Errorf("pages have used %d units, want the estimate of 10", n)
	}
	s.send("POST /v1/cost HTTP/1.1\r\nHost: a\r\n", said["cost"]).want(t, "a program", 200)
	if n := s.used("look", "units"); n != 401 {
		t.Errorf("%d units are used, want 401", n)
	}
}

// Under /v1/ nothing is a question of NGINX's, and no header of his means anything.
func TestApplicationsSpeakByBodyAlone(t *testing.T) {
	s := newSite(t, workers)
	forged := "X-Sluice-Exempt: 1\r\nX-Sluice-Ip: 198.51.100.7\r\nX-Sluice-Login: 1\r\nX-Sluice-Login-Tenant: acme\r\nX-Sluice-Method: GET\r\n" +
		"X-Sluice-Uri: /_sluice/open/all\r\nX-Api-Key: sk_a\r\nX-Sluice-Request: other\r\n"
	for i, want := range []int{200, 429} { // anonymous has one
		a := s.send("POST /v1/take HTTP/1.1\r\nHost: a\r\n"+forged, fmt.Sprintf(`{"route":"all","ip":"192.0.2.9","request":"r%d"}`, i))
		if a.status != want || strings.Contains(a.raw, `"tenant"`) || !strings.Contains(a.raw, `"plan":"anonymous"`) {
			t.Errorf("%d: %s\nwant %d, anonymous", i, a.raw, want)
		}
	}
	for _, path := range []string{"/v1/../_sluice/open/all", "/v1/%2e%2e/_sluice/open/all", "/v1//../_sluice/open/all", "//_sluice/open/all", "/_sluice/../v1/take", "/v1/take/", "/V1/take"} {
		a := s.send("POST "+path+" HTTP/1.1\r\nHost: a\r\n"+forged, `{"route":"all","ip":"192.0.2.10"}`)
		if a.status < 400 {
			t.Errorf("%s: %s", path, a.raw)
		}
		a = s.send("GET "+path+" HTTP/1.1\r\nHost: a\r\n"+forged, "")
		if a.status < 400 {
			t.Errorf("GET %s: %s", path, a.raw)
		}
	}
}

// An id that somebody says again is answered again, and is no way around: not for
// another tenant, address, route or cost, not for good, and not once it has ended.
func TestReplayedIDs(t *testing.T) {
	s := newSite(t, `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: anonymous}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1/h, burst: 2}}}
  pro: {limits: {speed: {per: key, rate: 1/h, burst: 3}, jobs: {per: tenant, concurrency: 1, lease: 1h}, sold: {per: tenant, quota: 10/day}}}
tenants: [{id: acme, plan: pro, keys: [{id: a, sha256: hash(sk_a)}]}, {id: globex, plan: pro, keys: [{id: g, sha256: hash(sk_g)}]}]
routes: [{name: export, match: {prefix: /export}}, {name: all, match: {prefix: /}}]
`)
	s.ask("all", key("sk_a"), request("id")).want(t, "first", 204, "X-Sluice-Tenant: acme")
	s.ask("all", key("sk_g"), request("id")).want(t, "another tenant's own answer", 204, "X-Sluice-Tenant: globex")
	s.ask("all", key("sk_g"), request("id2")).want(t, "who holds his one place", 403, "X-Sluice-Limit: jobs")
	s.ask("export", key("sk_a"), request("id")).want(t, "another route is another charge", 403, "X-Sluice-Limit: jobs")
	s.ask("all", key("sk_nobody"), request("id")).want(t, "a bad key", 401, "X-Sluice-Tenant: ")
	for i, want := range []int{204, 204, 403} {
		s.ask("all", request(fmt.Sprint("n", i)), ip("192.0.2.50")).want(t, "an address", want)
	}
	s.ask("all", request("n0"), ip("192.0.2.51")).want(t, "another address", 204, `RateLimit: "speed";r=1;t=3600`)

	// The end of a request frees one place, once, whoever says it again.
	s.clock.Advance(2 * 3600 * second)
	s.ask("all", key("sk_a"), request("e1")).want(t, "e1", 204)
	end := Completion{ID: "e1", Path: "/_sluice/open/all", Status: 200}
	for i, want := range []bool{true, false} {
		if known, err := s.engine.Complete(end); known != want || err != nil {
			t.Errorf("end %d: known %t, %v; want %t", i, known, err, want)
		}
	}
	s.ask("all", key("sk_a"), request("e2")).want(t, "e2 takes the place", 204)
	if known, _ := s.engine.Complete(end); known {
		t.Error("e1 ended a third time")
	}
	s.ask("all", key("sk_a"), request("e3")).want(t, "e2 holds it still", 403, "X-Sluice-Limit: jobs")

	// After its minute an id is a new request. What was sold for it stays sold.
	s.clock.Advance(2 * 60 * second)
	s.ask("all", request("x"), ip("192.0.2.60")).want(t, "x", 204)
	s.ask("all", request("old"), ip("192.0.2.60")).want(t, "old", 204)
	s.ask("all", request("old"), ip("192.0.2.60")).want(t, "old again", 204)
	s.clock.Advance(61 * second)
	s.ask("all", request("old"), ip("192.0.2.60")).want(t, "old, a minute later", 403, "X-Sluice-Limit: speed")
}

// Datagrams that a client could cause or an application could write into are read
// for what they are.
func TestForgedDatagrams(t *testing.T) {
	s := newSite(t, priced)
	l, err := ListenDatagrams(s.engine, "127.0.0.1:0", []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("fe80::/10")}, s.engine.log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { l.Serve(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	// NGINX writes so what an application said in X-Cost: 9","x":"
	tell := func(id, path, status, cost string) []byte {
		return fmt.Appendf(nil, `<190>Dec  1 12:00:00 sluice: {"id":"%s","path":"%s","status":"%s","costs":{"X-Cost":"%s"}}`, id, path, status, cost)
	}
	s.ask("files", request("r1")).want(t, "files", 204)
	peer, far := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.0.2.66")
	for _, from := range []netip.Addr{far, netip.MustParseAddr("::ffff:192.0.2.66"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("::1"), {}} {
		l.hear(tell("r1", "/_sluice/open/files", "200", "0"), from)
	}
	if c := l.Counts(); c.Strangers != 5 {
		t.Errorf("%+v, want 5 strangers", c)
	}
	for _, forged := range [][]byte{
		tell("r2", "/_sluice/open/files", "200", "0"),              // another request
		tell("r1", "/_sluice/open/look", "200", "0"),               // another route
		tell("r1", "/_sluice/open/files/x", "200", "0"),            // no path of ours
		tell("r1", "/v1/../_sluice/open/files", "200", "0"),        // nor that
		tell("r1", "/_sluice/open/files", "200\\n", "0"),           // no status
		tell("", "/_sluice/open/files", "200", "0"),                // no request
		append(tell("r1", "/_sluice/open/files", "200", "0"), 'x'), // something behind
		bytes.Repeat([]byte("<190>{"), maxDatagram/6),              // depth
		[]byte(`<190>{"id":"r1","path":"/_sluice/open/files","st`), // cut off
		[]byte(`<190>{"id":["r1"],"path":"/_sluice/open/files"}`),  // other kinds
		[]byte("<190>\x00{\x00}"),                                  // no JSON
		[]byte(`<190>{"id":"r1","path":"/_sluice/open/files","status":"200","costs":"0"}`),
	} {
		l.hear(forged, peer)
	}
	// The queue is worked off in order enough: the last is heard when the honest one is.
	l.hear(tell("r1", "/_sluice/open/files", "200", `9\",\"x\":\"`), netip.MustParseAddr("::ffff:127.0.0.1"))
	await(t, func() bool { c := l.Counts(); return c.Settled == 1 && c.Unknown == 4 && c.Bad == 8 })
	if n := s.used("look", "units"); n != 5 {
		t.Errorf("%d units are used, want the estimate of 5: what the application wrote is no number", n)
	}
}

// FuzzServe sends the listener whole requests of any bytes. It answers each with a
// status that its kind of question knows, panics never, lets nobody past a limit
// of nothing, and takes nobody for a tenant whose key or name is not there.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		"GET /_sluice/open/all HTTP/1.1\r\nX-Sluice-Ip: 192.0.2.1\r\nX-Api-Key: sk_x\r\n\r\n",
		"GET /_sluice/closed/gone?x HTTP/1.1\r\nHost: a\r\nX-Sluice-Uri: /export/%2e./\x80\r\nX-Sluice-Login: 1\r\n\r\n",
		"POST /v1/take HTTP/1.1\r\nContent-Length: 34\r\n\r\n{\"route\":\"all\",\"ip\":\"192.0.2.1\"}   ",
		"POST /v1/cost HTTP/1.1\r\nContent-Length: 25\r\n\r\n{\"request\":\"a\",\"cost\":1e9}",
		"POST /v1/release HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"req\r\n0\r\n\r\n",
		"GET /authz HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1, 10.0.0.1\r\nX-Forwarded-Uri: /export\r\nX-Forwarded-Method: GET\r\nX-Sluice-Exempt: 1\r\n\r\n",
		"PUT /v1/take HTTP/1.0\r\nOrigin: null\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	policy := "client_ip: {trusted_proxies: [10.0.0.1]}\n" + strings.ReplaceAll(workers, "missing: {plan: anonymous}", "missing: {plan: anonymous}, invalid: {plan: anonymous}")
	c := compile(f, strings.ReplaceAll(policy, "id: acme", "id: tenant-0123456789"))
	for i := range c.Plans {
		for j := range c.Plans[i].Limits {
			c.Plans[i].Limits[j].Burst, c.Plans[i].Limits[j].Concurrency = 0, 0
		}
	}
	s := newSite(f, "")
	if err := s.engine.Swap(c); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.Contains(data, []byte("0123456789")) || bytes.Contains(data, []byte("sk_a")) {
			return // who knows it may say it
		}
		var ctx fasthttp.RequestCtx
		ctx.Init(&fasthttp.Request{}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 1}, nil)
		r := bufio.NewReaderSize(bytes.NewReader(data), maxHead)
		if err := ctx.Request.ReadLimitBody(r, maxAppBody); err != nil {
			return
		}
		s.handler.serve(&ctx)
		if n := s.engine.Counters().Panics; n > 0 {
			t.Fatal("it panicked")
		}
		status, raw := ctx.Response.StatusCode(), ctx.Response.String()
		path := string(ctx.Request.Header.RequestURI())
		preflight := isForward([]byte(path)) && ctx.Response.Header.Peek("X-Sluice-Decision") == nil && len(ctx.Request.Header.Peek("Origin")) > 0
		question := strings.HasPrefix(path, "/_sluice/") && (ctx.IsGet() || ctx.IsHead())
		switch {
		case question && status != 204 && status != 401 && status != 403 && status != 404:
			t.Errorf("a question is answered %d", status)
		case status >= 500 || status < 200 || status >= 300 && status < 400:
			t.Errorf("status %d", status)
		case status == 204 && question && ctx.Response.Header.Peek("X-Sluice-Plan") != nil && string(ctx.Request.Header.Peek("X-Sluice-Exempt")) != "1":
			t.Errorf("let past a limit of nothing:\n%s", raw)
		case status < 300 && !question && !preflight:
			t.Errorf("allowed by accident:\n%s", raw)
		case strings.Contains(raw, "0123456789"):
			t.Errorf("taken for a tenant:\n%s", raw)
		case len(raw) > 16<<10:
			t.Errorf("an answer of %d bytes", len(raw))
		}
		if status == http.StatusNoContent && len(ctx.Response.Body()) > 0 {
			t.Error("204 with a body")
		}
	})
}
