package trial

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sluice/policies"
)

// tokenKey is the name of the key that an Issuer signs with.
const tokenKey = "sluice-trial"

// Issuer signs tokens that a policy takes for good, as if the issuers that it
// trusts had.
type Issuer struct {
	policy *policies.Compiled
	key    ed25519.PrivateKey
}

// Tokens gives the token sources of a policy one more key, and returns the policy
// that takes what the Issuer signs. Everything else of it is as it was: use it
// for a Trial.
func Tokens(c *policies.Compiled) (*policies.Compiled, *Issuer, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make a key: %w", err)
	}
	if c.Identity == nil || !slices.ContainsFunc(c.Identity.Sources, isToken) {
		return nil, nil, errors.New("the policy takes no tokens: identity.sources has no jwt")
	}
	out, identity := *c, *c.Identity
	identity.Sources = slices.Clone(identity.Sources)
	for i := range identity.Sources {
		if s := &identity.Sources[i]; isToken(*s) {
			rules := *s.Token
			rules.Keys = append(slices.Clip(rules.Keys), policies.VerifyKey{ID: tokenKey, Algorithms: []string{"EdDSA"}, Key: public})
			s.Token = &rules
		}
	}
	out.Identity = &identity
	return &out, &Issuer{policy: &out, key: private}, nil
}

func isToken(s policies.Source) bool { return s.Kind == policies.SourceJWT }

// Token is a token with these claims, in the place where clients show it. `iss`
// chooses the source, the first when it is not said; what a source asks for
// besides (issuer, audience, expiry) is added where claims do not say it.
func (i *Issuer) Token(said map[string]string) (*Key, error) {
	claims := jwt.MapClaims{}
	for name, value := range said {
		claims[name] = value
	}
	source := i.source(said["iss"])
	if source == nil {
		return nil, fmt.Errorf("no token source of the policy has the issuer %q", said["iss"])
	}
	claims["iss"] = source.Token.Issuer
	if _, there := claims["aud"]; !there && source.Token.Audience != "" {
		claims["aud"] = source.Token.Audience
	}
	claims["exp"] = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["kid"] = tokenKey
	text, err := token.SignedString(i.key)
	if err != nil {
		return nil, fmt.Errorf("cannot sign a token: %w", err)
	}
	return newKey("", text, source), nil
}

// Tenant is a token of somebody of a tenant.
func (i *Issuer) Tenant(tenant int, user string) (*Key, error) {
	for j := range i.policy.Identity.Sources {
		s := &i.policy.Identity.Sources[j]
		if !isToken(*s) || s.Token.TenantClaim == "" || user != "" && s.Token.UserClaim == "" {
			continue
		}
		claims := map[string]string{"iss": s.Token.Issuer, s.Token.TenantClaim: i.policy.Tenants[tenant].Claim}
		if user != "" {
			claims[s.Token.UserClaim] = user
		}
		return i.Token(claims)
	}
	return nil, errors.New("no token source of the policy says the tenant and the user")
}

func (i *Issuer) source(issuer string) *policies.Source {
	for j := range i.policy.Identity.Sources {
		if s := &i.policy.Identity.Sources[j]; isToken(*s) && (issuer == "" || s.Token.Issuer == issuer) {
			return s
		}
	}
	return nil
}

// claimsID tells two sets of claims apart.
func claimsID(claims map[string]string) string {
	s := ""
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		s += fmt.Sprintf("%q:%q,", name, claims[name])
	}
	return s
}
