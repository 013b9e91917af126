package authz

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice/policies"
)

const certShop = `
identity:
  sources:
    - client_cert: {}
    - api_key: {header: X-API-Key}
  missing: {deny: 401}
  invalid: {deny: 401}
  unlisted: {plan: guest}
plans:
  guest: {limits: {speed: {per: tenant, rate: 1/h, burst: 2}}}
  partner: {limits: {speed: {per: key, rate: 1/h, burst: 3}}}
tenants:
  - {id: bank, plan: partner, cidrs: [192.0.2.0/24], cert_sha256: ["CERT"]}
  - {id: gone, plan: partner, disabled: true, cert_sha256: ["aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc"]}
  - {id: dev, plan: guest, keys: [{id: dev-1, sha256: hash(sk_dev)}]}
`

// newCert makes a certificate: as PEM, and the hash of its DER.
func newCert(t testing.TB, name string) (text, hash string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(der)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), hex.EncodeToString(sum[:])
}

// cert is a certificate as NGINX sends it.
func cert(text string) string {
	return policies.HeaderCert + ": " + strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	bank, hash := newCert(t, "bank")
	other, _ := newCert(t, "other")
	f := func(what, want string, headers ...string) {
		t.Helper()
		d := newSite(t, strings.Replace(certShop, "CERT", hash, 1)).decide("all", headers...)
		got := d.Verdict.String() + " " + d.Reason.String() + " " + d.Tenant + "/" + d.Key + " " + d.Plan
		if got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	f("a tenant's", "allow  bank/ partner", cert(bank))
	f("in capitals of hexadecimal", "allow  bank/ partner", strings.ReplaceAll(cert(bank), "%0a", "%0A"))
	f("unescaped as far as can be", "allow  bank/ partner", policies.HeaderCert+": "+strings.ReplaceAll(bank, "\n", "%0A"))
	f("away from home", "deny address bank/ partner", cert(bank), ip("198.51.100.1"))
	f("it is the first source", "allow  bank/ partner", cert(bank), key("sk_dev"))
	f("without one", "allow  dev/dev-1 guest", key("sk_dev"))
	f("not verified", "deny credential / ", policies.HeaderCert+": ")
	f("verified and nobody's", "allow  / guest", cert(other))
	const invalid = "deny credential / "
	f("no PEM", invalid, policies.HeaderCert+": MIIB")
	f("cut off", invalid, cert(bank[:len(bank)-10]))
	f("with another behind it", invalid, cert(bank+other))
	f("of another kind", invalid, cert(strings.ReplaceAll(bank, "CERTIFICATE", "PUBLIC KEY")))
	f("badly escaped", invalid, cert(bank)+"%0")
	f("worse", invalid, cert(bank)+"%zz")
	f("no base64", invalid, cert(strings.Replace(bank, "MII", "M!I", 1)))
	f("nothing within", invalid, cert("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))

	closed := newSite(t, strings.Replace(strings.Replace(certShop, "CERT", hash, 1), "unlisted: {plan: guest}", "unlisted: {deny: 403}", 1))
	closed.ask("all", cert(other)).want(t, "nobody's, and those are refused", 403, "X-Sluice-Status: 403", "X-Sluice-Reason: credential")
	closed.ask("all").want(t, "what is asked for", 401, `WWW-Authenticate: ApiKey realm="sluice"`)
}

// A certificate that no tenant has is a tenant of its own, and a tenant's counts
// for the tenant.
func TestCertificateCounters(t *testing.T) {
	t.Parallel()
	bank, hash := newCert(t, "bank")
	other, otherHash := newCert(t, "other")
	s := newSite(t, strings.Replace(certShop, "CERT", hash, 1))
	if got := keysOf(s, "all", cert(bank)); got != "sluice:{bank}:speed:" {
		t.Errorf("a tenant's: %s", got)
	}
	sum, err := hex.DecodeString(otherHash)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := keysOf(s, "all", cert(other)), "sluice:{cert"+string(appendHash(nil, sum))+"}:speed:"; got != want {
		t.Errorf("nobody's: %s, want %s", got, want)
	}
}

// FuzzCertificate reads anything. What it takes for a certificate is what the
// standard library takes out of the same PEM.
func FuzzCertificate(f *testing.F) {
	text, _ := newCert(f, "bank")
	for _, seed := range []string{url.QueryEscape(text), text, "%", "%%", "-----BEGIN CERTIFICATE-----AAAA-----END CERTIFICATE-----", pemBegin + pemEnd, ""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, escaped []byte) {
		before := bytes.Clone(escaped)
		_, der, ok := derOf([]byte("x")[:0], escaped)
		if !bytes.Equal(before, escaped) {
			t.Error("the header was changed")
		}
		plain, err := url.PathUnescape(string(escaped))
		if !ok || err != nil {
			return
		}
		if block, _ := pem.Decode([]byte(plain)); block != nil && !bytes.Equal(block.Bytes, der) && len(block.Headers) == 0 {
			t.Errorf("%q is %x, want %x", plain, der, block.Bytes)
		}
	})
}
