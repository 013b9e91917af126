//go:build !race

package authz

import (
	"strings"
	"testing"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// A decision over the store of one process allocates nothing: not to read the
// question, find the key, name the counters, charge them or write the answer.
func TestDecisionsAllocateNothing(t *testing.T) {
	policy := shop + `
limits:
  backend: {per: global, rate: 1000000/s, burst: 1000000}
  each: {per: [ip, route, {header: X-User}], rate: 1000000/s, burst: 1000000}
responses: {headers: [ratelimit, ratelimit-3, x-ratelimit], retry_after_jitter: 10%}
`
	f := func(what, route string, headers ...string) {
		t.Helper()
		s := newSiteOn(t, policy, newSite(t, "").clock, limit.NewMemory(limit.MemoryOptions{}))
		s.quiet() // what is logged is another goroutine's
		s.head(route, headers).CopyTo(&s.ctx.Request.Header)
		for range 100 { // buckets and buffers exist
			s.handler.serve(&s.ctx)
		}
		if n := testing.AllocsPerRun(1000, func() {
			s.ctx.Response.Reset()
			s.handler.serve(&s.ctx)
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
	f("allowed by a key", "rest", key("sk_web"))
	f("by a bearer", "rest", "Authorization: Bearer sk_web")
	f("nobody, denied", "rest")
	f("denied over IPv6", "search", ip("2001:db8:1:2:3:4:5:6"))
	f("a header that counts", "rest", key("sk_web"), "X-Sluice-Header-X-User: somebody")
	f("another method of the location", "read", method("POST"), key("sk_web"))
	f("a cascade", "reports", key("sk_web"))
	f("a bad key", "rest", key("sk_nobody"))
	f("a plan that may not", "reports")
	f("exempt", "rest", "X-Sluice-Exempt: 1")
	f("an exempt route", "free_for_all")
	f("no question", "/other")
}

// Nor does one by a certificate, or by a key that simulates.
func TestOtherCredentialsAllocateNothing(t *testing.T) {
	f := func(what, policy string, status int, headers ...string) {
		t.Helper()
		s := newSite(t, policy)
		s.quiet()
		s.head("all", headers).CopyTo(&s.ctx.Request.Header)
		for range 100 {
			s.handler.serve(&s.ctx)
		}
		if n := testing.AllocsPerRun(1000, func() {
			s.ctx.Response.Reset()
			s.handler.serve(&s.ctx)
		}); n != 0 || s.ctx.Response.StatusCode() != status {
			t.Errorf("%s: status %d, %v allocations, want %d and 0", what, s.ctx.Response.StatusCode(), n, status)
		}
	}
	f("a key that simulates", trialShop, 403, key("sk_speed"), "X-Sluice-Request: 0123456789abcdef")
	pem, hash := newCert(t, "bank")
	f("a certificate", strings.ReplaceAll(strings.Replace(certShop, "CERT", hash, 1), "rate: 1/h, burst: 3", "rate: 1000000/s, burst: 1000000"), 204, cert(pem))
}

// Nor does one by a key that the directory knows.
func TestFoundTenantsAllocateNothing(t *testing.T) {
	server := limittest.StartServer(t)
	s, put := foundSite(t, server, shop+"limits: {backend: {per: global, rate: 1000000/s, burst: 1000000}}\n")
	put("tenant:umbrella", "plan", "pro")
	put(keyName("sk_umbrella"), "tenant", "umbrella", "id", "umbrella-web")
	put("tenant:special", "plan", "pro", "override:speed:burst", "100")
	put(keyName("sk_special"), "tenant", "special", "id", "special-web")
	put(keyName("sk_plan"), "tenant", "special", "id", "special-free", "plan", "free")
	put(keyName("sk_try"), "tenant", "special", "id", "special-try", "simulate", "org")
	put(keyName("sk_bad"), "tenant", "special", "id", "special-bad", "plan", "gold")
	for k, tenant := range map[string]string{"umbrella": "umbrella", "special": "special", "plan": "special", "try": "special", "bad": "special"} {
		var r Request
		var d Decision
		r.Read(s.head("rest", []string{key("sk_" + k)}))
		s.engine.Decide(&r, &d)
		if n := testing.AllocsPerRun(1000, func() { s.engine.Decide(&r, &d) }); n != 0 || d.Tenant != tenant {
			t.Errorf("%s: %v allocations for %q, want 0", k, n, d.Tenant)
		}
	}
}

// Nor does one by a token, a login or a certificate whose tenant it knows; nor by a
// token that it knows to be nobody's.
func TestFoundPeopleAllocateNothing(t *testing.T) {
	server := limittest.StartServer(t)
	bank, hash := newCert(t, "bank")
	s := newTokenSite(t, tokenShop)
	put := s.direct(server)
	put("tenant:umbrella", "plan", "paid")
	put("tenant:globex", "plan", "paid", "claim", "org-42")
	put("claim:org-42", "tenant", "globex")
	put("cert:"+hash, "tenant", "globex")
	policy := strings.Replace(tokenShop, "  missing:", "    - client_cert: {}\n    - auth_request: {location: /auth, user_header: X-User, tenant_header: X-Org}\n  missing:", 1)
	s.use(strings.ReplaceAll(policy, "burst: ", "burst: 10000"), s.issuer.set(allKeys()...))
	for what, c := range map[string]struct {
		tenant  string
		headers []string
	}{
		"by id": {"umbrella", []string{bearer(s.token("org", "umbrella"))}}, "by claim": {"globex", []string{bearer(s.token("org", "org-42"))}},
		"unlisted": {"initech", []string{bearer(s.token("org", "initech"))}}, "a login": {"umbrella", login("ann", "umbrella")},
		"a certificate": {"globex", []string{cert(bank)}},
	} {
		var r Request
		var d Decision
		r.Read(s.head("all", c.headers))
		for range 10 {
			s.engine.Decide(&r, &d)
		}
		if n := testing.AllocsPerRun(1000, func() { s.engine.Decide(&r, &d) }); n != 0 || d.Tenant != c.tenant || d.Verdict != Allow {
			t.Errorf("%s: %v allocations for %q (%s), want 0 for %q", what, n, d.Tenant, d.Verdict, c.tenant)
		}
	}
}

// Nor does one that looks the client up.
func TestPlacesAllocateNothing(t *testing.T) {
	s := placedSite(t, strings.Replace(placedPolicy, "window: 3/1h", "window: 1000000/1h", 1))
	s.quiet()
	s.head("all", []string{ip("9.1.2.3")}).CopyTo(&s.ctx.Request.Header)
	if n := testing.AllocsPerRun(1000, func() {
		s.ctx.Response.Reset()
		s.handler.serve(&s.ctx)
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// Nor does one by a token that is known, whoever it names.
func TestKnownTokensAllocateNothing(t *testing.T) {
	s := newTokenSite(t, strings.ReplaceAll(tokenShop, "rate: 1/h", "rate: 1000000/s"))
	s.quiet()
	for what, token := range map[string]string{
		"listed": s.token(), "with a scope": s.token("scope", "read"), "unlisted": s.token("org", "initech"), "on his own": s.token("org", nil),
	} {
		s.head("all", []string{bearer(token)}).CopyTo(&s.ctx.Request.Header)
		for range 100 {
			s.handler.serve(&s.ctx)
		}
		if n := testing.AllocsPerRun(1000, func() {
			s.ctx.Response.Reset()
			s.handler.serve(&s.ctx)
		}); n != 0 {
			t.Errorf("%s: %v allocations, want 0", what, n)
		}
	}
}
