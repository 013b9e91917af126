package authz

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"
)

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
