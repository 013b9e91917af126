package authz

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sluice/authz/limit"
)

// at moves the clock to a time of day, which lies ahead.
func (s *site) at(text string) {
	s.t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		s.t.Fatal(err)
	}
	s.clock.Advance(when.Sub(s.clock.Now()))
}

const quotaShop = `
identity:
  sources: [{api_key: {header: X-API-Key}}]
  missing: {plan: anonymous}
plans:
  anonymous: {limits: {daily: {per: ip, quota: 3/day, status: 429}}}
  free: {limits: {monthly: {per: tenant, quota: 10/month, timezone: Europe/Berlin, anchor_day: 15}}}
  paid: {extends: free, limits: {monthly: {quota: 20/month, overage: 5}}}
  endless: {extends: free, limits: {monthly: {quota: unlimited/month}, speed: {per: key, rate: 1/h, burst: 100}}}
  none: {extends: free, limits: {monthly: {quota: 0/month}}}
tenants:
  - {id: acme, plan: free, keys: [{id: a, sha256: hash(sk_a)}, {id: b, sha256: hash(sk_b)}]}
  - {id: paid, plan: paid, keys: [{id: p, sha256: hash(sk_p)}], grants: [{limit: monthly, add: 4, from: 2030-03-20, until: 2030-03-21, reason: launch}]}
  - {id: endless, plan: endless, keys: [{id: e, sha256: hash(sk_e)}]}
  - {id: none, plan: none, keys: [{id: n, sha256: hash(sk_n)}]}
responses: {headers: [ratelimit, ratelimit-3]}
`

func TestQuota(t *testing.T) {
	s := newSite(t, quotaShop)
	s.at("2030-03-14T22:30:00Z") // in Berlin the 14th, half an hour before the period ends
	s.ask("all", key("sk_a")).want(t, "first", 204,
		`RateLimit-Policy: "monthly";q=10;w=2419200`, `RateLimit: "monthly";r=9;t=1800`, "RateLimit-Limit: 10")
	if got := s.passes(20, "all", key("sk_b")); got != 9 { // C101: the tenth passes, the eleventh does not
		t.Errorf("%d more passed, want 9: the keys of a tenant share his quota", got)
	}
	s.ask("all", key("sk_a")).want(t, "used up", 403, "X-Sluice-Status: 402", "X-Sluice-Reason: quota",
		"X-Sluice-Limit: monthly", "Retry-After: 1800", "X-Accel-Expires: 1", "RateLimit-Remaining: 0")
	s.clock.Advance(30 * time.Minute)
	s.ask("all", key("sk_a")).want(t, "the next period", 204, "RateLimit-Remaining: 9")
}

func TestQuotaByAddress(t *testing.T) {
	s := newSite(t, quotaShop)
	if got := s.passes(9, "all", ip("192.0.2.9")); got != 3 {
		t.Errorf("%d passed, want 3", got)
	}
	s.ask("all", ip("192.0.2.9")).want(t, "status of its own", 403, "X-Sluice-Status: 429", "X-Sluice-Reason: quota")
	s.ask("all", ip("192.0.2.10")).want(t, "another address", 204)
}

func TestOverageGrantsAndUnlimited(t *testing.T) {
	s := newSite(t, quotaShop)
	s.at("2030-03-16T12:00:00Z")
	if got := s.passes(99, "all", key("sk_p")); got != 25 {
		t.Errorf("%d passed, want 20 and 5 of overage", got)
	}
	s.at("2030-03-19T22:59:59Z")
	if got := s.passes(9, "all", key("sk_p")); got != 0 {
		t.Errorf("%d passed the second before the grant", got)
	}
	s.at("2030-03-19T23:00:00Z") // midnight in Berlin
	s.ask("all", key("sk_p")).want(t, "the grant's first moment", 204, `RateLimit-Policy: "monthly";q=24;w=2674800`)
	if got := s.passes(9, "all", key("sk_p")); got != 3 {
		t.Errorf("%d more passed on the grant, want 3: what was overage stays so", got)
	}
	// C101: unlimited is still counted, and in no header; 0 lets nothing pass.
	s.ask("all", key("sk_e")).want(t, "unlimited", 204, `RateLimit-Policy: "speed";q=100;w=360000`, `RateLimit: "speed";r=99;t=3600`)
	s.ask("all", key("sk_n")).want(t, "nothing", 403, "X-Sluice-Status: 402", "X-Sluice-Reason: quota")
}

