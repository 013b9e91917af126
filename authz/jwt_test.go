package authz

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
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

// issuer signs tokens, with a key of each kind.
type issuer struct {
	rsa    *rsa.PrivateKey
	p256   *ecdsa.PrivateKey
	p384   *ecdsa.PrivateKey
	ed     ed25519.PrivateKey
	secret []byte
}

// newIssuer makes keys once: RSA takes its time.
var newIssuer = sync.OnceValue(func() *issuer {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	var i issuer
	var err error
	i.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	must(err)
	i.p256, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	i.p384, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	must(err)
	_, i.ed, err = ed25519.GenerateKey(rand.Reader)
	must(err)
	i.secret = []byte("a secret that both sides share, of more than 64 bytes in all, as HS512 wants it")
	return &i
})

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// set is the keys as a JWKS file has them; those of other names are left out.
func (i *issuer) set(names ...string) string {
	point := func(k *ecdsa.PrivateKey) (x, y string) {
		b, err := k.PublicKey.Bytes()
		if err != nil {
			panic(err)
		}
		half := (len(b) - 1) / 2
		return b64(b[1 : 1+half]), b64(b[1+half:])
	}
	x256, y256 := point(i.p256)
	x384, y384 := point(i.p384)
	all := map[string]map[string]any{
		"rsa":    {"kty": "RSA", "n": b64(i.rsa.N.Bytes()), "e": "AQAB", "use": "sig"},
		"p256":   {"kty": "EC", "crv": "P-256", "x": x256, "y": y256},
		"p384":   {"kty": "EC", "crv": "P-384", "x": x384, "y": y384, "alg": "ES384"},
		"ed":     {"kty": "OKP", "crv": "Ed25519", "x": b64(i.ed.Public().(ed25519.PublicKey))},
		"secret": {"kty": "oct", "k": b64(i.secret)},
	}
	var keys []map[string]any
	for _, name := range names {
		all[name]["kid"] = name
		keys = append(keys, all[name])
	}
	text, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// allKeys are the names of all keys.
func allKeys() []string { return []string{"rsa", "p256", "p384", "ed", "secret"} }

func (i *issuer) key(name string) any {
	switch name {
	case "rsa":
		return i.rsa
	case "p256":
		return i.p256
	case "p384":
		return i.p384
	case "ed":
		return i.ed
	}
	return i.secret
}

// sign makes a token. A header or claim that is nil is left out.
func (i *issuer) sign(t testing.TB, alg string, key any, header, claims map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.GetSigningMethod(alg), jwt.MapClaims(claims))
	maps.Copy(token.Header, header)
	maps.DeleteFunc(token.Header, func(_ string, v any) bool { return v == nil })
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// tokenSite is a site that takes tokens.
type tokenSite struct {
	*site
	issuer *issuer
	dir    string
}

func newTokenSite(t testing.TB, policy string) *tokenSite {
	t.Helper()
	s := &tokenSite{site: newSite(t, ""), issuer: newIssuer(), dir: t.TempDir()}
	s.use(policy, s.issuer.set(allKeys()...))
	return s
}

// use swaps in a policy with these keys beside it.
func (s *tokenSite) use(policy, keys string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, "jwks.json"), []byte(keys), 0o644); err != nil {
		s.t.Fatal(err)
	}
	if err := s.engine.Swap(compileIn(s.t, s.dir, policy)); err != nil {
		s.t.Fatal(err)
	}
}

// claims are good ones, with changes.
func (s *tokenSite) claims(more ...any) map[string]any {
	c := map[string]any{"iss": "https://id.example", "aud": "api", "org": "org-1", "sub": "ann", "exp": s.clock.Now().Add(time.Hour).Unix()}
	for i := 0; i < len(more); i += 2 {
		c[more[i].(string)] = more[i+1]
	}
	return c
}

// token is a good one, with changes of its claims.
func (s *tokenSite) token(more ...any) string {
	s.t.Helper()
	return s.issuer.sign(s.t, "EdDSA", s.issuer.ed, map[string]any{"kid": "ed"}, s.claims(more...))
}

// who is what a decision says of the client.
func (s *tokenSite) who(headers ...string) string {
	s.t.Helper()
	d := s.decide("all", headers...)
	return d.Verdict.String() + " " + d.Reason.String() + " " + d.Tenant + "/" + d.Key + " " + d.Plan
}

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

