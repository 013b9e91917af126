package authz

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// post sends JSON to the service as an application does.
func (s *site) post(path, body string) (status int, header map[string]string, answer map[string]any) {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod(http.MethodPost)
	ctx.Request.SetRequestURI(path)
	ctx.Request.SetBodyString(body)
	s.handler.serve(&ctx)
	if b := ctx.Response.Body(); len(b) > 0 {
		if err := json.Unmarshal(b, &answer); err != nil {
			panic(fmt.Sprintf("%s: %v in %q", path, err, b))
		}
	}
	header = map[string]string{}
	for name, value := range ctx.Response.Header.All() {
		header[string(name)] = string(value)
	}
	return ctx.Response.StatusCode(), header, answer
}

// used is how many units a limit has counted for a question, without charging.
func (s *site) used(route, name string, headers ...string) int64 {
	s.t.Helper()
	s.engine.Forget()
	d := s.decide(route, headers...)
	for i, r := range d.rules {
		if r.limit.Name == name {
			used := d.ops[i].Limit() - d.states[i].Remaining
			if d.states[i].Used > 0 {
				used = d.states[i].Used
			}
			if d.Verdict != Deny {
				used -= d.ops[i].Cost
			}
			return used
		}
	}
	s.t.Fatalf("no limit %s was asked", name)
	return 0
}

const priced = `
limits:
  units: {per: ip, quota: 1000/day}
  calls: {per: ip, quota: 1000/day, count: requests}
  speed: {per: ip, rate: 1/d, burst: 100}
routes:
  - {name: files, match: {prefix: /files}, cost: 5, cost_from: {response_header: X-Cost, max: 50}}
  - {name: chat, match: {prefix: /chat}, cost: 10, cost_from: {report: 10m, max: 400}}
  - {name: look, match: {prefix: /}}
`

// What the answer's header tells is charged instead of the estimate: once, at most
// max, and only where units are counted.
func TestCostFromHeader(t *testing.T) {
	for name, tc := range map[string]struct {
		costs map[string]string
		want  int64
	}{
		"more":           {map[string]string{"X-Cost": "20"}, 20},
		"less":           {map[string]string{"X-Cost": "2"}, 2},
		"nothing":        {map[string]string{"X-Cost": "0"}, 0},
		"too much":       {map[string]string{"X-Cost": "51"}, 50},
		"far too much":   {map[string]string{"X-Cost": "99999999999999999999999"}, 50},
		"no header":      {nil, 5},
		"empty":          {map[string]string{"X-Cost": ""}, 5},
		"negative":       {map[string]string{"X-Cost": "-7"}, 5},
		"a fraction":     {map[string]string{"X-Cost": "7.5"}, 5},
		"two":            {map[string]string{"X-Cost": "7, 8"}, 5},
		"another header": {map[string]string{"X-Price": "20"}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, priced)
			s.ask("files", request("r1")).want(t, "files", 204)
			end := Completion{ID: "r1", Path: "/_sluice/open/files", Status: 200, Costs: tc.costs}
			for i, want := range []bool{true, false} { // it may come twice
				if known, err := s.engine.Complete(end); known != want || err != nil {
					t.Errorf("end %d: known %t, %v", i, known, err)
				}
			}
			if n := s.used("look", "units"); n != tc.want {
				t.Errorf("%d units are used, want %d", n, tc.want)
			}
			if n := s.used("look", "calls"); n != 2 { // the request and the look before
				t.Errorf("%d calls are counted, want 2", n)
			}
		})
	}
}

// A datagram that overtakes the answer, since the client went away, is not lost. One
// of another instance's request is nobody's.
func TestCompletionThatCameTooSoon(t *testing.T) {
	s := newSite(t, "limits: {few: {per: ip, concurrency: 1, lease: 1h}}\nroutes: [{name: all, match: {prefix: /}}]\n")
	for _, status := range []int{499, 0} {
		id := fmt.Sprint("gone", status)
		if known, _ := s.engine.Complete(Completion{ID: id, Path: "/_sluice/open/all", Status: status}); known {
			t.Error("it was known before it was decided")
		}
		s.ask("all", request(id)).want(t, "decided all the same", 204)
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if s.ask("all", request(fmt.Sprint("next", status, time.Now().UnixNano()))).status == 204 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the lease of a client who is gone is held")
			}
		}
		s.clock.Advance(2 * time.Hour)
	}
	_, _ = s.engine.Complete(Completion{ID: "other", Path: "/_sluice/open/all", Status: 200})
	s.ask("all", request("other")).want(t, "first", 204)
	s.ask("all", request("second")).want(t, "an end with a status is of another instance", 403)
}

