package limit_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// TLS with an authority of our own, a client certificate, and a user's password.
func TestOpenRedisWithTLS(t *testing.T) {
	t.Parallel()
	dir := certificates(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	tlsAddr := closedAddr(t)
	_, port, _ := net.SplitHostPort(tlsAddr)
	addr := limittest.StartRedis(t, "--tls-port", port, "--tls-ca-cert-file", file("ca.pem"),
		"--tls-cert-file", file("one.pem"), "--tls-key-file", file("one.key"), "--tls-auth-clients", "yes")
	if err := plainClient(t, addr).Do(t.Context(), "ACL", "SETUSER", "sluice", "on", ">p@ss", "~sluice:*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	ours := "&cert=" + url.QueryEscape(file("one.pem")) + "&key=" + url.QueryEscape(file("one.key"))
	ca := "ca=" + url.QueryEscape(file("ca.pem"))
	for _, c := range []struct {
		name, query string
		works       bool
	}{
		{"our authority, our certificate", ca + ours, true},
		{"named by another name", ca + ours + "&server_name=redis.test", true},
		{"unverified", "skip_verify=true" + ours, true},
		{"the system's authorities", ours[1:], false},
		{"no client certificate", ca, false},
		{"a name that is not the server's", ca + ours + "&server_name=other.test", false},
	} {
		store := openURL(t, "rediss://sluice:p%40ss@"+tlsAddr+"/?"+c.query, limit.RedisOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := store.Take(ctx, []limit.Op{speed(1)}, make([]limit.State, 1))
		cancel()
		if (err == nil) != c.works {
			t.Errorf("%s: the error is %v", c.name, err)
		}
	}
}

// certificates writes an authority and a certificate for 127.0.0.1 and redis.test.
func certificates(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	one := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "one"},
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		DNSNames: []string{"redis.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	caKey, oneKey := newKey(t), newKey(t)
	write := func(name, kind string, text []byte, err error) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: text}), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	text, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	write("ca.pem", "CERTIFICATE", text, err)
	text, err = x509.CreateCertificate(rand.Reader, one, authority, &oneKey.PublicKey, caKey)
	write("one.pem", "CERTIFICATE", text, err)
	text, err = x509.MarshalECPrivateKey(oneKey)
	write("one.key", "EC PRIVATE KEY", text, err)
	return dir
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
