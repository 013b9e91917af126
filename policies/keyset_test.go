package policies

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

const (
	// Keys of RFC 7517 and RFC 8037.
	goodEC  = `{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","kid":"1"}`
	goodRSA = `{"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}`
	goodOKP = `{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
	goodOct = `{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow","use":"sig"}`
)

func TestKeySet(t *testing.T) {
	t.Parallel()
	f := func(what, text, want string) {
		t.Helper()
		keys, err := parseKeySet([]byte(text))
		got := ""
		for _, k := range keys {
			got += "; " + k.ID + " " + strings.Join(k.Algorithms, " ")
		}
		if err != nil {
			got = "; " + err.Error()
		}
		if got = strings.TrimPrefix(got, "; "); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	with := func(key, old, new string) string { return set(strings.Replace(key, old, new, 1)) }
	f("all kinds", set(goodEC, goodRSA, goodOKP, goodOct), "1 ES256; 2011-04-29 RS256;  EdDSA;  HS256 HS384 HS512")
	f("RSA for all", with(goodRSA, `"alg":"RS256",`, ""), "2011-04-29 RS256 RS384 RS512 PS256 PS384 PS512")
	f("none", set(), "")
	f("for encryption", with(goodOct, `"use":"sig"`, `"use":"enc"`), "")
	f("for something else", with(goodOct, `"use":"sig"`, `"key_ops":["wrapKey"]`), "")
	f("to verify", with(goodOct, `"use":"sig"`, `"key_ops":["sign","verify"]`), " HS256 HS384 HS512")
	f("an algorithm of another kind", with(goodRSA, "RS256", "HS256"), "")
	f("an unknown kind", set(`{"kty":"AKP","pub":"x"}`, goodOKP), " EdDSA")
	f("an unknown curve", with(goodEC, "P-256", "secp256k1"), "")
	f("a curve that signs nothing", with(goodOKP, "Ed25519", "X25519"), "")
	f("more than we know", with(goodOKP, `"crv"`, `"x5t#S256":"a","crv"`), " EdDSA")

	f("no kind", with(goodEC, `"kty":"EC",`, ""), "keys[0] has no kty; want RSA, EC, OKP or oct")
	f("another curve's point", with(goodEC, "P-256", "P-384"), "keys[0] is no point of the curve P-384; want x and y of the public key, in full length")
	f("no point", with(goodEC, "MKB", "MKC"), "keys[0] is no point of the curve P-256; want x and y of the public key, in full length")
	f("no y", with(goodEC, `"y"`, `"z"`), "keys[0] has no y; want it in base64url, without padding")
	f("padding", with(goodOKP, "URo", "URo="), "keys[0] has no x; want it in base64url, without padding")
	f("a short x", with(goodOKP, "11qY", ""), "keys[0] has an x of 29 bytes; want 32")
	f("a private key", with(goodOKP, `"crv"`, `"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","crv"`), "keys[0] holds its private half, with which anybody could sign; want the public one alone, and another pair")
	f("a short modulus", with(goodRSA, "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbf", ""), "keys[0] is an RSA key of 1700 bits; want 2048 to 8192")
	f("an even exponent", with(goodRSA, "AQAB", "AQAC"), "keys[0] is no RSA key; want an odd modulus, and an odd exponent from 3 on, such as AQAB")
	f("an exponent of one", with(goodRSA, "AQAB", "AQ"), "keys[0] is no RSA key; want an odd modulus, and an odd exponent from 3 on, such as AQAB")
	f("a short secret", set(`{"kty":"oct","k":"c2VjcmV0"}`), "keys[0] is a secret of 6 bytes, which can be guessed; want at least 32")
	f("no keys", `{"Key":[]}`, `it has no "keys"; want a JSON Web Key Set such as {"keys": [...]}`)
	f("a key alone", goodEC, `it has no "keys"; want a JSON Web Key Set such as {"keys": [...]}`)
	f("a list", "["+goodEC+"]", "it is no JSON Web Key Set; want a JSON object with a list of keys")
	f("a key that is none", set(`"x"`), "keys[0] is no key; want a JSON object with kty")
	f("no JSON", "<html>", "it is not JSON from here on; want a JSON Web Key Set")
	f("nothing", "", "it is not JSON from here on; want a JSON Web Key Set")
	f("too many", set(strings.Split(strings.Repeat(goodOKP+" ", 101), " ")[:101]...), "it has 101 keys; want at most 100")
}

// What is wrong with a set of keys stands in its own file, at its own line, and
// without a word of the secret.
func TestKeySetFindings(t *testing.T) {
	t.Parallel()
	const secret = "AyM1SysPpbyDfgZld3umj1qz"
	policy := "version: 1\nidentity:\n  sources: [{jwt: {header: Authorization, jwks_file: k.json, issuer: i}}]\n  missing: {deny: 401}\n"
	f := func(text, want string) {
		t.Helper()
		_, found := Parse("policy.yaml", []byte(policy), func(FileName) ([]byte, error) { return []byte(text), nil })
		if len(found) != 1 || found[0].String() != want {
			t.Errorf("%q: %v, want %s", text, found, want)
		}
		if strings.Contains(fmt.Sprint(found), secret) {
			t.Errorf("the secret is in %v", found)
		}
	}
	const path = ": identity.sources[0].jwt.jwks_file: "
	f(`{"keys":[]}`, "k.json"+path+"it has no key that verifies signatures, so no token is ever good; want at least one [warning key-set]")
	f("{\"keys\":[\n{\"kty\":\"oct\",\"k\":\""+secret+"\",}]}", "k.json:2:45"+path+"it is not JSON from here on; want a JSON Web Key Set [key-set]")
	f(`{"keys":[{"kty":"oct","k":"`+secret+`"}]}`, "k.json"+path+"keys[0] is a secret of 18 bytes, which can be guessed; want at least 32 [key-set]")
	f(`{"keys":[{"kty":"oct","k":"`+secret+`!"}]}`, "k.json"+path+"keys[0] has no k; want it in base64url, without padding [key-set]")
}

// FuzzKeySet reads any text. What is read can be used, and an error says nothing
// of a secret.
func FuzzKeySet(f *testing.F) {
	for _, k := range []string{goodEC, goodRSA, goodOKP, goodOct, `{"kty":"oct","k":7}`, ""} {
		f.Add([]byte(`{"keys":[` + k + `]}`))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeySet(text)
		if err != nil && len(err.Error()) > 200 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		for _, k := range keys {
			if k.Key == nil || len(k.Algorithms) == 0 {
				t.Errorf("a key that verifies nothing: %+v", k)
			}
			if secret, ok := k.Key.([]byte); ok && err != nil && strings.Contains(err.Error(), base64.RawURLEncoding.EncodeToString(secret)) {
				t.Error("the secret is in the error")
			}
		}
	})
}