// The application reports what a stream has cost: once, in time, at most max; the
// estimate stays when it does not.
func TestCostByReport(t *testing.T) {
	s := newSite(t, priced)
	s.ask("chat", request("r1")).want(t, "chat", 204)
	if known, err := s.engine.Complete(Completion{ID: "r1", Path: "/_sluice/open/chat", Status: 200}); !known || err != nil {
		t.Errorf("its end: known %t, %v", known, err)
	}
	if n := s.used("look", "units"); n != 10 {
		t.Errorf("before the report %d units are used, want 10", n)
	}
	for _, tc := range []struct {
		what, body string
		status     int
		cost       any
	}{
		{"no such request", `{"request":"r9","cost":3}`, 404, nil},
		{"another route", `{"request":"r1","route":"files","cost":3}`, 404, nil},
		{"negative", `{"request":"r1","cost":-3}`, 400, nil},
		{"no cost", `{"request":"r1"}`, 400, nil},
		{"a fraction", `{"request":"r1","cost":3.5}`, 400, nil},
		{"no JSON", `cost=3`, 400, nil},
		{"two objects", `{"request":"r1","cost":3}{}`, 400, nil},
		{"another key", `{"request":"r1","cost":3,"tenants":"acme"}`, 400, nil},
		{"for somebody else", `{"request":"r1","cost":3,"tenant":"acme"}`, 404, nil},
		{"the report", `{"request":"r1","cost":37}`, 200, 37.0},
		{"again", `{"request":"r1","route":"chat","cost":37}`, 200, 37.0},
		{"another cost", `{"request":"r1","cost":38}`, 409, nil},
	} {
		status, _, answer := s.post("/v1/cost", tc.body)
		if status != tc.status || answer["cost"] != tc.cost {
			t.Errorf("%s: status %d, %v; want %d, %v", tc.what, status, answer, tc.status, tc.cost)
		}
	}
	if n := s.used("look", "units"); n != 38 { // and the look before
		t.Errorf("%d units are used, want 38", n)
	}
	// What a bucket lacks it owes: 37 of 100, then 400 more.
	s.ask("chat", request("r2")).want(t, "chat again", 204)
	if status, _, answer := s.post("/v1/cost", `{"request":"r2","cost":99999}`); status != 200 || answer["cost"] != 400.0 {
		t.Errorf("too much: status %d, %v", status, answer)
	}
	s.ask("look").want(t, "in debt", 403, "X-Sluice-Limit: speed", "RateLimit-Remaining: ")

	s.ask("chat", request("r3"), ip("192.0.2.2")).want(t, "somebody else", 204)
	s.clock.Advance(11 * time.Minute)
	if status, _, _ := s.post("/v1/cost", `{"request":"r3","cost":1}`); status != 410 {
		t.Errorf("too late: status %d", status)
	}
}

// What its status does not count costs nothing, whatever is reported, in either order.
func TestCostAndStatus(t *testing.T) {
	policy := `
limits: {good: {per: ip, quota: 1000/day, count: {status: [2xx]}}, units: {per: ip, quota: 1000/day}}
routes: [{name: chat, match: {prefix: /chat}, cost: 10, cost_from: {report: 10m, max: 400}}, {name: look, match: {prefix: /}}]
`
	for _, first := range []string{"report", "end"} {
		s := newSite(t, policy)
		s.ask("chat", request("r1")).want(t, "chat", 204)
		steps := []func(){
			func() { s.post("/v1/cost", `{"request":"r1","cost":50}`) },
			func() { _, _ = s.engine.Complete(Completion{ID: "r1", Path: "/_sluice/open/chat", Status: 500}) },
		}
		if first == "end" {
			steps[0], steps[1] = steps[1], steps[0]
		}
		for _, step := range steps {
			step()
		}
		if n := s.used("look", "good"); n != 0 {
			t.Errorf("%s first: %d are counted of a request that failed, want 0", first, n)
		}
		if n := s.used("look", "units"); n != 51 {
			t.Errorf("%s first: %d units, want 51", first, n)
		}
	}
}

const workers = `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: anonymous}, unlisted: {deny: 403}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1/h, burst: 1}}}
  pro: {limits: {speed: {per: key, rate: 1/h, burst: 10}, jobs: {per: tenant, concurrency: 2, lease: 1h}}}
tenants: [{id: acme, plan: pro, keys: [{id: a, sha256: hash(sk_a)}]}, {id: off, plan: pro, disabled: true}]
routes:
  - {name: export, match: {prefix: /export, methods: [POST]}, cost: 2}
  - {name: pay, match: {prefix: /pay}, on_store_down: closed}
  - {name: all, match: {prefix: /}}
`

