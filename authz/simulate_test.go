package authz

import (
	"context"
	"strings"
	"testing"

	"sluice/authz/limit"
)

const trialShop = `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {deny: 401}}
plans:
  free:
    limits:
      speed: {per: key, rate: 2/s, burst: 10}
      minute: {per: key, window: 100/1m, algorithm: fixed}
      monthly: {per: tenant, quota: 1000/month}
      jobs: {per: tenant, concurrency: 2}
      again: {per: key, retries: 60/m}
      watched: {per: key, rate: 1/s, burst: 5, mode: shadow}
      endless: {per: tenant, quota: unlimited/day}
tenants:
  - id: acme
    plan: free
    keys:
      - {id: real, sha256: hash(sk_real)}
      - {id: speed, sha256: hash(sk_speed), simulate: speed}
      - {id: minute, sha256: hash(sk_minute), simulate: minute}
      - {id: monthly, sha256: hash(sk_monthly), simulate: monthly}
      - {id: jobs, sha256: hash(sk_jobs), simulate: jobs}
      - {id: again, sha256: hash(sk_again), simulate: again}
      - {id: watched, sha256: hash(sk_watched), simulate: watched}
      - {id: endless, sha256: hash(sk_endless), simulate: endless}
      - {id: backend, sha256: hash(sk_backend), simulate: backend}
      - {id: home, sha256: hash(sk_home), simulate: speed, cidrs: [198.51.100.0/24]}
limits: {backend: {per: global, rate: 5/s, burst: 50, status: 403}}
routes:
  - {name: dear, match: {prefix: /dear}, cost: 4}
  - {name: all, match: {prefix: /}}
`

// A key that simulates answers as if its limit were reached, whatever kind it is
// of, with every header, and charges nobody anything.
func TestSimulate(t *testing.T) {
	t.Parallel()
	s := newSite(t, trialShop)
	f := func(name, path, status, left, wait string) {
		t.Helper()
		for range 3 { // each time
			a := s.ask(path, key("sk_"+name))
			a.want(t, name, 403, "X-Sluice-Status: "+status, "X-Sluice-Reason: simulate", "X-Sluice-Limit: "+name, "Retry-After: "+wait, "X-Accel-Expires: 0", "X-Sluice-Tenant: acme")
			if got := a.header["RateLimit"]; got != left {
				t.Errorf("%s: RateLimit %q, want %q", name, got, left)
			}
			if left != "" && !strings.Contains(a.header["RateLimit-Policy"], `"speed";q=10;w=5`) {
				t.Errorf("%s: RateLimit-Policy %q", name, a.header["RateLimit-Policy"])
			}
		}
	}
	f("speed", "all", "429", `"speed";r=0;t=1`, "1")
	f("speed", "dear", "429", `"speed";r=0;t=2`, "2")
	f("minute", "all", "429", `"minute";r=0;t=60`, "60")
	f("jobs", "all", "429", `"jobs";r=0`, "1")
	f("again", "all", "429", `"again";r=0;t=1`, "1")
	f("watched", "all", "429", `"watched";r=0;t=1`, "1")
	f("endless", "all", "402", "", s.ask("all", key("sk_endless")).header["Retry-After"])
	f("backend", "all", "403", `"backend";r=0;t=1`, "1")
	// A month is what is left of it.
	monthly := s.ask("all", key("sk_monthly"))
	monthly.want(t, "monthly", 403, "X-Sluice-Status: 402", "X-Sluice-Reason: simulate")
	if seconds := monthly.header["Retry-After"]; len(seconds) < 4 || !strings.HasPrefix(monthly.header["RateLimit"], `"monthly";r=0;t=`+seconds) {
		t.Errorf("monthly: RateLimit %q, Retry-After %q", monthly.header["RateLimit"], seconds)
	}
	if n := s.store.(*limit.Memory).Len(); n != 0 {
		t.Errorf("%d counters were charged", n)
	}
	// Where the real one may not go, it does not.
	s.ask("all", key("sk_home")).want(t, "away from home", 403, "X-Sluice-Reason: address")
	s.ask("all", key("sk_speed"), "X-Sluice-Exempt: 1").want(t, "exempt", 403, "X-Sluice-Reason: simulate")
	if d := s.decide("all", key("sk_real")); d.Verdict != Allow || d.states[4].Remaining != 9 {
		t.Errorf("the real key: %v, %+v", d.Verdict, d.states)
	}
}

// It needs no store, and is not in what metrics say of the tenant.
func TestSimulateAlone(t *testing.T) {
	t.Parallel()
	s := newSiteOn(t, trialShop, newSite(t, "").clock, failing{func(context.Context) error { return limit.ErrUnavailable }})
	for range 5 {
		s.ask("all", key("sk_speed")).want(t, "without a store", 403, "X-Sluice-Reason: simulate", "X-Sluice-Degraded: ")
	}
	s.engine.metrics.accounts.rank(s.clock.Now())
	for _, a := range s.engine.metrics.accounts.list() {
		a.refuses.each(func(key, n uint64) {
			if n > 0 {
				t.Errorf("account %q counts %d", a.name, n)
			}
		})
	}
	if n := s.engine.Counters().Requests; len(n) != 1 || n[0].Reason != ReasonSimulate || n[0].N != 5 {
		t.Errorf("decisions: %+v", n)
	}
	s.swap("mode: shadow\n" + trialShop)
	if d := s.decide("all", key("sk_speed")); d.Verdict != Allow || d.Refused() != ReasonSimulate {
		t.Errorf("in shadow: %v, %v", d.Verdict, d.Refused())
	}
}
