package authz

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/golang-jwt/jwt/v5"

	"sluice/authz/memo"
	"sluice/policies"
)

const (
	// maxClaim is the longest name of a tenant or user in a token, in bytes.
	maxClaim = 256
	// tokenKept is the longest that a token is believed without a look at its
	// signature, however far its own end is.
	tokenKept = 24 * time.Hour
)

// tokens judges the signed tokens of one source. Those that were good are known
// by their hashes: only who has good tokens can push others out of the table. It
// belongs to one policy with its keys, and ends with it.
type tokens struct {
	rules      *policies.TokenRules
	algorithms []string // of all keys
	known      *memo.Table[person]
}

func newTokens(rules *policies.TokenRules) *tokens {
	t := &tokens{rules: rules, algorithms: []string{}, known: memo.New[person]()}
	for _, k := range rules.Keys {
		t.algorithms = append(t.algorithms, k.Algorithms...)
	}
	return t
}

// identifyToken is who a token says it is. present is false when the value is no
// token, or one of another issuer: then it is not for this source.
func (b *bound) identifyToken(t *tokens, value []byte, c client, d *Decision) (id identity, present, ok bool) {
	if string(value) == policies.InvalidCredential || len(value) > policies.MaxToken {
		id, ok = b.badToken(faultMalformed, d)
		return id, true, ok
	}
	sum := sha256.Sum256(value)
	if known := t.known.Find(&sum); known != nil && d.now.Before(known.Until) {
		id, ok = b.identifyPerson(&known.Value, c, d)
		return id, true, ok
	}
	// From here on it allocates: a token comes here once.
	p, until, fault := t.verify(b, value, d.now)
	switch fault {
	case faultNone:
	case faultForeign:
		return identity{}, false, true
	default:
		id, ok = b.badToken(fault, d)
		return id, true, ok
	}
	if most := d.now.Add(tokenKept); until.After(most) {
		until = most
	}
	fresh := &memo.Entry[person]{Key: sum, Until: until, Value: p}
	t.known.Add(fresh, d.now)
	id, ok = b.identifyPerson(&fresh.Value, c, d)
	return id, true, ok
}

// badToken counts a token that is not good: operators want to know why, after a
// rotation above all.
func (b *bound) badToken(fault tokenFault, d *Decision) (identity, bool) {
	if b.faults != nil {
		b.faults[fault].Add(1)
	}
	return b.outcome(b.policy.Identity.Invalid, true, d)
}

// verify checks everything about a token, and says until when it is good.
func (t *tokens) verify(b *bound, value []byte, now time.Time) (p person, until time.Time, fault tokenFault) {
	text := string(value)
	switch issuer, fault := issuerOf(text); {
	case fault != faultNone:
		return person{}, time.Time{}, fault
	case issuer != t.rules.Issuer:
		return person{}, time.Time{}, faultForeign
	}
	claims := jwt.MapClaims{}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(t.algorithms), jwt.WithIssuer(t.rules.Issuer), jwt.WithExpirationRequired(),
		jwt.WithLeeway(t.rules.Leeway), jwt.WithTimeFunc(func() time.Time { return now }),
		jwt.WithStrictDecoding(), jwt.WithJSONNumber(),
	}
	if t.rules.Audience != "" {
		options = append(options, jwt.WithAudience(t.rules.Audience))
	}
	if _, err := jwt.NewParser(options...).ParseWithClaims(text, claims, t.keysFor); err != nil {
		return person{}, time.Time{}, faultOf(err)
	}
	end, err := claims.GetExpirationTime()
	if err != nil {
		return person{}, time.Time{}, faultClaims
	}
	p, ok := t.personOf(b, claims)
	if !ok {
		return person{}, time.Time{}, faultClaims
	}
	return p, end.Add(t.rules.Leeway), faultNone
}

// issuerOf is who a token says has made it, before anything is believed. What
// has not the shape of a signed token is nobody's, such as the application's own
// opaque tokens.
func issuerOf(text string) (string, tokenFault) {
	head, rest, _ := strings.Cut(text, ".")
	payload, signature, three := strings.Cut(rest, ".")
	if !three || strings.Contains(signature, ".") || !strings.HasPrefix(head, "eyJ") {
		return "", faultForeign
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", faultMalformed
	}
	claims := map[string]json.RawMessage{} // not a struct: it would take ISS for iss
	issuer := ""
	if json.Unmarshal(raw, &claims) != nil {
		return "", faultMalformed
	}
	if said, there := claims["iss"]; there && json.Unmarshal(said, &issuer) != nil {
		return "", faultMalformed
	}
	return issuer, faultNone
}

// keysFor are the keys that a token may be signed with: of the name that it
// gives, or of none, and of a kind that verifies its algorithm. So a public key
// never serves as a shared secret, whatever the token says.
func (t *tokens) keysFor(token *jwt.Token) (any, error) {
	if _, there := token.Header["crit"]; there {
		return nil, faultMalformed // what must be understood is not
	}
	id, named := token.Header["kid"].(string)
	set := jwt.VerificationKeySet{}
	for _, k := range t.rules.Keys {
		if slices.Contains(k.Algorithms, token.Method.Alg()) && (!named || k.ID == "" || k.ID == id) {
			set.Keys = append(set.Keys, k.Key)
		}
	}
	if len(set.Keys) == 0 {
		return nil, faultKey
	}
	return set, nil
}

// personOf is who the claims name; false when they are no names.
func (t *tokens) personOf(b *bound, claims jwt.MapClaims) (person, bool) {
	tenant, ok := claimOf(claims, t.rules.TenantClaim)
	if !ok || bytes.IndexFunc(tenant, unicode.IsControl) >= 0 {
		return person{}, false // it is shown to the upstream, in a header
	}
	user, ok := claimOf(claims, t.rules.UserClaim)
	if !ok {
		return person{}, false
	}
	p := b.newPerson(tenant, user)
	if p.scope, ok = scopeOf(claims, t.rules.ScopeClaim); !ok {
		return person{}, false
	}
	plan, ok := claimOf(claims, t.rules.PlanClaim)
	if i, known := b.policy.PlanNamed(string(plan)); known {
		p.plan = i
	}
	if p.listed < 0 {
		p.unlist() // once, for all that he asks
	}
	return p, ok
}

// claimOf is a claim as a name: a text or a whole number. It is empty when the
// token has none.
func claimOf(claims jwt.MapClaims, name string) (value []byte, ok bool) {
	if name == "" {
		return nil, true
	}
	switch v := claims[name].(type) {
	case nil:
		return nil, true
	case string:
		value = []byte(v)
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return nil, false
		}
		value = []byte(v.String())
	default:
		return nil, false
	}
	return value, len(value) <= maxClaim
}

// scopeOf is what a token is for: words, as RFC 8693 has them, or a list. Their
// order means nothing.
func scopeOf(claims jwt.MapClaims, name string) ([]byte, bool) {
	if name == "" {
		return nil, true
	}
	var words []string
	switch v := claims[name].(type) {
	case nil:
	case string:
		words = strings.Fields(v)
	case []any:
		for _, entry := range v {
			word, ok := entry.(string)
			if !ok {
				return nil, false
			}
			words = append(words, word)
		}
	default:
		return nil, false
	}
	slices.Sort(words)
	return []byte(strings.Join(slices.Compact(words), " ")), true
}