// C102: usage is carried over to another plan, up and down.
func TestQuotaAfterPlanChange(t *testing.T) {
	s := newSite(t, quotaShop)
	s.passes(9, "all", key("sk_a"))
	s.swap(strings.ReplaceAll(quotaShop, "{id: acme, plan: free,", "{id: acme, plan: paid,"))
	s.ask("all", key("sk_a")).want(t, "upgraded", 204, "RateLimit-Remaining: 10")
	s.swap(strings.ReplaceAll(quotaShop, "quota: 10/month", "quota: 5/month"))
	s.ask("all", key("sk_a")).want(t, "downgraded", 403, "X-Sluice-Status: 402", "RateLimit-Remaining: 0")
}

func TestWindows(t *testing.T) {
	f := func(algorithm, reset string) {
		t.Helper()
		s := newSite(t, "limits: {w: {per: ip, window: 5/1m, algorithm: "+algorithm+"}}\n")
		s.at("2030-01-01T00:00:50Z")
		s.ask("all").want(t, algorithm, 204, `RateLimit-Policy: "w";q=5;w=60`, `RateLimit: "w";r=4;t=`+reset)
		if got := s.passes(9, "all"); got != 4 {
			t.Errorf("%s: %d more passed, want 4", algorithm, got)
		}
		s.ask("all").want(t, algorithm, 403, "X-Sluice-Status: 429", "X-Sluice-Reason: window")
	}
	f("fixed", "10")
	f("sliding", "70")
	f("log", "60")
}

func TestRetryBudget(t *testing.T) {
	s := newSite(t, "limits: {again: {per: ip, retries: 2/m}}\n")
	if got := s.passes(50, "all"); got != 50 {
		t.Errorf("%d of 50 requests passed that are no retries", got)
	}
	s.ask("all", "X-Sluice-Retry: 1").want(t, "retry", 204, `RateLimit: "again";r=1;t=30`)
	// The first with an idempotency key is none, its repetition is; another
	// client's key is another key.
	s.ask("all", "X-Sluice-Idempotency: k").want(t, "first with a key", 204, "RateLimit: ")
	s.ask("all", "X-Sluice-Idempotency: k", ip("192.0.2.77")).want(t, "somebody else's", 204, "RateLimit: ")
	s.ask("all", "X-Sluice-Idempotency: k").want(t, "repetition", 204, `RateLimit: "again";r=0;t=60`)
	s.ask("all", "X-Sluice-Retry: 1").want(t, "over the budget", 403, "X-Sluice-Status: 429", "X-Sluice-Reason: retries", "Retry-After: 30")
	s.ask("all").want(t, "no retry", 204)
}

func TestThrottle(t *testing.T) {
	s := newSite(t, "limits: {l: {per: ip, rate: 10/s, burst: 2, wait: 250ms}}\n")
	for i, want := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond} {
		d := s.decide("all")
		if d.Verdict != Allow || d.Delay != want {
			t.Errorf("request %d: %s, held for %s; want allow, %s", i, d.Verdict, d.Delay, want)
		}
	}
	if d := s.decide("all"); d.Verdict != Deny || d.Reason != ReasonRate || d.Delay != 0 {
		t.Errorf("a wait of 300 ms: %s %s %s; want a denial at once", d.Verdict, d.Reason, d.Delay)
	}
}

// TestHeldAnswersAreBounded: who would have to wait where too many do is refused
// and charged nothing.
func TestHeldAnswersAreBounded(t *testing.T) {
	s := newSite(t, "limits: {l: {per: ip, rate: 10/s, burst: 1, wait: 250ms}}\n")
	s.passes(1, "all")
	s.handler.held.Store(maxHeld)
	s.ask("all").want(t, "no room", 403, "X-Sluice-Status: 503", "X-Sluice-Reason: overload", "Retry-After: 1")
	s.handler.held.Store(0)
	began := time.Now()
	s.ask("all").want(t, "room again", 204)
	if held := time.Since(began); held < 100*time.Millisecond {
		t.Errorf("held for %s, want 100 ms", held)
	}
}

func TestReserve(t *testing.T) {
	s := newSite(t, `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: low}}
limits: {backend: {per: global, rate: 1/h, burst: 10, reserve: {high: 20%, normal: 10%}}}
plans: {low: {priority: low}, normal: {}, high: {priority: high}}
tenants:
  - {id: n, plan: normal, keys: [{id: n, sha256: hash(sk_n)}]}
  - {id: h, plan: high, keys: [{id: h, sha256: hash(sk_h)}]}
`)
	for _, tc := range []struct {
		who  string
		want int
		head []string
	}{{"low", 7, nil}, {"normal", 1, []string{key("sk_n")}}, {"high", 2, []string{key("sk_h")}}} {
		if got := s.passes(20, "all", tc.head...); got != tc.want {
			t.Errorf("%s: %d passed, want %d", tc.who, got, tc.want)
		}
	}
}

