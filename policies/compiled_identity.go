package policies

import (
	"time"
)

// Identity says which credentials count.
type Identity struct {
	Sources  []Source
	Login    *Login // the site's own authenticator; nil: there is none
	Missing  Outcome
	Invalid  Outcome
	Unlisted Outcome
}

// Login is the site's own authenticator, asked when no other credential is shown.
type Login struct {
	Location     string // of the site, which auth_request asks
	UserHeader   string // of its answer; empty: it names nobody
	TenantHeader string
}

// Outcome is a plan (an index of Compiled.Plans), or a refusal.
type Outcome struct {
	Plan   int // -1: refuse
	Status int // 401 or 403 when refused
}

// SourceKind is a kind of credential.
type SourceKind uint8

// The kinds of credentials.
const (
	SourceAPIKey SourceKind = iota
	SourceJWT
	SourceCert // the client's certificate, which NGINX has verified
)

// Carrier is the part of a request that a value is taken from.
type Carrier uint8

// The parts of a request.
const (
	CarrierHeader Carrier = iota
	CarrierQuery
	CarrierCookie
)

// Source is one place of credentials.
type Source struct {
	Kind    SourceKind
	Carrier Carrier // of an API key or token
	Name    string  // of the header, parameter or cookie
	Scheme  string  // cut off in front, with one space
	Prefix  string  // what a value of ours begins with, after the scheme
	Token   *TokenRules
}

// TokenRules say which signed tokens are good, and what they tell. Names of
// claims are empty where the policy names none.
type TokenRules struct {
	Issuer      string
	Audience    string // empty: any
	TenantClaim string
	UserClaim   string
	ScopeClaim  string
	PlanClaim   string
	Leeway      time.Duration // of clocks
	Keys        []VerifyKey
}