// TestTokenAttacks: what is known to have opened others, and no token in the log. C119
func TestTokenAttacks(t *testing.T) {
	t.Parallel()
	s := newTokenSite(t, tokenShop)
	i := s.issuer
	public, err := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	edPublic := i.ed.Public().(ed25519.PublicKey)
	segment := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b64(text)
	}
	bare := func(header map[string]any, signature string) string {
		return segment(header) + "." + segment(s.claims()) + "." + signature
	}
	good := s.token()
	parts := strings.Split(good, ".")
	forged, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]any{"kty": "RSA", "n": b64(forged.N.Bytes()), "e": "AQAB", "kid": "rsa"}
	raw := bare(map[string]any{"alg": "EdDSA", "crit": []string{"b64"}, "b64": false}, "")
	signed, err := i.ed.Sign(nil, []byte(strings.TrimSuffix(raw, ".")), crypto.Hash(0))
	if err != nil {
		t.Fatal(err)
	}
	for what, token := range map[string]string{
		"no algorithm":                      bare(map[string]any{"alg": "none"}, ""),
		"no algorithm, in capitals":         bare(map[string]any{"alg": "nOnE"}, ""),
		"no algorithm, signed":              bare(map[string]any{"alg": "none", "kid": "ed"}, parts[2]),
		"no word of an algorithm":           bare(map[string]any{"typ": "JWT"}, parts[2]),
		"an algorithm that is a list":       bare(map[string]any{"alg": []string{"EdDSA"}}, parts[2]),
		"an unknown algorithm":              bare(map[string]any{"alg": "XX256"}, parts[2]),
		"the public key as a secret, PEM":   i.sign(t, "HS256", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), map[string]any{"kid": "rsa"}, s.claims()),
		"the public key as a secret, DER":   i.sign(t, "HS256", public, map[string]any{"kid": "rsa"}, s.claims()),
		"the modulus as a secret":           i.sign(t, "HS256", i.rsa.N.Bytes(), map[string]any{"kid": "rsa"}, s.claims()),
		"a point as a secret":               i.sign(t, "HS256", []byte(edPublic), map[string]any{"kid": "ed"}, s.claims()),
		"nothing as a secret":               i.sign(t, "HS256", []byte{}, nil, s.claims()),
		"a key of its own in the head":      i.sign(t, "RS256", forged, map[string]any{"kid": "rsa", "jwk": own}, s.claims()),
		"a key of its own elsewhere":        i.sign(t, "RS256", forged, map[string]any{"jku": "https://evil.example/jwks.json", "x5u": "https://evil.example/c"}, s.claims()),
		"a key of its own":                  i.sign(t, "RS256", forged, nil, s.claims()),
		"the name of another key":           i.sign(t, "RS256", i.rsa, map[string]any{"kid": "ed"}, s.claims()),
		"a name that is a path":             i.sign(t, "HS256", []byte{}, map[string]any{"kid": "../../../../dev/null"}, s.claims()),
		"an algorithm that the key forbids": i.sign(t, "ES256", i.p256, map[string]any{"kid": "p384"}, s.claims()),
		"what it must understand":           i.sign(t, "EdDSA", i.ed, map[string]any{"kid": "ed", "crit": []string{"exp"}}, s.claims()),
		"a payload that is not encoded":     raw + b64(signed),
		"no signature":                      parts[0] + "." + parts[1] + ".",
		"half of a signature":               parts[0] + "." + parts[1] + "." + parts[2][:len(parts[2])/2],
		"another's signature":               parts[0] + "." + parts[1] + "." + strings.Split(s.token("sub", "bob"), ".")[2],
		"other claims":                      parts[0] + "." + segment(s.claims("org", "42")) + "." + parts[2],
		"padding":                           good + "==",
		"a blank signature":                 parts[0] + "." + parts[1] + "." + b64(make([]byte, 64)),
	} {
		if got := newTokenSite(t, tokenShop).who(bearer(token)); got != refused {
			t.Errorf("%s: %q, want %q", what, got, refused)
		}
		if strings.Contains(s.log.String(), token) {
			t.Errorf("%s: the token is in the log", what)
		}
	}
	if got := s.who(bearer(good)); got != acmePaid {
		t.Errorf("the good one: %q", got)
	}
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

// FuzzToken shows anything as a token. Nothing but the token that was signed is
// a tenant's.
func FuzzToken(f *testing.F) {
	s := newTokenSite(f, tokenShop)
	good := s.token()
	for _, seed := range []string{
		good, good + ".", "eyJ.e30.", "eyJhbGciOiJub25lIn0." + strings.Split(good, ".")[1] + ".",
		"eyJhbGciOiJIUzI1NiIsImtpZCI6InJzYSJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUifQ.AAAA", "..", "!", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		s.t = t
		d := s.decide("all", bearer(token))
		if n := s.engine.Counters().Panics; n > 0 {
			t.Fatal("a decision panicked")
		}
		if d.Tenant != "" && strings.TrimSpace(token) != good {
			t.Errorf("%q is taken for %q", token, d.Tenant)
		}
	})
}

// BenchmarkKnownToken is a decision by a token that is known.
func BenchmarkKnownToken(b *testing.B) {
	s := newTokenSite(b, strings.ReplaceAll(tokenShop, "rate: 1/h", "rate: 1000000/s"))
	head := s.head("all", []string{bearer(s.token())})
	var r Request
	var d Decision
	r.Read(head)
	b.ReportAllocs()
	for b.Loop() {
		s.engine.Decide(&r, &d)
	}
	if d.Tenant != "acme" {
		b.Fatal(d.Tenant)
	}
}

// BenchmarkVerifyToken is what a token costs once.
func BenchmarkVerifyToken(b *testing.B) {
	s := newTokenSite(b, tokenShop)
	bound := s.engine.state.Load()
	for _, alg := range []struct{ name, key string }{{"EdDSA", "ed"}, {"RS256", "rsa"}, {"ES256", "p256"}, {"HS256", "secret"}} {
		b.Run(alg.name, func(b *testing.B) {
			token := []byte(s.issuer.sign(b, alg.name, s.issuer.key(alg.key), map[string]any{"kid": alg.key}, s.claims()))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, fault := bound.sources[1].tokens.verify(bound, token, s.clock.Now()); fault != faultNone {
					b.Fatal(fault)
				}
			}
		})
	}
}
