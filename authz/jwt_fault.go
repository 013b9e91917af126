package authz

import (
	"errors"

	"github.com/golang-jwt/jwt/v5"
)

// tokenFault is what is wrong with a token. It stands in for the errors of the
// library, some of which have parts of the token in them.
type tokenFault uint8

// The faults of tokens.
const (
	faultNone      tokenFault = iota
	faultForeign              // no token, or another issuer's: not for this source
	faultMalformed            // it cannot be read, or wants what is not understood
	faultKey                  // no key of the set has its name and verifies its algorithm
	faultSignature            // the signature is not the key's
	faultExpired              // it has ended
	faultEarly                // it is not good yet
	faultAudience             // it is for somebody else
	faultClaims               // a claim is missing, or is no name
	tokenFaults               // how many there are
)

// String is the fault's word in metrics; empty for what is no fault of a token.
func (f tokenFault) String() string {
	switch f {
	case faultMalformed:
		return "malformed"
	case faultKey:
		return "unknown_key"
	case faultSignature:
		return "signature"
	case faultExpired:
		return "expired"
	case faultEarly:
		return "not_yet"
	case faultAudience:
		return "audience"
	case faultClaims:
		return "claims"
	}
	return ""
}

// Error makes it an error for the library.
func (f tokenFault) Error() string { return "token refused: " + f.String() }

// faultOf is the fault that an error of the library means.
func faultOf(err error) tokenFault {
	own := faultNone
	switch {
	case err == nil:
		return faultNone
	case errors.As(err, &own):
		return own
	case errors.Is(err, jwt.ErrTokenSignatureInvalid):
		return faultSignature
	case errors.Is(err, jwt.ErrTokenExpired):
		return faultExpired
	case errors.Is(err, jwt.ErrTokenNotValidYet):
		return faultEarly
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		return faultAudience
	case errors.Is(err, jwt.ErrTokenInvalidClaims):
		return faultClaims
	}
	return faultMalformed
}
