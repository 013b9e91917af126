package authz

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/authz/limit"
	"sluice/policies"
)

func TestPlansAndOverrides(t *testing.T) {
	f := func(what string, want int, headers ...string) {
		t.Helper()
		if got := newSite(t, shop).passes(120, "rest", headers...); got != want {
			t.Errorf("%s: %d of 120 passed, want %d", what, got, want)
		}
	}
	f("nobody", 3)
	f("a key of a plan", 10, key("sk_a"))
	f("a tenant's override", 80, key("sk_web"))
	f("a key's own plan, which overrides do not touch", 10, key("sk_batch"))
}

// Keys of one tenant share what counts by tenant, and only that.
func TestKeysShareTheTenant(t *testing.T) {
	s := newSite(t, shop)
	if got := s.passes(20, "rest", key("sk_a")); got != 10 {
		t.Errorf("the first key: %d passed, want its own 10", got)
	}
	if got := s.passes(20, "rest", key("sk_b")); got != 5 {
		t.Errorf("the second key: %d passed, want the tenant's last 5", got)
	}
	if got := s.passes(20, "rest", key("sk_batch")); got != 10 {
		t.Errorf("another tenant: %d passed, want 10", got)
	}
}

// All limits are charged or none: the reports limit refuses, and neither the
// key's nor the tenant's loses a token by it.
func TestCascadeIsAllOrNone(t *testing.T) {
	s := newSite(t, shop+"limits: {backend: {per: global, rate: 1/s, burst: 50}}\n")
	if got := s.passes(6, "reports", key("sk_a")); got != 2 {
		t.Fatalf("%d reports passed, want 2", got)
	}
	s.engine.Forget() // the refusal, of which only one limit is known
	d := s.decide("reports", key("sk_a"))
	if d.Reason != ReasonRate || d.Limit != "reports" || d.Left != 0 || d.Status != 429 {
		t.Errorf("refused by %q for %v, %d left, status %d; want reports, rate, 0, 429", d.Limit, d.Reason, d.Left, d.Status)
	}
	var got []string
	for _, c := range d.Charges(nil) {
		got = append(got, fmt.Sprintf("%s cost %d left %d fits %t", c.Limit.Name, c.Cost, c.State.Remaining, c.State.Fits))
	}
	want := []string{
		"org cost 1 left 13 fits true", "speed cost 1 left 8 fits true",
		"reports cost 1 left 0 fits false", "backend cost 1 left 48 fits true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits in the order of enforcement (-want +got):\n%s", diff)
	}
}

func TestCost(t *testing.T) {
	s := newSite(t, shop)
	if got := s.passes(10, "search", key("sk_a")); got != 2 {
		t.Errorf("%d searches of 5 units passed a burst of 10, want 2", got)
	}
	// The reports limit counts requests, whatever they cost.
	s = newSite(t, strings.Replace(shop, "plans: [free, pro]", "cost: 3", 1))
	if got := s.passes(10, "reports", key("sk_a")); got != 2 {
		t.Errorf("%d reports passed, want 2", got)
	}
	if left := s.decide("rest", key("sk_a")).Charges(nil)[1].State.Remaining; left != 3 {
		t.Errorf("speed has %d left after two reports of 3 units and 1 more, want 3", left)
	}
}

func TestMethods(t *testing.T) {
	s := newSite(t, shop)
	f := func(route, want string, headers ...string) {
		t.Helper()
		if d := s.decide(route, append(headers, key("sk_web"))...); d.Route != want {
			t.Errorf("question about %s with %v: route %q, want %q", route, headers, d.Route, want)
		}
	}
	f("read", "read", method("GET"))
	f("read", "write", method("POST"))
	f("write", "read", method("HEAD"))
	f("read", "rest", method("DELETE"), uri("/items/7"))
	f("gone", "search", uri("/search/%78?q=1"))
	f("gone", "write", uri("//items"), method("POST"))
	if c := s.engine.Counters(); c.Skew != 2 {
		t.Errorf("skew %d, want 2: two questions named a route that is not known", c.Skew)
	}
}