// A worker asks by itself, for a route by its name: the same limits as by NGINX.
func TestTake(t *testing.T) {
	s := newSite(t, workers)
	take := func(body string) (int, map[string]string, map[string]any) {
		t.Helper()
		return s.post("/v1/take", body)
	}
	status, header, a := take(`{"route":"export","tenant":"acme","request":"j1"}`)
	if status != 200 || a["allowed"] != true || a["cost"] != 2.0 || a["plan"] != "pro" || a["tenant"] != "acme" {
		t.Errorf("a worker: %d, %v", status, a)
	}
	if got := header["RateLimit"]; !strings.Contains(got, `"jobs";r=1`) {
		t.Errorf("RateLimit: %q", got)
	}
	if _, _, again := take(`{"route":"export","tenant":"acme","request":"j1"}`); again["allowed"] != true {
		t.Errorf("the same again: %v", again)
	}
	if status, _, a = take(`{"route":"export","key":"sk_a","cost":5,"request":"j2"}`); status != 200 || a["cost"] != 5.0 {
		t.Errorf("with a key, and a cost of its own: %d, %v", status, a)
	}
	if status, header, a = take(`{"route":"export","tenant":"acme","request":"j3"}`); status != 429 || a["allowed"] != false || a["limit"] != "jobs" ||
		a["reason"] != "concurrency" || a["retry_after"] != 1.0 || header["Retry-After"] != "1" {
		t.Errorf("two are under way: %d, %v", status, a)
	}
	if status, _, _ := s.post("/v1/release", `{"request":"j1","route":"export"}`); status != 204 {
		t.Errorf("release: %d", status)
	}
	if status, _, _ := s.post("/v1/release", `{"request":"j1","route":"export"}`); status != 404 {
		t.Errorf("release again: %d", status)
	}
	if status, _, a = take(`{"route":"export","tenant":"acme","request":"j3"}`); status != 429 {
		t.Errorf("j3 has its answer: %d, %v", status, a)
	}
	if status, _, a = take(`{"route":"export","tenant":"acme","request":"j4"}`); status != 200 {
		t.Errorf("j4: %d, %v", status, a)
	}
	for _, tc := range []struct {
		what, body string
		status     int
		reason     any
	}{
		{"more than fits ever", `{"route":"all","key":"sk_a","cost":11,"request":"k"}`, 403, "too_large"},
		{"a wrong key", `{"route":"all","key":"sk_wrong"}`, 401, "credential"},
		{"nobody's tenant", `{"route":"all","tenant":"initech"}`, 403, "credential"},
		{"switched off", `{"route":"all","tenant":"off"}`, 403, "disabled"},
		{"anonymous", `{"route":"all","ip":"192.0.2.9"}`, 200, nil},
		{"anonymous again", `{"route":"all","ip":"192.0.2.9"}`, 429, "rate"},
		{"no such route", `{"route":"exports","tenant":"acme"}`, 400, nil},
		{"no route", `{"tenant":"acme"}`, 400, nil},
		{"both", `{"route":"all","tenant":"acme","key":"sk_a"}`, 400, nil},
		{"no address", `{"route":"all","ip":"here"}`, 400, nil},
		{"no cost", `{"route":"all","cost":0}`, 400, nil},
		{"too much", `{"route":"all","cost":1000001}`, 400, nil},
		{"text", `{"route":"all","cost":"7"}`, 400, nil},
	} {
		if status, _, a := take(tc.body); status != tc.status || a["reason"] != tc.reason {
			t.Errorf("%s: %d, %v; want %d, %v", tc.what, status, a, tc.status, tc.reason)
		}
	}
	if strings.Contains(s.logged(), "sk_") {
		t.Error("a key is in the log")
	}
}

// The store is away: the route's own line decides, and the answer says so.
func TestTakeWithoutStore(t *testing.T) {
	s, store := newAskedSite(t, workers)
	store.fail.Store(true)
	if status, _, a := s.post("/v1/take", `{"route":"all","ip":"192.0.2.9"}`); status != 200 || a["degraded"] != true {
		t.Errorf("open: %d, %v", status, a)
	}
	if status, _, a := s.post("/v1/take", `{"route":"pay","ip":"192.0.2.9"}`); status != 503 || a["reason"] != "store_down" {
		t.Errorf("closed: %d, %v", status, a)
	}
}

// Whatever is sent, an answer comes, and nothing is allowed by accident.
func FuzzApp(f *testing.F) {
	for _, path := range []string{"take", "release", "cost", "other"} {
		f.Add(path, `{"route":"export","tenant":"acme","request":"j1"}`)
		f.Add(path, `{"request":"j1","cost":1e400}`)
		f.Add(path, "\x00")
	}
	s := newSite(f, `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {deny: 401}, unlisted: {deny: 403}}
plans: {pro: {limits: {speed: {per: key, rate: 1/h, burst: 1}}}}
tenants: [{id: acme-0123456789, plan: pro, keys: [{id: a, sha256: hash(sk_a)}]}]
`)
	f.Fuzz(func(t *testing.T, path, body string) {
		if strings.Contains(body, "0123456789") {
			return // who knows the tenant may ask for it
		}
		status, _, answer := s.post("/v1/"+strings.Trim(strings.Map(plainRune, path), "/"), body)
		if status < 400 {
			t.Errorf("%q %q: %d, %v", path, body, status, answer)
		}
	})
}

func plainRune(r rune) rune {
	if r > ' ' && r < 0x7f && r != '?' && r != '#' && r != '%' {
		return r
	}
	return 'x'
}