func request(id string) string { return "X-Sluice-Request: " + id }

func TestConcurrency(t *testing.T) {
	s := newSite(t, "limits: {jobs: {per: ip, concurrency: 2, lease: 1m}}\n")
	path := "/_sluice/open/all"
	s.ask("all", request("r1")).want(t, "one", 204, `RateLimit-Policy: "jobs";q=2`, `RateLimit: "jobs";r=1`)
	s.ask("all", request("r1")).want(t, "the same request again", 204)
	s.ask("all", request("r2")).want(t, "two", 204)
	s.ask("all", request("r3")).want(t, "three", 403, "X-Sluice-Status: 429", "X-Sluice-Reason: concurrency", "Retry-After: 1", "X-Accel-Expires: 0")
	if known, err := s.engine.Complete(Completion{ID: "r1", Path: path, Status: 200}); !known || err != nil {
		t.Errorf("the end of r1: known %t, %v", known, err)
	}
	if known, _ := s.engine.Complete(Completion{ID: "r1", Path: path, Status: 200}); known {
		t.Error("the end of r1 came twice")
	}
	s.ask("all", request("r4")).want(t, "r1's slot", 204)
	s.ask("all", request("r5")).want(t, "full again", 403)
	s.clock.Advance(61 * second) // a lost datagram is healed by the lease
	s.ask("all", request("r6")).want(t, "leases have ended", 204, `RateLimit: "jobs";r=1`)
}

// TestCountByStatus: of logins only the failed ones count.
func TestCountByStatus(t *testing.T) {
	s := newSite(t, "limits: {failures: {per: ip, window: 2/15m, algorithm: log, count: {status: [401, 5xx]}}}\n")
	try := func(i, status int) bool {
		id := fmt.Sprint("r", i)
		if s.decide("all", request(id)).Verdict != Allow {
			return false
		}
		if known, err := s.engine.Complete(Completion{ID: id, Path: "/_sluice/open/all", Status: status}); !known || err != nil {
			t.Errorf("request %d: known %t, %v", i, known, err)
		}
		return true
	}
	for i := range 20 {
		if !try(i, 200) {
			t.Fatalf("success %d was counted", i)
		}
	}
	if !try(20, 401) || !try(21, 503) {
		t.Error("a failure within the limit was refused")
	}
	if try(22, 200) {
		t.Error("the third passed after two failures")
	}
}

// TestDatagrams sends what NGINX sends, and what others would.
func TestDatagrams(t *testing.T) {
	s := newSite(t, "limits: {jobs: {per: ip, concurrency: 1}}\n")
	listen := func(peers []netip.Prefix) *Datagrams {
		d, err := ListenDatagrams(s.engine, "127.0.0.1:0", peers, s.engine.log)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { d.Serve(ctx); close(done) }()
		t.Cleanup(func() { cancel(); <-done })
		return d
	}
	send := func(d *Datagrams, text string) {
		conn, err := net.Dial("udp", d.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	end := `<190>Dec  1 12:00:00 sluice: {"id":"r1","path":"/_sluice/open/all","status":"200","time":0.1}`
	s.ask("all", request("r1")).want(t, "lease", 204)
	closed := listen([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	send(closed, end)
	await(t, func() bool { return closed.Counts().Strangers == 1 })
	s.ask("all", request("r2")).want(t, "a stranger freed nothing", 403)

	d := listen(nil)
	for _, bad := range []string{"", "x", "{}", "<190>", `<190>Dec sluice: {"id":"r1"`, `<190>Dec sluice: {"id":1}`, `{"id":"r1","path":"/_sluice/open/all","status":"200"}`} {
		send(d, bad)
	}
	send(d, `<190>Dec  1 12:00:00 sluice: {"id":"r9","path":"/_sluice/open/all","status":"200"}`)
	await(t, func() bool { c := d.Counts(); return c.Bad == 7 && c.Unknown == 1 })
	s.ask("all", request("r3")).want(t, "nothing freed yet", 403)
	send(d, end)
	await(t, func() bool { return d.Counts().Settled == 1 })
	s.ask("all", request("r4")).want(t, "freed", 204)
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

// FuzzCompletion: whatever comes, it is read or refused.
func FuzzCompletion(f *testing.F) {
	f.Add([]byte(`<190>Dec  1 12:00:00 sluice: {"id":"r1","path":"/_sluice/open/all","status":"200"}`))
	f.Add([]byte(`<190>{`))
	e := New(limit.NewMemory(limit.MemoryOptions{}), Options{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, ok := parseCompletion(data); ok {
			if known, err := e.Complete(c); known || err != nil {
				t.Fatalf("an end of nothing: %t, %v", known, err)
			}
		}
	})
}