// NGINX's key has no URI for a route that only NGINX knows: what is denied there
// must not be kept, or it would be the answer to every other URI of the place.
func TestStrangeRouteIsNotKept(t *testing.T) {
	s := newSite(t, `
limits: {all: {per: ip, rate: 1/m, burst: 1}}
routes: [{name: read, match: {prefix: /items}}]
`)
	s.ask("read", uri("/items")).want(t, "first", 204)
	s.ask("read", uri("/items")).want(t, "known", 403, "X-Sluice-Limit: all", "X-Accel-Expires: 1")
	s.ask("gone", uri("/items")).want(t, "strange", 403, "X-Sluice-Limit: all", "X-Accel-Expires: 0")
}

// When nothing matches, a route that the policy knows lets pass uncounted, and
// one it does not know leaves it to the mode in the path.
func TestNothingMatches(t *testing.T) {
	s := newSite(t, `
limits: {all: {per: ip, rate: 1/s, burst: 1}}
routes: [{name: read, match: {prefix: /items, methods: [GET]}}]
`)
	for range 3 {
		s.ask("read", method("PUT"), uri("/items")).want(t, "no method", 204, "X-Sluice-Decision: allow", "X-Sluice-Degraded: ", "RateLimit: ")
		s.ask("/_sluice/open/gone", uri("/x")).want(t, "unknown, open", 204, "X-Sluice-Decision: allow", "X-Sluice-Degraded: 1")
		s.ask("/_sluice/closed/gone", uri("/x")).want(t, "unknown, closed", 403, "X-Sluice-Status: 503", "Retry-After: 1", "X-Sluice-Degraded: 1")
		s.ask("/_sluice/closed/gone", uri("/../..")).want(t, "unknown, closed, bad path", 403, "X-Sluice-Status: 503")
	}
	if c := s.engine.Counters(); c.Skew != 9 {
		t.Errorf("skew %d, want 9", c.Skew)
	}
}

func TestPolicySkew(t *testing.T) {
	s := newSite(t, shop)
	s.decide("rest", policies.HeaderPolicy+": "+s.engine.Policy().Hash)
	s.decide("rest", policies.HeaderPolicy+": 0123456789abcdef")
	if c := s.engine.Counters(); c.Skew != 1 {
		t.Errorf("skew %d, want 1", c.Skew)
	}
}

func TestExempt(t *testing.T) {
	s := newSite(t, shop)
	exempt := policies.HeaderExempt + ": 1"
	if got := s.passes(50, "rest", exempt); got != 50 {
		t.Errorf("%d of 50 exempted requests passed", got)
	}
	if got := s.passes(50, "rest", policies.HeaderExempt+": 0"); got != 3 {
		t.Errorf("%d passed afterwards, want all of the burst: exempted requests cost nothing", got)
	}
	s.ask("rest", exempt, key("sk_web")).want(t, "exempt", 204, "X-Sluice-Tenant: acme", "X-Sluice-Plan: pro", "X-Sluice-Priority: high", "RateLimit: ")
	s.ask("rest", exempt, key("sk_nobody")).want(t, "exempt with a bad key", 401, "X-Sluice-Reason: credential")
	if got := s.passes(50, "free_for_all"); got != 50 {
		t.Errorf("%d of 50 requests to an exempt route passed", got)
	}
}

func TestShadowLimit(t *testing.T) {
	s := newSite(t, `
limits:
  candidate: {per: ip, rate: 1/s, burst: 1, mode: shadow}
  real: {per: ip, rate: 1/s, burst: 3}
`)
	for i := range 3 {
		a := s.ask("all")
		a.want(t, "within the real limit", 204, `RateLimit-Policy: "real";q=3;w=3`)
		if strings.Contains(a.raw, "candidate") {
			t.Errorf("request %d: a shadow limit is in the headers:\n%s", i, a.raw)
		}
	}
	s.ask("all").want(t, "past the real limit", 403, "X-Sluice-Limit: real", `RateLimit: "real";r=0;t=1`)
	if c := s.engine.Counters(); c.WouldDeny != 3 {
		t.Errorf("would deny %d times, want 3", c.WouldDeny)
	}
}

