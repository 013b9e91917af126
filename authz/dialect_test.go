package authz

import (
	"strings"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

// The same request in every dialect. speed has the smallest share left.
func TestDialects(t *testing.T) {
	const limits = `
limits:
  org: {per: global, rate: 20/s, burst: 100}
  speed: {per: ip, rate: 10/s, burst: 50}
routes: [{name: all, match: {prefix: /}, cost: 5}]
`
	f := func(dialect string, want ...string) {
		t.Helper()
		s := newSite(t, limits+"responses: {headers: ["+dialect+"]}\n")
		s.ask("all")
		a := s.ask("all")
		a.want(t, dialect, 204, want...)
		told := 0
		for name := range a.header {
			if strings.Contains(strings.ToLower(name), "ratelimit") {
				told++
			}
		}
		if told != len(want) {
			t.Errorf("%s: %d headers tell of limits, want %d:\n%s", dialect, told, len(want), a.raw)
		}
	}
	const both = `RateLimit-Policy: "org";q=100;w=5, "speed";q=50;w=5`
	f("ratelimit", both, `RateLimit: "speed";r=40;t=1`)
	f("ratelimit-12", both, `RateLimit: "speed";a=40;w=1;c=5`)
	f("ratelimit-3", "RateLimit-Limit: 50", "RateLimit-Remaining: 40", "RateLimit-Reset: 1")
	f("x-ratelimit", "X-RateLimit-Limit: 50", "X-RateLimit-Remaining: 40", "X-RateLimit-Reset: 1770120001") // noon and 1 s
	f("ratelimit, x-ratelimit", both, `RateLimit: "speed";r=40;t=1`, "X-RateLimit-Limit: 50", "X-RateLimit-Remaining: 40", "X-RateLimit-Reset: 1770120001")
	f("", []string{}...)
}

// On a denial every dialect tells of the limit that refused, and its reset is
// the wait for this cost.
func TestDialectsOfDenials(t *testing.T) {
	const limits = `
limits: {speed: {per: ip, rate: 6/m, burst: 2}, wide: {per: ip, rate: 1/h, burst: 1000000}}
`
	s := newSite(t, limits+"responses: {headers: [ratelimit, ratelimit-3, x-ratelimit]}\n")
	s.passes(2, "all")
	s.clock.Advance(500 * time.Millisecond)
	s.ask("all").want(t, "denied", 403, `RateLimit-Policy: "speed";q=2;w=20, "wide";q=1000000;w=3600000000`,
		`RateLimit: "speed";r=0;t=10`, "RateLimit-Limit: 2", "RateLimit-Remaining: 0", "RateLimit-Reset: 10",
		"X-RateLimit-Limit: 2", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1770120010", "Retry-After: 10")
	s = newSite(t, limits+"responses: {headers: [ratelimit-12]}\n")
	s.passes(2, "all")
	s.ask("all").want(t, "denied", 403, `RateLimit: "speed";a=0;w=10;c=0`)
}

// Of several limits that refuse, the one with the longest wait is told.
func TestLongestWaitIsTold(t *testing.T) {
	s := newSite(t, "limits: {a: {per: ip, rate: 1/s, burst: 1}, b: {per: ip, rate: 1/m, burst: 1}}\n")
	s.passes(1, "all")
	s.ask("all").want(t, "both refuse", 403, "X-Sluice-Limit: b", "Retry-After: 60", `RateLimit: "b";r=0;t=60`, "X-Accel-Expires: 1")
}

func TestRemaining(t *testing.T) {
	s := newSite(t, "limits: {l: {per: ip, rate: 1/h, burst: 3}}\nresponses: {headers: [ratelimit-3]}\n")
	for i, want := range []string{"2", "1", "0", "0"} {
		if got := s.ask("all").header["RateLimit-Remaining"]; got != want {
			t.Errorf("request %d: %s remaining, want %s", i+1, got, want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	f := func(wait time.Duration, want int64, keep string) {
		t.Helper()
		s := newSite(t, "limits: {l: {per: ip, rate: 1/s, burst: 1}}\n")
		d := s.decide("all")
		d.told = 0
		d.states[0].Wait = wait
		d.refuse(0, &Request{})
		if got := d.RetryAfter(); got != want {
			t.Errorf("wait %s: Retry-After %d, want %d", wait, got, want)
		}
		d.Write(&s.ctx.Response)
		if a := readAnswer(t, &s.ctx.Response); a.header["X-Accel-Expires"] != keep {
			t.Errorf("wait %s: X-Accel-Expires %q, want %s", wait, a.header["X-Accel-Expires"], keep)
		}
	}
	f(time.Microsecond, 1, "0")
	f(time.Millisecond, 1, "0")
	f(200*time.Millisecond, 1, "0")
	f(second, 1, "0")
	f(1010*time.Millisecond, 2, "0")
	f(2*second-1, 2, "0")
	f(2*second, 2, "1")
	f(40*24*time.Hour, 3456000, "1")
	f(1<<63-1, 9223372037, "1")
	f(limit.Never, 0, "0")
}

// Jitter only adds, and neither the deny cache nor the reset sees it.
func TestJitter(t *testing.T) {
	f := func(jitter string, number float64, rate, want, keep string) {
		t.Helper()
		s := newSite(t, "limits: {l: {per: ip, rate: "+rate+", burst: 1}}\nresponses: {retry_after_jitter: "+jitter+"}\n")
		s.engine.jitter = func() float64 { return number }
		s.passes(1, "all")
		a := s.ask("all")
		reset := a.header["RateLimit"][strings.Index(a.header["RateLimit"], "t=")+2:]
		if got := a.header["Retry-After"] + " " + reset + " " + a.header["X-Accel-Expires"]; got != want+" "+keep {
			t.Errorf("%s of %s at %v: Retry-After, reset and expiry %q, want %q", jitter, rate, number, got, want+" "+keep)
		}
	}
	f("10%", 0, "1/m", "60", "60 1")
	f("10%", 0.5, "1/m", "63", "60 1")
	f("10%", 0.999, "1/m", "66", "60 1")
	f("50%", 0.999, "1/s", "2", "1 0")
	f("0%", 0.999, "1/m", "60", "60 1")
	f("50%", 0.001, "1/h", "3602", "3600 1")
}

// A 503 of the fail mode says one second, whatever the jitter.
func TestNoJitterOfTheFailMode(t *testing.T) {
	s := newSite(t, "")
	s.engine.jitter = func() float64 { return 0.999 }
	s.ask("/_sluice/closed/x").want(t, "closed", 403, "Retry-After: 1")
}

// What auth_request makes of an answer must not depend on what was asked.
func TestStatuses(t *testing.T) {
	s := newSite(t, shop)
	for _, headers := range [][]string{
		{}, {key("sk_web")}, {key("sk_nobody")}, {key("sk_ini")}, {"If-None-Match: *", "If-Modified-Since: Tue, 01 Dec 2026 00:00:00 GMT"},
		{"Range: bytes=0-1"}, {"Upgrade: websocket", "Connection: Upgrade"}, {ip("unix:")}, {ip("")}, {uri("")}, {method("")},
	} {
		for _, route := range []string{"rest", "search", "reports", "read", "gone", "free_for_all"} {
			switch a := s.ask(route, headers...); a.status {
			case 204, 401, 403:
				denied := a.status != 204
				if denied != (a.header["X-Sluice-Decision"] == "deny") || !denied && a.header["X-Sluice-Decision"] != "allow" {
					t.Errorf("%s with %v: status %d says %q", route, headers, a.status, a.header["X-Sluice-Decision"])
				}
				if (a.status == 403) != (a.header[policies.HeaderStatus] != "") {
					t.Errorf("%s with %v: status %d with true status %q", route, headers, a.status, a.header[policies.HeaderStatus])
				}
			default:
				t.Errorf("%s with %v: status %d", route, headers, a.status)
			}
		}
	}
}

// The head of an answer stays far below what NGINX reads, with as many limits,
// names as long, and dialects as many as there can be.
func TestHeadIsBounded(t *testing.T) {
	long := strings.Repeat("n", 60)
	var limits strings.Builder
	for i := range limit.MaxOps {
		limits.WriteString("  " + long + string(rune('a'+i/26)) + string(rune('a'+i%26)) + ": {per: ip, rate: 1/h, burst: 1000000}\n")
	}
	s := newSite(t, "limits:\n"+limits.String()+"responses: {headers: [ratelimit, ratelimit-3, x-ratelimit]}\n")
	if n := len(s.ask("all").raw); n < 4<<10 || n > 16<<10 {
		t.Errorf("the head is %d bytes, want 4 KiB to 16 KiB", n)
	}
}
