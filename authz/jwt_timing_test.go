package authz

import (
	"strings"
	"testing"
)

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
