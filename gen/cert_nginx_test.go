package gen

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
)

const certPolicy = `version: 1
identity: {sources: [{client_cert: {}}, {api_key: {header: X-API-Key}}CHAIN], missing: {plan: p}}
plans: {p: {limits: {speed: {per: tenant, rate: 1/s, burst: 1}}}}
`

// hashOf is the hash of a certificate as NGINX sent it.
func hashOf(t *testing.T, escaped string) string {
	t.Helper()
	text, err := url.PathUnescape(escaped)
	if err != nil {
		t.Fatalf("%q: %v", escaped, err)
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || len(rest) > 0 {
		t.Fatalf("%q is no certificate alone", text)
	}
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}

// certAsker asks a site over TLS, and says what the service was sent.
func certAsker(t *testing.T, s *stack, ca *gentest.CA) func(headers []string, certs ...tls.Certificate) (status int, hash string, asked int) {
	return func(headers []string, certs ...tls.Certificate) (int, string, int) {
		t.Helper()
		transport := &http.Transport{TLSClientConfig: ca.Config(certs...)}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), "GET", "https://"+s.addr+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		s.authz.Asked()
		resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		_, heard := s.authz.Asked()
		if len(heard) == 0 || heard[0].Get("X-Sluice-Cert") == "" {
			return resp.StatusCode, "", len(heard)
		}
		return resp.StatusCode, hashOf(t, heard[0].Get("X-Sluice-Cert")), len(heard)
	}
}

// TestClientCertificate: the service is sent the certificate that NGINX has
// verified, and no other; a denial is kept for the certificate that got it.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	gentest.Binary(t)
	ca, stranger := gentest.NewCA(t), gentest.NewCA(t)
	bank, bankHash := ca.Client("bank")
	shop, shopHash := ca.Client("shop")
	forged, _ := stranger.Client("bank")
	s := startOwn(t, strings.Replace(certPolicy, "CHAIN", "", 1), `
server {
  listen LISTEN ssl; `+ca.Server(t.TempDir())+` ssl_verify_client optional_no_ca;
  include sluice/server.conf;
  location / { include sluice/routes/all.conf; proxy_pass http://APP; }
}`, nil)
	ask := certAsker(t, s, ca)
	f := func(what string, headers []string, want string, certs ...tls.Certificate) {
		t.Helper()
		if status, hash, asked := ask(headers, certs...); status != 200 || hash != want || asked != 1 {
			t.Errorf("%s: status %d, asked %d times, with certificate %q; want %q", what, status, asked, hash, want)
		}
	}
	f("a verified one", nil, bankHash, bank)
	f("another", nil, shopHash, shop)
	f("none", nil, "")
	f("one of another authority", nil, "", forged)
	f("a client's own word", []string{"X-Sluice-Cert", "-----BEGIN%20CERTIFICATE-----"}, "")
	s.authz.Answers(func(string, http.Header) gentest.Answer {
		return gentest.Deny(429, "Retry-After", "9", "X-Accel-Expires", "1")
	})
	for _, certs := range [][]tls.Certificate{{bank}, {shop}, nil} {
		if status, _, asked := ask(nil, certs...); status != 429 || asked != 1 {
			t.Errorf("the first denial of a certificate: %d, asked %d times; want 429 and 1", status, asked)
		}
		// Unless a second has gone by, the next is answered by what was kept.
		kept := false
		for range 3 {
			status, _, asked := ask(nil, certs...)
			kept = kept || asked == 0
			if status != 429 {
				t.Errorf("a later denial: %d", status)
			}
		}
		if !kept {
			t.Error("no denial was kept")
		}
	}
	s.noWarnings()
}

// TestClientCertificateChained: a certificate is enough, so that the site's own
// authenticator is not asked; without one it is, and the service hears of both.
func TestClientCertificateChained(t *testing.T) {
	t.Parallel()
	gentest.Binary(t)
	ca := gentest.NewCA(t)
	bank, hash := ca.Client("bank")
	login := &authenticator{}
	server := httptest.NewServer(login)
	t.Cleanup(server.Close)
	s := startOwnOptions(t, strings.NewReplacer("CHAIN", ", {auth_request: {location: /auth, user_header: X-Auth-Request-User}}").Replace(certPolicy),
		Options{LoginSocket: "unix:" + gentest.CacheDir(t) + ".sock"}, `
server {
  listen LISTEN ssl; `+ca.Server(t.TempDir())+` ssl_verify_client optional;
  include sluice/server.conf; include login.conf;
  location / { include sluice/routes/all.conf; proxy_pass http://APP; }
}
server { include sluice/chain.conf; include login.conf; }
`, map[string]string{"login.conf": "location = /auth { internal; proxy_pass " + server.URL + "; proxy_pass_request_body off; proxy_set_header Content-Length \"\"; }\n"})
	ask := certAsker(t, s, ca)
	if status, got, asked := ask(nil, bank); status != 200 || got != hash || asked != 1 || login.times() != 0 {
		t.Errorf("a certificate: %d, asked %d times with %q, or the authenticator was asked", status, asked, got)
	}
	if status, got, asked := ask([]string{"Cookie", "session=ann"}); status != 200 || got != "" || asked != 1 || login.times() != 1 {
		t.Errorf("a login: %d, asked %d times with %q, or the authenticator was not asked", status, asked, got)
	}
	if status, _, asked := ask(nil); status != 401 || asked != 0 {
		t.Errorf("nobody: %d, asked %d times; want the authenticator's 401", status, asked)
	}
	s.noWarnings()
}
