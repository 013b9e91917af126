package edge

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice/geo"
	"sluice/policies"
)

// model makes a Model of a policy that must be a good one.
func model(t testing.TB, src string) *Model {
	t.Helper()
	p, ds := policies.Parse("policy.yaml", []byte(src), nil)
	if ds.HasErrors() {
		t.Fatalf("the policy of the test is not good: %v", ds)
	}
	return New(policies.Compile(p), geo.Tables{})
}

// start is when the tests begin.
func start() time.Time { return time.UnixMilli(1_800_000_000_000) }

// get is a request for a path from an address.
func get(path, ip string, headers ...string) *Request {
	r := &Request{Peer: netip.MustParseAddr(ip), Method: "GET", URI: path, Host: "example.com"}
	for i := 0; i < len(headers); i += 2 {
		r.Header = append(r.Header, Field{headers[i], headers[i+1]})
	}
	return r
}

// enter takes one request through and out again.
func enter(m *Model, r *Request, at time.Duration) *Visit {
	v := &Visit{Request: r}
	m.Enter(v, start().Add(at))
	return v
}

// TestBurst: a burst is so many at once, and what comes after it by the rate
// (nginx-facts 6).
func TestBurst(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		limit string
		at    []time.Duration
		want  string // p passes, x is refused, digits: held, in tenths of a second
	}{
		{"rate: 2/s, burst: 4", []time.Duration{0, 0, 0, 0, 0}, "ppppx"},
		{"rate: 2/s, burst: 4", []time.Duration{0, 0, 0, 0, 0, 499, 500, 500}, "ppppxxpx"},
		{"rate: 2/s, burst: 4, delay: all", []time.Duration{0, 0, 0, 0, 0}, "p5AFx"},
		{"rate: 2/s, burst: 4, delay: 2", []time.Duration{0, 0, 0, 0, 0}, "pp5Ax"},
		{"rate: 1/s, burst: 1", []time.Duration{0, 0, 999, 1000, 1000, 3000, 3000}, "pxxpxpx"},
		{"rate: 7/m, burst: 1", []time.Duration{0, 8571, 8620, 8621}, "pxxp"}, // 116 and not 116.66
		{"rate: 60/m, burst: 2", []time.Duration{0, 0, 0, 1000, 1000}, "ppxpx"},
	} {
		m := model(t, "version: 1\nedge: {limits: {a: {per: ip, "+f.limit+"}}}\n")
		got := ""
		for _, at := range f.at {
			v := enter(m, get("/", "192.0.2.1"), at*time.Millisecond)
			switch {
			case v.Verdict == EdgeRate:
				got += "x"
			case v.Delay > 0:
				got += fmt.Sprintf("%X", v.Delay.Milliseconds()/100)
			default:
				got += "p"
			}
		}
		if got != f.want {
			t.Errorf("%s at %v: %s; want %s", f.limit, f.at, got, f.want)
		}
	}
}

// TestSeveralRates: the first without room refuses, and then no bucket is
// charged; the longest delay of all holds.
func TestSeveralRates(t *testing.T) {
	t.Parallel()
	m := model(t, `version: 1
edge:
  limits:
    all: {per: global, rate: 1/s, burst: 3}
    one: {per: ip, rate: 1/s, burst: 1}
    slow: {per: {header: X-Slow}, rate: 1/s, burst: 5, delay: all, when: {headers: {X-Slow: present}}}
`)
	pass := func(want Verdict, limit, ip string, headers ...string) *Visit {
		t.Helper()
		v := enter(m, get("/", ip, headers...), 0)
		if v.Verdict != want || v.Limit != limit {
			t.Errorf("%s: %v %q; want %v %q", ip, v.Verdict, v.Limit, want, limit)
		}
		return v
	}
	pass(Passed, "", "192.0.2.1")
	pass(EdgeRate, "one", "192.0.2.1") // charges nothing in `all`
	pass(EdgeRate, "one", "192.0.2.1")
	pass(Passed, "", "192.0.2.2", "X-Slow", "a")
	if v := pass(Passed, "", "192.0.2.3", "X-Slow", "a"); v.Delay != time.Second {
		t.Errorf("held for %v; want the one second of `slow`", v.Delay)
	}
	pass(EdgeRate, "all", "192.0.2.4")
}

// TestShadowedLimit: limit_req_dry_run counts what passes and holds nobody (C044).
func TestShadowedLimit(t *testing.T) {
	t.Parallel()
	m := model(t, "version: 1\nedge: {limits: {a: {per: ip, rate: 1/s, burst: 1, mode: shadow}}}\n")
	if v := enter(m, get("/", "192.0.2.1"), 0); v.Verdict != Passed {
		t.Errorf("the first: %v", v.Verdict)
	}
	if v := enter(m, get("/", "192.0.2.1"), 0); v.Verdict != EdgeRate || !v.Shadow || v.Limit != "a" {
		t.Errorf("the second: %v %v %q", v.Verdict, v.Shadow, v.Limit)
	}
}

// TestSweep: dropping what no longer matters changes no verdict.
func TestSweep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.Int64Range(1, 5000).Draw(t, "rate")
		kept, swept := newZone(rate), newZone(rate)
		now := int64(1_800_000_000_000)
		for range rapid.IntRange(1, 60).Draw(t, "requests") {
			now += rapid.Int64Range(0, 3_000_000/rate).Draw(t, "pause")
			key := []byte{byte(rapid.IntRange('a', 'c').Draw(t, "key"))}
			swept.sweep(now)
			excess := [2]int64{}
			for i, z := range []*zone{kept, swept} {
				if b := z.buckets[string(key)]; b != nil {
					excess[i] = z.take(b, now)
				} else {
					z.put(key, now)
				}
			}
			if excess[0] != excess[1] {
				t.Fatalf("at %d: %d with all buckets, %d when swept", now, excess[0], excess[1])
			}
		}
	})
}