func TestShadowPolicy(t *testing.T) {
	s := newSite(t, "mode: shadow\n"+shop)
	for range 3 {
		s.ask("rest").want(t, "within", 204, "X-Sluice-Reason: ")
	}
	s.ask("rest").want(t, "past the limit", 204, "X-Sluice-Decision: allow", "X-Sluice-Reason: shadow", "X-Sluice-Limit: speed",
		`RateLimit: "speed";r=0;t=1`, "X-Sluice-Status: ", "Retry-After: ", "X-Accel-Expires: 0")
	s.ask("rest", key("sk_nobody")).want(t, "a bad key", 204, "X-Sluice-Reason: shadow", "WWW-Authenticate: ")
	s.ask("reports").want(t, "a plan that may not", 204, "X-Sluice-Reason: shadow", "WWW-Authenticate: ")
	if n := s.engine.Counters().Of(Allow, ReasonShadow); n != 3 {
		t.Errorf("%d shadowed refusals counted, want 3", n)
	}
	if log := s.logged(); strings.Count(log, "would be denied") != 3 || !strings.Contains(log, `"reason":"credential"`) {
		t.Errorf("the log does not tell what would have been denied:\n%s", log)
	}
}

func TestDisabledPolicy(t *testing.T) {
	s := newSite(t, "mode: disabled\n"+shop)
	for range 10 {
		s.ask("search", key("sk_nobody")).want(t, "disabled", 204, "X-Sluice-Decision: allow", "RateLimit: ", "X-Sluice-Plan: ")
	}
}

// A cost that only run time knows may be more than a limit can ever hold: that
// is refused for good, and charges nothing.
func TestNeverFits(t *testing.T) {
	c := compile(t, strings.Replace(shop, "cost: 5", "cost: 7", 1))
	for i := range c.Routes {
		if c.Routes[i].Name == "search" {
			c.Routes[i].Cost = 50
		}
	}
	s := newSite(t, "")
	if err := s.engine.Swap(c); err != nil {
		t.Fatal(err)
	}
	s.ask("search", key("sk_a")).want(t, "too large", 403, "X-Sluice-Status: 403", "X-Sluice-Reason: too_large",
		"X-Sluice-Limit: org", "Retry-After: ", "X-Accel-Expires: 0", `RateLimit: "org";r=15`)
	if got := s.passes(20, "rest", key("sk_a")); got != 10 {
		t.Errorf("%d passed afterwards, want 10: nothing was charged", got)
	}
}

// A limit of nothing denies, and never promises otherwise.
func TestZeroBurst(t *testing.T) {
	c := compile(t, "limits: {off: {per: ip, rate: 1/s, burst: 1}}\n")
	c.Limits[0].Burst = 0
	s := newSite(t, "")
	if err := s.engine.Swap(c); err != nil {
		t.Fatal(err)
	}
	s.ask("all").want(t, "nothing", 403, "X-Sluice-Status: 429", "X-Sluice-Reason: rate", "Retry-After: ",
		`RateLimit-Policy: "off";q=0`, `RateLimit: "off";r=0`)
}

// failing is a store that is away.
type failing struct {
	take func(ctx context.Context) error
}

func (f failing) Take(ctx context.Context, _ []limit.Op, _ []limit.State) (int, error) {
	return -1, f.take(ctx)
}
func (f failing) Peek(ctx context.Context, _ []limit.Op, _ []limit.State) error { return f.take(ctx) }
func (f failing) Settle(ctx context.Context, _ []byte, _ []limit.Op, _ []int64) error {
	return f.take(ctx)
}
func (f failing) Reset(ctx context.Context, _ []limit.Op) error { return f.take(ctx) }
func (f failing) Close() error                                  { return nil }

func TestStoreDown(t *testing.T) {
	s := newSiteOn(t, shop, newSite(t, "").clock, failing{func(context.Context) error { return limit.ErrUnavailable }})
	s.ask("rest", key("sk_web")).want(t, "open", 204, "X-Sluice-Decision: allow", "X-Sluice-Degraded: 1", "X-Sluice-Tenant: acme", "RateLimit: ", "X-Accel-Expires: 0")
	s.ask("closed", key("sk_web")).want(t, "closed", 403, "X-Sluice-Status: 503", "X-Sluice-Degraded: 1", "Retry-After: 1",
		"X-Sluice-Reason: store_down", "X-Accel-Expires: 0")
	// The route's mode decides, not the one in the path of another's question.
	s.ask("/_sluice/open/closed").want(t, "closed by the policy", 403, "X-Sluice-Status: 503")
	s.ask("rest", key("sk_nobody")).want(t, "what needs no store is decided", 401)
	c := s.engine.Counters()
	if c.StoreErrors != 3 || c.Of(Degraded, ReasonStoreDown) != 1 || c.Of(Deny, ReasonStoreDown) != 2 {
		t.Errorf("counters: %+v", c)
	}
	if log := s.logged(); strings.Count(log, `"msg":"not decided"`) != 3 || !strings.Contains(log, limit.ErrUnavailable.Error()) {
		t.Errorf("log:\n%s", log)
	}
}

