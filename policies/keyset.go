package policies

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
)

// VerifyKey is one key of a set (RFC 7517) that signatures of tokens are held
// against.
type VerifyKey struct {
	// ID is its `kid`; empty: it has none, and any token may be signed with it.
	ID string
	// Algorithms are those that it verifies: all of one family, told by the key
	// and never by the token.
	Algorithms []string
	// Key is a *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey; a []byte is
	// a shared secret.
	Key any
}

const (
	// maxVerifyKeys are the most keys of a set: a token that names none is tried
	// with each.
	maxVerifyKeys = 100
	// minRSA and maxRSA are the sizes of RSA keys, in bits: shorter ones are
	// broken, longer ones cost too much for every forged token.
	minRSA, maxRSA = 2048, 8192
	// minSecret is the shortest shared secret, in bytes: that of HS256.
	minSecret = 32
)

// jsonKey is a key as it stands in the file. Its text is never shown.
type jsonKey struct {
	Type       string   `json:"kty"`
	ID         string   `json:"kid"`
	Use        string   `json:"use"`
	Operations []string `json:"key_ops"`
	Algorithm  string   `json:"alg"`
	Curve      string   `json:"crv"`
	N          string   `json:"n"`
	E          string   `json:"e"`
	X          string   `json:"x"`
	Y          string   `json:"y"`
	K          string   `json:"k"`
	D          string   `json:"d"`
}

// parseKeySet reads a set of keys. Keys for other purposes, and of kinds that
// are unknown here, are passed over. The error names a key by its place alone.
func parseKeySet(text []byte) ([]VerifyKey, error) {
	var set struct {
		Keys *[]json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, plainJSON(err)
	}
	switch {
	case set.Keys == nil:
		return nil, errors.New(`it has no "keys"; want a JSON Web Key Set such as {"keys": [...]}`)
	case len(*set.Keys) > maxVerifyKeys:
		return nil, fmt.Errorf("it has %d keys; want at most %d", len(*set.Keys), maxVerifyKeys)
	}
	var keys []VerifyKey
	for i, raw := range *set.Keys {
		var j jsonKey
		if err := json.Unmarshal(raw, &j); err != nil {
			return nil, fmt.Errorf("keys[%d] is no key; want a JSON object with kty", i)
		}
		if !j.verifies() {
			continue
		}
		k, err := j.key()
		if err != nil {
			return nil, fmt.Errorf("keys[%d] %w", i, err)
		}
		if len(k.Algorithms) > 0 {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// plainJSON is an error of encoding/json without any of the text: a secret may
// stand in it.
func plainJSON(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return &offsetError{errors.New("it is not JSON from here on; want a JSON Web Key Set"), max(0, int(syntax.Offset)-1)}
	}
	return errors.New("it is no JSON Web Key Set; want a JSON object with a list of keys")
}

// offsetError is an error about one byte of a file.
type offsetError struct {
	error
	offset int
}

// verifies tells whether the key is there for signatures.
func (j *jsonKey) verifies() bool {
	return (j.Use == "" || j.Use == "sig") && (j.Operations == nil || slices.Contains(j.Operations, "verify"))
}

// key reads a key. One of an unknown kind has no algorithms.
func (j *jsonKey) key() (VerifyKey, error) {
	if j.D != "" {
		return VerifyKey{}, errors.New("holds its private half, with which anybody could sign; want the public one alone, and another pair")
	}
	k := VerifyKey{ID: j.ID}
	var err error
	switch j.Type {
	case "RSA":
		k.Key, err = j.rsa()
		k.Algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case "EC":
		k.Key, k.Algorithms, err = j.ec()
	case "OKP":
		k.Key, k.Algorithms, err = j.edwards()
	case "oct":
		k.Key, k.Algorithms, err = j.secret()
	case "":
		err = errors.New("has no kty; want RSA, EC, OKP or oct")
	}
	if err != nil {
		return VerifyKey{}, err
	}
	if j.Algorithm != "" {
		k.Algorithms = slices.DeleteFunc(k.Algorithms, func(a string) bool { return a != j.Algorithm })
	}
	return k, nil
}

func (j *jsonKey) rsa() (any, error) {
	n, err := number64("n", j.N)
	if err != nil {
		return nil, err
	}
	e, err := number64("e", j.E)
	if err != nil {
		return nil, err
	}
	switch {
	case n.BitLen() < minRSA || n.BitLen() > maxRSA:
		return nil, fmt.Errorf("is an RSA key of %d bits; want %d to %d", n.BitLen(), minRSA, maxRSA)
	case n.Bit(0) == 0 || e.Bit(0) == 0 || e.BitLen() < 2 || e.BitLen() > 31:
		return nil, errors.New("is no RSA key; want an odd modulus, and an odd exponent from 3 on, such as AQAB")
	}
	return &rsa.PublicKey{N: n, E: int(e.Int64())}, nil
}

func (j *jsonKey) ec() (any, []string, error) {
	var curve elliptic.Curve
	var algorithms []string
	switch j.Curve {
	case "P-256":
		curve, algorithms = elliptic.P256(), []string{"ES256"}
	case "P-384":
		curve, algorithms = elliptic.P384(), []string{"ES384"}
	case "P-521":
		curve, algorithms = elliptic.P521(), []string{"ES512"}
	default:
		return nil, nil, nil // such as secp256k1
	}
	point := []byte{4}
	for _, part := range []struct{ name, text string }{{"x", j.X}, {"y", j.Y}} {
		b, err := bytes64(part.name, part.text)
		if err != nil {
			return nil, nil, err
		}
		point = append(point, b...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(curve, point)
	if err != nil {
		return nil, nil, fmt.Errorf("is no point of the curve %s; want x and y of the public key, in full length", j.Curve)
	}
	return key, algorithms, nil
}

func (j *jsonKey) edwards() (any, []string, error) {
	if j.Curve != "Ed25519" {
		return nil, nil, nil // such as X25519, which signs nothing
	}
	x, err := bytes64("x", j.X)
	if err != nil {
		return nil, nil, err
	}
	if len(x) != ed25519.PublicKeySize {
		return nil, nil, fmt.Errorf("has an x of %d bytes; want %d", len(x), ed25519.PublicKeySize)
	}
	return ed25519.PublicKey(x), []string{"EdDSA"}, nil
}

func (j *jsonKey) secret() (any, []string, error) {
	k, err := bytes64("k", j.K)
	if err != nil {
		return nil, nil, err
	}
	if len(k) < minSecret {
		return nil, nil, fmt.Errorf("is a secret of %d bytes, which can be guessed; want at least %d", len(k), minSecret)
	}
	algorithms := []string{"HS256"}
	if len(k) >= 48 {
		algorithms = append(algorithms, "HS384")
	}
	if len(k) >= 64 {
		algorithms = append(algorithms, "HS512")
	}
	return k, algorithms, nil
}

// bytes64 reads base64url without padding, and never shows what it read.
func bytes64(name, text string) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("has no %s; want it in base64url, without padding", name)
	}
	return b, nil
}

func number64(name, text string) (*big.Int, error) {
	b, err := bytes64(name, text)
	if err != nil {
		return nil, err
	}
	return new(big.Int).SetBytes(b), nil
}
