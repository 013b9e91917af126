package authz

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

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