// A store that hangs is left at the deadline.
func TestDeadline(t *testing.T) {
	s := newSiteOn(t, shop, newSite(t, "").clock, failing{func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", limit.ErrUnavailable, ctx.Err())
	}})
	s.engine.deadline = DefaultDeadline
	start := time.Now()
	s.ask("rest").want(t, "late", 204, "X-Sluice-Degraded: 1")
	if took := time.Since(start); took < DefaultDeadline || took > time.Second {
		t.Errorf("decided after %s, want a bit more than %s", took, DefaultDeadline)
	}
}

// A mistake of ours decides for nobody: the fail mode does, and it is logged once.
func TestPanic(t *testing.T) {
	s := newSiteOn(t, shop, newSite(t, "").clock, failing{func(context.Context) error { panic("BUG: on purpose") }})
	for range 3 {
		s.ask("/_sluice/open/rest").want(t, "open", 204, "X-Sluice-Degraded: 1")
		s.ask("/_sluice/closed/rest").want(t, "closed", 403, "X-Sluice-Status: 503", "Retry-After: 1")
	}
	if c := s.engine.Counters(); c.Panics != 6 {
		t.Errorf("%d panics counted, want 6", c.Panics)
	}
	if log := s.logged(); strings.Count(log, "BUG: on purpose") != 1 {
		t.Errorf("log:\n%s", log)
	}
}

func TestNoPolicyYet(t *testing.T) {
	s := newSite(t, "")
	s.ask("/_sluice/open/rest").want(t, "open", 204, "X-Sluice-Degraded: 1")
	s.ask("/_sluice/closed/rest").want(t, "closed", 403, "X-Sluice-Status: 503")
}

// A policy in force is replaced at once; buckets go on.
func TestSwapKeepsBuckets(t *testing.T) {
	s := newSite(t, shop)
	if got := s.passes(3, "rest"); got != 3 {
		t.Fatalf("%d passed, want 3", got)
	}
	s.swap(strings.Replace(shop, "burst: 3}", "burst: 30}", 1))
	if got := s.passes(10, "rest"); got != 0 {
		t.Errorf("%d passed after the burst grew, want 0: a larger bucket is not a fuller one", got)
	}
	s.clock.Advance(5 * second)
	if got := s.passes(10, "rest"); got != 5 {
		t.Errorf("%d passed after 5 s, want 5", got)
	}
}

func TestSwapRefuses(t *testing.T) {
	f := func(what string, change func(*policies.Compiled), want string) {
		t.Helper()
		s := newSite(t, shop)
		old := s.engine.Policy()
		c := compile(t, shop)
		change(c)
		err := s.engine.Swap(c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", what, err, want)
		}
		if s.engine.Policy() != old {
			t.Errorf("%s: the policy was replaced", what)
		}
	}
	f("a kind of limit", func(c *policies.Compiled) { c.Plans[0].Limits[0].Kind = "tides" }, `kind "tides"`)
	f("a dimension", func(c *policies.Compiled) { c.Plans[0].Limits[0].Per = []policies.Dim{{Kind: "moon"}} }, `dimension "moon"`)
	f("too many", func(c *policies.Compiled) {
		for i := range limit.MaxOps {
			l := c.Plans[0].Limits[0]
			l.Name = fmt.Sprint("l", i)
			c.Limits = append(c.Limits, l)
		}
	}, "want at most 64")
}

// Whatever tenant a client without a credential calls itself, it is its address:
// another name each time is no other bucket. C086
func TestNamesAreNoTenants(t *testing.T) {
	s := newSite(t, `
identity:
  sources: [{api_key: {header: X-API-Key}}]
  missing: {plan: anonymous}
  invalid: {deny: 401}
plans: {anonymous: {limits: {few: {per: tenant, rate: 1/d, burst: 120}}}}
routes: [{name: rest, match: {prefix: /}}]
`)
	passed := 0
	for i := range 150 {
		name := fmt.Sprintf("tenant-%d", i)
		passed += s.passes(1, "rest", ip("192.0.2.9"), "X-Tenant: "+name, policies.HeaderTenant+": "+name)
	}
	if passed != 120 {
		t.Errorf("%d of 150 passed under 150 names, want 120", passed)
	}
}
