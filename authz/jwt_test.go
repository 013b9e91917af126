package authz

import (
	"crypto/sha256"
	"strings"
	"testing"
	"time"
)

const tokenShop = `
identity:
  sources:
    - api_key: {header: Authorization, scheme: Bearer, prefix: sk_}
    - jwt: {header: Authorization, jwks_file: jwks.json, issuer: "https://id.example", audience: api,
            tenant_claim: org, user_claim: sub, scope_claim: scope, plan_claim: plan, leeway: 30s}
    - jwt: {cookie: session, jwks_file: jwks.json, issuer: "https://other.example", tenant_claim: org}
  missing: {plan: nobody}
  invalid: {deny: 401}
  unlisted: {plan: free}
plans:
  nobody: {limits: {speed: {per: ip, rate: 1/h, burst: 1}}}
  free: {limits: {speed: {per: user, rate: 1/h, burst: 2}}}
  paid: {limits: {each: {per: user, rate: 1/h, burst: 3}, all: {per: tenant, rate: 1/h, burst: 50}, words: {per: scope, rate: 1/h, burst: 100}}}
tenants:
  - {id: acme, plan: paid, claim: org-1, keys: [{id: web, sha256: hash(sk_web)}]}
  - {id: "42", plan: paid}
  - {id: gone, plan: paid, disabled: true}
  - {id: home, plan: paid, cidrs: [198.51.100.0/24]}
`

const (
	acmePaid = "allow  acme/ paid"
	refused  = "deny credential / "
	nobody   = "allow  / nobody"
)

// Every algorithm of every kind of key, found by its name and without one.
func TestTokenAlgorithms(t *testing.T) {
	t.Parallel()
	for _, algorithm := range []struct{ key, names string }{
		{"rsa", "RS256 RS384 RS512 PS256 PS384 PS512"}, {"p256", "ES256"}, {"p384", "ES384"}, {"ed", "EdDSA"}, {"secret", "HS256 HS384 HS512"},
	} {
		for alg := range strings.FieldsSeq(algorithm.names) {
			s := newTokenSite(t, tokenShop)
			key := s.issuer.key(algorithm.key)
			for _, kid := range []any{nil, algorithm.key} {
				token := s.issuer.sign(t, alg, key, map[string]any{"kid": kid}, s.claims())
				if got := s.who(bearer(token)); got != acmePaid {
					t.Errorf("%s with kid %v: %q", alg, kid, got)
				}
			}
			token := s.issuer.sign(t, alg, key, map[string]any{"kid": "another"}, s.claims())
			if got := s.who(bearer(token)); got != refused {
				t.Errorf("%s with the name of no key: %q", alg, got)
			}
			s.use(tokenShop, s.issuer.set(without(allKeys(), algorithm.key)...))
			token = s.issuer.sign(t, alg, key, nil, s.claims())
			if got := s.who(bearer(token)); got != refused {
				t.Errorf("%s without its key: %q", alg, got)
			}
		}
	}
}

func without(list []string, name string) (out []string) {
	for _, s := range list {
		if s != name {
			out = append(out, s)
		}
	}
	return out
}

