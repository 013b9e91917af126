package gentest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// CA signs certificates for a test.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewCA makes a certificate authority.
func NewCA(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t}
	template := certTemplate("the test's authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, key := ca.sign(template)
	var err error
	if ca.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	ca.key = key
	return ca
}

func certTemplate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

// sign makes a key and signs its certificate; without an authority, with itself.
func (ca *CA) sign(template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	ca.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		ca.t.Fatal(err)
	}
	parent, signer := ca.cert, ca.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		ca.t.Fatal(err)
	}
	return der, key
}

// Client is a certificate for a client, and the SHA-256 of it in hexadecimal.
func (ca *CA) Client(name string) (cert tls.Certificate, hash string) {
	ca.t.Helper()
	der, key := ca.sign(certTemplate(name))
	sum := sha256.Sum256(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, hex.EncodeToString(sum[:])
}

// Config trusts the authority, and shows a certificate if there is one.
func (ca *CA) Config(certs ...tls.Certificate) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	return &tls.Config{RootCAs: pool, Certificates: certs}
}

// Server writes server.crt, server.key and ca.crt into a folder, and returns the
// lines of NGINX that use them.
func (ca *CA) Server(dir string) string {
	ca.t.Helper()
	der, key := ca.sign(certTemplate("localhost"))
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		ca.t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	WriteFiles(ca.t, dir, map[string]string{
		"server.crt": text("CERTIFICATE", der), "server.key": text("PRIVATE KEY", raw), "ca.crt": text("CERTIFICATE", ca.cert.Raw),
	})
	return strings.NewReplacer("DIR", filepath.ToSlash(dir)).Replace(
		"ssl_certificate DIR/server.crt; ssl_certificate_key DIR/server.key; ssl_client_certificate DIR/ca.crt;")
}
