package cmd

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"sluice/gen/gentest"
	"sluice/geo/geotest"
)

// realSite is the policy of a real site, with NGINX and the service.
type realSite struct {
	t       *testing.T
	dir     string // of the policy and of NGINX
	url     string
	service *service
	app     *app
	client  *http.Client
}

// startSite copies a policy of policies/testdata/sites, renders it and runs it.
// The test is the proxy that says who the client is. change may do something to
// the policy; ssl are lines for the server, which then speaks TLS.
func startSite(t *testing.T, name string, change func(dir, policy string) string, ssl string, flags ...string) *realSite {
	t.Helper()
	s := &realSite{t: t, dir: t.TempDir(), app: startApp(t), client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(s.client.CloseIdleConnections)
	from := "../policies/testdata/sites/"
	fill(t, from+"lists/partners.txt", filepath.Join(s.dir, "lists/partners.txt"))
	text, err := os.ReadFile(from + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(s.dir, "policy.yaml")
	fill(t, from+"jwks.json", filepath.Join(s.dir, "jwks.json"))
	write(t, policy, change(s.dir, string(text)))
	s.service = startServiceOn(t, "127.0.0.1:0", policy, "memory", flags...)
	listen := gentest.FreePort(t)
	run(t, "render", policy, "--out", s.dir, "--full", "--authz", s.service.addr, "--datagrams", s.service.datagrams,
		"--upstream", s.app.addr, "--listen", listen, "--cache-dir", gentest.CacheDir(t))
	ask, conf := filepath.Join(s.dir, "sluice/ask.conf"), filepath.Join(s.dir, "nginx.conf")
	fill(t, ask, ask, "200ms", "10s")
	write(t, filepath.Join(s.dir, "sluice/real_ip.conf"), "set_real_ip_from 127.0.0.1; real_ip_header X-Test;\n")
	s.url = "http://" + listen
	if ssl != "" {
		s.url = "https://" + listen
		fill(t, conf, conf, "listen "+listen, "listen "+listen+" ssl", "include sluice/server.conf;", ssl+"\ninclude sluice/server.conf;")
	}
	gentest.Start(t, s.dir, "nginx.conf", listen)
	return s
}

// get asks as somebody at an address.
func (s *realSite) get(path, ip string, headers ...string) answer {
	s.t.Helper()
	return ask(s.t, s.client, "GET", s.url+path, append([]string{"X-Test", ip}, headers...)...)
}

// want holds an answer against a status and a reason; an empty reason is an
// answer of the application.
func (s *realSite) want(what string, a answer, status int, reason string) {
	s.t.Helper()
	if got := a.header.Get("X-Sluice-Reason"); a.status != status || got != reason {
		s.t.Errorf("%s: %d %q, want %d %q\n%v", what, a.status, got, status, reason, a.header)
	}
}

// seen is who the application was told it was.
func (s *realSite) seen(what, want string) {
	s.t.Helper()
	if got := s.app.header("X-Sluice-Tenant") + " " + s.app.header("X-Sluice-Plan") + " " + s.app.header("X-Sluice-Priority"); got != want {
		s.t.Errorf("%s: the application was told %q, want %q", what, got, want)
	}
}

// burst asks until the answer is 429, and wants so many to pass before, and those
// that come in at a rate while it is asked.
func (s *realSite) burst(what string, burst int, rate float64, ask func() answer) {
	s.t.Helper()
	began := time.Now()
	for passed := 0; passed < 2*burst+1000; passed++ {
		a := ask()
		if a.status == 200 {
			continue
		}
		most := float64(burst) + rate*time.Since(began).Seconds() + 1
		if a.status != 429 || passed < burst || float64(passed) > most {
			s.t.Errorf("%s: %d passed, then %d %q; want %d, at most %.1f, and 429", what, passed, a.status, a.header.Get("X-Sluice-Reason"), burst, most)
		}
		if a.header.Get("Retry-After") == "" {
			s.t.Errorf("%s: no Retry-After", what)
		}
		return
	}
	s.t.Errorf("%s: nothing is refused", what)
}

// limits are what RateLimit-Policy says of a request.
func limits(a answer) string { return a.header.Get("RateLimit-Policy") }

// idP signs tokens with one key after another.
type idP struct {
	t   *testing.T
	key ed25519.PrivateKey
	kid int
}

// rotate makes a new key, and is the text of the set that has it alone.
func (p *idP) rotate() string {
	p.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		p.t.Fatal(err)
	}
	p.key, p.kid = private, p.kid+1
	return fmt.Sprintf(`{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "%d", "x": %q}]}`, p.kid, base64.RawURLEncoding.EncodeToString(public))
}

// bearer is a good token of ann's, with changes.
func (p *idP) bearer(more ...any) []string {
	p.t.Helper()
	claims := jwt.MapClaims{"iss": "https://id.example", "aud": "api", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix()}
	for i := 0; i < len(more); i += 2 {
		claims[more[i].(string)] = more[i+1]
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["kid"] = strconv.Itoa(p.kid)
	text, err := token.SignedString(p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	return []string{"Authorization", "Bearer " + text}
}

// TestSaaS is the policy of a site whose users sign in, on real programs: a probe
// for each of its rules.
func TestSaaS(t *testing.T) {
	t.Parallel()
	id := &idP{t: t}
	s := startSite(t, "saas", func(dir, policy string) string {
		write(t, filepath.Join(dir, "jwks.json"), id.rotate())
		return policy
	}, "")
	const here = "198.51.100.1"
	key := []string{"Authorization", "Bearer " + webKey}
	// Who it is.
	s.want("a key", s.get("/v1/a", here, key...), 200, "")
	s.seen("a key", "acme pro normal")
	s.want("a token of a tenant", s.get("/v1/a", here, id.bearer("org", "acme-1")...), 200, "")
	s.seen("a token of a tenant", "acme pro normal")
	a := s.get("/v1/a", here, id.bearer("org", "initech")...)
	s.want("a token of somebody else's", a, 200, "")
	s.seen("a token of somebody else's", "initech free normal")
	if want := `"monthly";q=10000;w=`; !strings.Contains(limits(a), want) || !strings.Contains(limits(a), `"speed";q=20;w=4`) || a.header.Get("X-RateLimit-Limit") != "" {
		t.Errorf("its limits are %q", limits(a))
	}
	s.want("one that names a plan", s.get("/v1/a", here, id.bearer("org", "hooli", "plan", "pro")...), 200, "")
	s.seen("one that names a plan", "hooli pro normal")
	// Who it is not.
	s.want("no credential", s.get("/v1/a", here), 200, "")
	s.seen("no credential", " anonymous normal")
	s.want("another issuer's token", s.get("/v1/a", here, id.bearer("iss", "https://evil.example", "org", "acme-1")...), 200, "")
	s.seen("another issuer's token", " anonymous normal")
	s.want("a key nobody owns", s.get("/v1/a", here, "Authorization", "Bearer sk_nobody"), 401, "credential")
	s.want("a token that has ended", s.get("/v1/a", here, id.bearer("exp", time.Now().Add(-time.Minute).Unix())...), 401, "credential")
	s.want("another audience", s.get("/v1/a", here, id.bearer("aud", "web")...), 401, "credential")
	forged := id.bearer("org", "acme-1")
	forged[1] = forged[1][:len(forged[1])-6] + "AAAAAA"
	a = s.get("/v1/a", here, forged...)
	s.want("badly signed", a, 401, "credential")
	if a.header.Get("WWW-Authenticate") != `Bearer realm="sluice"` {
		t.Errorf("what is asked for is %q", a.header.Get("WWW-Authenticate"))
	}
	// What it costs, on a bucket of its own: 20, and five a second.
	spender := func(path, method string, want int) {
		t.Helper()
		user := id.bearer("org", "spender", "sub", path)
		a := ask(t, s.client, method, s.url+path, append(user, "X-Test", here)...)
		if a.status != 200 || left(t, a) != want {
			t.Errorf("%s %s: %d with %d left, want %d", method, path, a.status, left(t, a), want)
		}
	}
	spender("/v1/projects", "GET", 19)
	spender("/v1/search/x", "GET", 15)
	spender("/v1/projects/7/export", "POST", 0)
	spender("/v1/projects/8/export", "GET", 19)
	s.want("a dear request of nobody's", ask(t, s.client, "POST", s.url+"/v1/projects/7/export", "X-Test", "198.51.100.2"), 403, "too_large")
	// How much.
	s.burst("anonymous", 10, 1, func() answer { return s.get("/v1/b", "198.51.100.3") })
	user := id.bearer("org", "busy", "sub", "bob")
	from := 0
	anywhere := func(headers []string) func() answer {
		return func() answer {
			from++ // no flood from one address
			return s.get("/v1/b", fmt.Sprintf("203.0.113.%d", from%250), headers...)
		}
	}
	s.burst("a user of the free plan", 20, 5, anywhere(user))
	s.want("another user of the same", s.get("/v1/b", here, id.bearer("org", "busy", "sub", "carl")...), 200, "")
	s.burst("a key, which has no user", 200, 50, anywhere(key))
	s.want("a user of the key's tenant", s.get("/v1/b", here, id.bearer("org", "acme-1", "sub", "dora")...), 200, "")
	asked := s.service.questions(t)
	s.burst("a flood, even of what nobody asks about", 100, 50, func() answer { return s.get("/page", "198.51.100.4") })
	s.want("health is no part of it", s.get("/healthz", "198.51.100.4"), 200, "")
	if n := s.service.questions(t); n != asked {
		t.Errorf("the service was asked %d times about what is not its business", n-asked)
	}
	// Rotation: the new key is good as soon as its file is there, the old one not.
	old := id.bearer("org", "acme-1", "sub", "eve")
	s.want("before the rotation", s.get("/v1/a", "198.51.100.5", old...), 200, "")
	write(t, filepath.Join(s.dir, "jwks.json"), id.rotate())
	for deadline := time.Now().Add(15 * time.Second); s.get("/v1/a", "198.51.100.5", old...).status == 200 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	s.want("the old key", s.get("/v1/a", "198.51.100.6", old...), 401, "credential")
	s.want("the new key", s.get("/v1/a", "198.51.100.6", id.bearer("org", "acme-1", "sub", "eve")...), 200, "")
	if log := s.service.log.text(); strings.Contains(log, strings.TrimPrefix(old[1], "Bearer ")[:40]) || strings.Contains(log, webKey) {
		t.Error("a credential is in the log")
	}
}

// questions is how many decisions a service has made.
func (s *service) questions(t *testing.T) (n int) {
	t.Helper()
	for line := range strings.Lines(ask(t, http.DefaultClient, "GET", s.admin+"/metrics").body) {
		if rest, ok := strings.CutPrefix(line, "sluice_decisions_total{"); ok {
			_, value, _ := strings.Cut(strings.TrimSpace(rest), " ")
			f, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			n += int(f)
		}
	}
	return n
}

// TestPartner is the policy of a site whose partners show certificates, on real
// programs: a probe for each of its rules.
func TestPartner(t *testing.T) {
	t.Parallel()
	gentest.Binary(t)
	ca := gentest.NewCA(t)
	bank, hash := ca.Client("bank")
	other, _ := ca.Client("other")
	forged, _ := gentest.NewCA(t).Client("bank")
	s := startSite(t, "partner", func(_, policy string) string {
		return strings.Replace(policy, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", hash, 1)
	}, ca.Server(t.TempDir())+" ssl_verify_client optional_no_ca;")
	as := func(certs ...tls.Certificate) {
		s.client.CloseIdleConnections()
		s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: ca.Config(certs...)}}
	}
	defer func() { s.client.CloseIdleConnections() }()
	const home, listed, elsewhere = "192.0.2.9", "198.51.100.7", "203.0.113.9"
	key := []string{"X-API-Key", webKey}

	as(bank)
	a := s.get("/partner/x", home)
	s.want("the bank at home", a, 200, "")
	s.seen("the bank at home", "bank partner high")
	if limits(a) != `"speed";q=300;w=3` || left(t, a) != 299 {
		t.Errorf("the bank's limits are %q, and %d are left", limits(a), left(t, a))
	}
	s.want("a network that is a partner's and not the bank's", s.get("/partner/x", listed), 403, "address")
	s.want("no partner's network", s.get("/partner/x", elsewhere), 403, "access")
	s.want("the bank elsewhere, where networks do not matter to the edge", s.get("/v1/x", elsewhere), 403, "address")
	s.want("the bank where its plan is none", s.get("/v1/x", home), 403, "plan")
	s.want("the certificate is the first source", s.get("/v1/x", home, key...), 403, "plan")

	as(other)
	s.want("a certificate of nobody's", s.get("/partner/x", home), 403, "credential")
	as(forged)
	s.want("a certificate of another authority", s.get("/partner/x", home), 401, "credential")
	s.want("and a key beside it", s.get("/v1/x", home, key...), 200, "")
	s.seen("a key beside it", "dev public normal")
	as()
	s.want("no credential", s.get("/partner/x", home), 401, "credential")
	s.want("no credential elsewhere", s.get("/v1/x", elsewhere), 401, "credential")
	s.want("a key nobody has", s.get("/v1/x", elsewhere, "X-API-Key", "sk_nobody"), 401, "credential")
	s.want("a certificate by word alone", s.get("/partner/x", home, "X-Sluice-Cert", "x", "X-Sluice-Tenant", "bank"), 401, "credential")
	s.want("a key for others", s.get("/partner/x", home, key...), 403, "plan")
	s.want("what is exempt", s.get("/about", elsewhere), 200, "")
	s.burst("a key", 19, 5, func() answer { return s.get("/v1/y", elsewhere, key...) })
}

// TestLoginSite is the policy of a site that counts failed logins, on real
// programs: a probe for each of its rules, and databases that change.
func TestLoginSite(t *testing.T) {
	t.Parallel()
	asns := filepath.Join(t.TempDir(), "asn.mmdb")
	database := func(second uint32) string {
		return string(geotest.Bytes(t, geotest.Options{Type: "GeoLite2-ASN"}, geotest.Networks{
			"9.0.0.0/8": geotest.ASN(geotest.MaxMind, 64500), "11.0.0.0/8": geotest.ASN(geotest.MaxMind, second),
		}))
	}
	write(t, asns, database(64501))
	s := startSite(t, "login", func(_, policy string) string { return policy }, "", "--asn-db", asns)
	login := func(ip string, status int) answer {
		t.Helper()
		return ask(t, s.client, "POST", fmt.Sprintf("%s/login?status=%d", s.url, status), "X-Test", ip)
	}
	settled := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if s.service.settled(t) >= want {
				return
			}
		}
		t.Fatalf("%d requests are settled, want %d", s.service.settled(t), want)
	}
	ends := 0
	// Logins that succeed are given back: none of them counts.
	for range 12 {
		s.want("a login", login("9.0.0.1", 200), 200, "")
		ends++
		settled(ends)
	}
	for i, status := range []int{401, 403, 422, 401, 401} {
		s.want(fmt.Sprintf("failure %d", i+1), login("9.0.0.1", status), status, "")
		ends++
		settled(ends)
	}
	a := login("9.0.0.1", 401)
	s.want("the sixth failure", a, 429, "window")
	if a.header.Get("X-Sluice-Limit") != "failures" {
		t.Errorf("it is refused by %q", a.header.Get("X-Sluice-Limit"))
	}
	s.want("a good login now", login("9.0.0.1", 200), 429, "window")
	s.want("somebody else", login("9.0.0.2", 200), 200, "")
	s.want("the form", s.get("/login", "9.0.0.1"), 200, "")
	s.want("a page", s.get("/", "9.0.0.1"), 200, "")
	// Many addresses of one network: 200 failures in an hour, five of them above.
	refused := 0
	for i := range 400 {
		if a = login(fmt.Sprintf("9.1.%d.%d", i/100, i%100), 401); a.status == 429 {
			refused = i
			break
		}
	}
	if refused < 194 || refused > 197 || a.header.Get("X-Sluice-Limit") != "spray" {
		t.Errorf("after %d failures of a network %q refuses; want some 195, and spray", refused, a.header.Get("X-Sluice-Limit"))
	}
	s.want("another network", login("11.0.0.1", 401), 401, "")
	// The network changes hands: the database says so, and the service hears of it.
	write(t, asns+".new", "no database")
	if err := os.Rename(asns+".new", asns); err != nil {
		t.Fatal(err)
	}
	s.service.log.await(t, "database not loaded: the last good one serves")
	s.want("a broken database", login("9.2.0.1", 401), 429, "window")
	write(t, asns+".new", database(64500))
	if err := os.Rename(asns+".new", asns); err != nil {
		t.Fatal(err)
	}
	s.service.log.await(t, "databases loaded")
	s.want("another database", login("11.0.0.2", 401), 429, "window")
}

// settled is how many requests a service has heard the end of.
func (s *service) settled(t *testing.T) (n int) {
	t.Helper()
	for line := range strings.Lines(ask(t, http.DefaultClient, "GET", s.admin+"/metrics").body) {
		if strings.HasPrefix(line, `sluice_datagrams_total{`) && strings.Contains(line, `settled`) {
			f, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' '):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			n += int(f)
		}
	}
	return n
}