func TestTokenClaims(t *testing.T) {
	t.Parallel()
	f := func(what, want string, more ...any) {
		t.Helper()
		s := newTokenSite(t, tokenShop)
		if got := s.who(bearer(s.token(more...))); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	now := newSite(t, "").clock.Now()
	f("a listed tenant", acmePaid)
	f("a listed tenant has the plan of the file", acmePaid, "plan", "free")
	f("a tenant by number", "allow  42/ paid", "org", 42)
	f("an unlisted tenant", "allow  initech/ free", "org", "initech")
	f("an id is no claim where there is one", "allow  acme/ free", "org", "acme")
	f("an unlisted tenant with a plan", "allow  initech/ paid", "org", "initech", "plan", "paid")
	f("an unlisted tenant with a plan that is none", "allow  initech/ free", "org", "initech", "plan", "gold")
	f("a user without a tenant", "allow  / free", "org", nil)
	f("nobody in particular", "allow  / free", "org", nil, "sub", nil)
	f("a disabled tenant", "deny disabled gone/ paid", "org", "gone")
	f("a tenant away from home", "deny address home/ paid", "org", "home")

	f("one of several audiences", acmePaid, "aud", []string{"web", "api"})
	f("another audience", refused, "aud", "web")
	f("no audience", refused, "aud", nil)
	f("another issuer", nobody, "iss", "https://evil.example")
	f("no issuer", nobody, "iss", nil)
	f("an issuer that is no text", refused, "iss", 1)
	f("an issuer spelled otherwise", nobody, "iss", nil, "ISS", "https://id.example")

	f("at its end, within the leeway", acmePaid, "exp", now.Add(-29*time.Second).Unix())
	f("past the leeway", refused, "exp", now.Add(-31*time.Second).Unix())
	f("without an end", refused, "exp", nil)
	f("an end that is no time", refused, "exp", "tomorrow")
	f("an end beyond all times", refused, "exp", 1e300)
	f("not yet, within the leeway", acmePaid, "nbf", now.Add(29*time.Second).Unix())
	f("not yet", refused, "nbf", now.Add(31*time.Second).Unix())

	f("a tenant that is a list", refused, "org", []string{"org-1"})
	f("a tenant that is a fraction", refused, "org", 4.5)
	f("a tenant with a line break", refused, "org", "a\r\nX-Sluice-Plan: paid")
	f("a tenant of any length", refused, "org", strings.Repeat("x", maxClaim+1))
	f("a user that is an object", refused, "sub", map[string]any{"id": 1})
	f("a scope that is a number", refused, "scope", 1)
	f("a plan that is a list", refused, "plan", []string{"paid"})
}

// The first source whose credential is present decides; a token of another
// issuer is not present.
func TestTokenSources(t *testing.T) {
	t.Parallel()
	s := newTokenSite(t, tokenShop)
	other := s.token("iss", "https://other.example", "aud", nil)
	f := func(what, want string, headers ...string) {
		t.Helper()
		if got := newTokenSite(t, tokenShop).who(headers...); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	f("a key in the same header", "allow  acme/web paid", "Authorization: Bearer sk_web")
	f("the second issuer", acmePaid, "X-Sluice-Cookie-Session: "+other)
	f("each issuer has his own place", nobody, bearer(other))
	f("past another issuer's", acmePaid, bearer(other), "X-Sluice-Cookie-Session: "+other)
	f("an opaque token is the application's own", nobody, bearer("tGzv3JOkF0XG5Qx2TlKWIA"))
	f("an encrypted one is, too", nobody, bearer("eyJhbGciOiJSU0EifQ.a.b.c.d"))
	f("a token without its scheme", nobody, "Authorization: "+s.token())
	f("unfit", refused, bearer("!"), "X-Sluice-Cookie-Session: "+other)
	f("unfit as a whole", refused, "Authorization: !")
	f("a broken one", refused, bearer("eyJhbGciOiJIUzI1NiJ9.%%%.c2ln"))
	s.ask("all", bearer(s.token("aud", "web"))).want(t, "what is asked for", 401, `WWW-Authenticate: Bearer realm="sluice"`)
}

// TestTokenCounters: whose counter it is, by user and scope, within tenants and without.
func TestTokenCounters(t *testing.T) {
	t.Parallel()
	s := newTokenSite(t, tokenShop)
	keys := func(more ...any) string { return keysOf(s.site, "all", bearer(s.token(more...))) }
	hash := func(value string) string { return string(appendHash(nil, []byte(value))) }
	f := func(what, want string, more ...any) {
		t.Helper()
		if got := keys(more...); got != want {
			t.Errorf("%s:\n%s, want\n%s", what, got, want)
		}
	}
	f("a user of a tenant", "sluice:{acme}:all: sluice:{acme}:each:user="+hash("ann")+" sluice:{acme}:words:user="+hash("ann"))
	f("a scope, in any order", "sluice:{acme}:all: sluice:{acme}:each:user="+hash("ann")+" sluice:{acme}:words:scope="+hash("read write"), "scope", "write  read write")
	f("a scope that is a list", "sluice:{acme}:all: sluice:{acme}:each:user="+hash("bob")+" sluice:{acme}:words:scope="+hash("read write"), "scope", []string{"write", "read"}, "sub", "bob")
	both := newTokenSite(t, strings.Replace(tokenShop, "words: {per: scope,", "words: {per: [scope, ip, tenant],", 1))
	if got, want := keysOf(both.site, "all", bearer(both.token("scope", "read"))), "sluice:{acme}:all: sluice:{acme}:each:user="+hash("ann")+" sluice:{acme}:words:scope="+hash("read")+",ip=192.0.2.1"; got != want {
		t.Errorf("several together:\n%s, want\n%s", got, want)
	}
	f("no user", "sluice:{acme}:all: sluice:{acme}:each: sluice:{acme}:words:", "sub", nil)
	f("an unlisted tenant", "sluice:{unlisted"+hash("initech")+"}:speed:user="+hash("ann"), "org", "initech")
	f("a user on his own", "sluice:{user"+hash("ann")+"}:speed:user="+hash("ann"), "org", nil)
	f("nobody in particular", "sluice:{ip=192.0.2.1}:speed:", "org", nil, "sub", nil)
	// Many tokens of one user are one user.
	passed := 0
	for n := range 10 {
		passed += s.passes(1, "all", bearer(s.token("jti", n, "sub", "carl")))
	}
	if passed != 3 {
		t.Errorf("%d tokens of one user passed, want 3", passed)
	}
}

// A token is remembered, and is good no longer than its own end, than the keys,
// or than its tenant.
func TestTokenMemory(t *testing.T) {
	t.Parallel()
	s := newTokenSite(t, tokenShop)
	token := bearer(s.token("exp", s.clock.Now().Add(time.Minute).Unix()))
	for range 2 {
		if got := s.who(token); got != acmePaid {
			t.Errorf("a good token: %q", got)
		}
	}
	s.clock.Advance(89 * time.Second)
	if got := s.who(token); got != acmePaid {
		t.Errorf("within the leeway: %q", got)
	}
	s.clock.Advance(2 * time.Second)
	if got := s.who(token); got != refused {
		t.Errorf("after its end: %q", got)
	}
	// Rotation: the key is gone, and with it what it had signed.
	token = bearer(s.token("sub", "bob"))
	if got := s.who(token); got != acmePaid {
		t.Errorf("a new token: %q", got)
	}
	s.use(tokenShop, s.issuer.set("rsa"))
	if got := s.who(token); got != refused {
		t.Errorf("its key is gone: %q", got)
	}
	s.use(strings.Replace(tokenShop, "{id: acme,", "{id: acme, disabled: true,", 1), s.issuer.set(allKeys()...))
	if got := s.who(token); got != "deny disabled acme/ paid" {
		t.Errorf("its tenant is disabled: %q", got)
	}
}

// Bad tokens are counted by why, and another issuer's are no fault.
func TestTokenFaults(t *testing.T) {
	t.Parallel()
	s := newTokenSite(t, tokenShop)
	now := s.clock.Now()
	for why, token := range map[string]string{
		"malformed":   "eyJhbGciOiJIUzI1NiJ9.%%%.c2ln",
		"unknown_key": s.issuer.sign(t, "EdDSA", s.issuer.ed, map[string]any{"kid": "gone"}, s.claims()),
		"signature":   s.issuer.sign(t, "HS256", []byte("another secret"), map[string]any{"kid": "secret"}, s.claims()),
		"expired":     s.token("exp", now.Add(-time.Hour).Unix()),
		"not_yet":     s.token("nbf", now.Add(time.Hour).Unix()),
		"audience":    s.token("aud", "web"),
		"claims":      s.token("exp", nil),
		"":            s.token("iss", "https://other.example"),
	} {
		before := map[string]uint64{}
		for f := range s.engine.counters.tokens {
			before[tokenFault(f).String()] += s.engine.counters.tokens[f].Load()
		}
		s.who(bearer(token))
		for f := range s.engine.counters.tokens {
			if name := tokenFault(f).String(); (s.engine.counters.tokens[f].Load() != before[name]) != (name == why && name != "") {
				t.Errorf("a token that is %q is counted as %q", why, name)
			}
		}
	}
	if got := s.who(bearer(s.token("org", []string{"a"}))); got != refused {
		t.Errorf("a tenant that is a list: %q", got)
	}
	if n := s.engine.counters.tokens[faultClaims].Load(); n != 2 {
		t.Errorf("%d tokens with bad claims, want 2", n)
	}
}

// A token whose tenant is refused is refused, whatever plan it names.
func TestTokenUnlistedDenied(t *testing.T) {
	t.Parallel()
	s := newTokenSite(t, strings.Replace(tokenShop, "unlisted: {plan: free}", "unlisted: {deny: 403}", 1))
	d := s.decide("all", bearer(s.token("org", "initech", "plan", "paid")))
	if d.Verdict != Deny || d.Status != 403 || d.Reason != ReasonCredential {
		t.Errorf("unlisted: %v %d %v; want 403 for its credential", d.Verdict, d.Status, d.Reason)
	}
}

// A token whose end is far is looked at again after a day.
func TestTokenKept(t *testing.T) {
	t.Parallel()
	s := newTokenSite(t, tokenShop)
	token := bearer(s.token("exp", s.clock.Now().Add(1000*time.Hour).Unix()))
	tokens := s.engine.state.Load().sources[1].tokens
	s.who(token)
	sum := sha256.Sum256([]byte(strings.TrimPrefix(token, "Authorization: Bearer ")))
	if e := tokens.known.Find(&sum); e == nil || !e.Until.Equal(s.clock.Now().Add(tokenKept)) {
		t.Errorf("it is known as %+v", e)
	}
}
