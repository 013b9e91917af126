package cmd

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/redis/go-redis/v9"

	"sluice/authz/limit/limittest"
)

// What must not be seen anywhere: each is planted where such a thing comes from.
const (
	plantedKey      = "sk_planted_good_0001"
	plantedWrong    = "sk_planted_wrong_0002"
	plantedQuery    = "sk_planted_query_0003"
	plantedCookie   = "planted-cookie-0004"
	plantedIdem     = "planted-idempotency-0005"
	plantedUser     = "planted.user.0006@example.com"
	plantedAdmin    = "planted-admin-0007"
	plantedPassword = "planted-redis-password-0008"
	plantedSigner   = "planted-signing-secret-0009-which-is-long"
)

const plantedPolicy = `version: 1
client_ip: {trusted_proxies: [127.0.0.1], header: X-Forwarded-For}
notifications: [{webhook: "HOOK", secret_env: HOOK_SECRET}]
identity:
  sources:
    - client_cert: {}
    - api_key: {header: X-API-Key}
    - api_key: {query: api_key}
    - api_key: {cookie: session}
    - jwt: {header: Authorization, jwks_file: jwks.json, issuer: "https://id.example", tenant_claim: org, user_claim: sub}
  missing: {plan: free}
  invalid: {plan: free}
  unlisted: {plan: free}
plans:
  free:
    limits:
      speed: {per: key, rate: 1/h, burst: 2}
      people: {per: user, rate: 1/h, burst: 3}
      sold: {per: tenant, quota: 5/month, notify: [50, 100]}
      again: {per: key, retries: 2/m}
limits:
  by_header: {per: {header: X-API-Key}, rate: 1/h, burst: 4}
  by_cookie: {per: {cookie: session}, rate: 1/h, burst: 4}
  by_query: {per: {query: api_key}, rate: 1/h, burst: 4}
tenants: [{id: acme, plan: free, keys: [{id: web, sha256: HASH}]}]
routes:
  - {name: rest, match: {prefix: /}}
  - {name: shut, match: {prefix: /shut}, on_store_down: closed}
responses: {headers: [ratelimit, x-ratelimit]}
`

// Secrets are planted wherever one comes in, and searched in whatever comes out:
// answers, the log with its errors, metrics, the admin port, counters in Redis or in
// the file, and what a crash leaves. C119
func TestSecretsNowhere(t *testing.T) {
	for _, store := range []string{"embedded", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			hash := sha256.Sum256([]byte(plantedKey))
			signer := base64.RawURLEncoding.EncodeToString([]byte(plantedSigner))
			write(t, filepath.Join(dir, "jwks.json"), `{"keys":[{"kty":"oct","kid":"one","alg":"HS256","k":"`+signer+`"}]}`)
			p := &planted{dir: dir, out: map[string]string{}}
			write(t, filepath.Join(dir, "policy.yaml"), strings.NewReplacer("HASH", fmt.Sprintf("%x", hash), "HOOK\"", p.hook(t)+"\"").Replace(plantedPolicy))
			url := "embedded:sluice.db"
			if store == "redis" {
				p.redis = limittest.StartServer(t, "--requirepass", plantedPassword, "--rdbcompression", "no")
				url = "redis://:" + plantedPassword + "@" + p.redis.Addr
			}
			p.service = serveWith(t, dir, []string{"HOOK_SECRET=" + plantedSecret}, "--store", url, "--tenants", "redis://:"+plantedRefused+"@127.0.0.1:1")
			token, err := os.ReadFile(filepath.Join(dir, "sluice.token"))
			if err != nil {
				t.Fatal(err)
			}
			p.admits = strings.TrimSpace(string(token))
			p.secrets = append(p.secrets, []string{
				plantedKey, plantedWrong, plantedQuery, plantedCookie, plantedIdem, plantedUser, plantedAdmin, plantedPassword, plantedSigner, signer,
				p.admits,
			}...)
			p.askAll(t)
			p.operate(t)
			p.apps(t)
			if p.redis == nil {
				p.verbs(t) // the same with any store
			}
			p.state(t)
			p.crash(t)
			p.search(t)
		})
	}
}

// planted is a service that has been told secrets, and all that it has said.
type planted struct {
	*service
	dir     string
	redis   *limittest.Server
	admits  string // the token of the admin port
	secrets []string
	out     map[string]string
	signed  int
}

// token is a JWT of the planted user; its signature and payload are secrets, too.
func (p *planted) token(t *testing.T, secret string) string {
	p.signed++
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "https://id.example", "org": "acme", "sub": plantedUser, "exp": time.Now().Add(time.Hour).Unix(), "jti": fmt.Sprint(p.signed),
	})
	token.Header["kid"] = "one"
	text, err := token.SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	p.secrets = append(p.secrets, strings.Split(text, ".")[1:]...)
	return text
}

// askAll shows each credential until it is refused, everywhere a client can.
func (p *planted) askAll(t *testing.T) {
	t.Helper()
	for _, shown := range [][]string{
		{"X-Api-Key", plantedKey}, {"X-Api-Key", plantedWrong},
		{"X-Sluice-Query-Api_key", plantedQuery}, {"X-Sluice-Cookie-Session", plantedCookie},
		{"X-Sluice-Header-X-Api-Key", plantedKey},
		{"Authorization", "Bearer " + p.token(t, plantedSigner)},
		{"Authorization", "Bearer " + p.token(t, plantedSigner+"x")},
		{"X-Api-Key", plantedKey, "X-Sluice-Retry", "1", "X-Sluice-Idempotency", plantedIdem},
	} {
		for _, route := range []string{"rest", "shut"} {
			for n := range 8 {
				a := ask(t, http.DefaultClient, http.MethodGet, "http://"+p.addr+"/_sluice/open/"+route, append([]string{
					"X-Sluice-Ip", "192.0.2.1", "X-Sluice-Method", "GET", "X-Sluice-Request", fmt.Sprintf("%s-%s-%d", t.Name(), route, n),
					"X-Sluice-Uri", "/" + route + "?api_key=" + plantedQuery + "&k%65y=" + plantedWrong,
				}, shown...)...)
				p.out["answers"] += fmt.Sprintln(a.status, a.header, a.body)
			}
		}
	}
}

// operate uses the admin port, with good tokens, wrong ones, and ones in the wrong
// place, and the verbs.
func (p *planted) operate(t *testing.T) {
	t.Helper()
	for _, path := range []string{
		"/metrics", "/-/status", "/healthz", "/readyz", "/openapi.yaml", "/v1/tenants", "/v1/tenants/acme/usage",
		"/v1/tenants/" + plantedWrong + "/usage", "/-/status?token=" + plantedAdmin,
	} {
		for _, token := range []string{p.admits, plantedAdmin} {
			a := ask(t, http.DefaultClient, http.MethodGet, p.admin+path, "Authorization", "Bearer "+token)
			// What one asks for is named in the answer, to him.
			p.out[path] += strings.ReplaceAll(fmt.Sprintln(a.status, a.header, a.body), plantedWrong, "")
		}
	}
	p.out["usage"] = p.must(t, p.dir, "usage", "acme")
	p.out["reset"] = p.must(t, p.dir, "reset", "acme", "speed", "--reason", "a test")
	// A reload that fails tells why, not what is in the file.
	jwks := filepath.Join(p.dir, "jwks.json")
	good, err := os.ReadFile(jwks)
	if err != nil {
		t.Fatal(err)
	}
	write(t, jwks, strings.Replace(string(good), `"alg"`, `alg"`, 1))
	a := ask(t, http.DefaultClient, http.MethodPost, p.admin+"/-/reload", "Authorization", "Bearer "+p.admits)
	p.out["reload"] = a.body
	if a.status == 200 {
		t.Error("a broken key set was taken")
	}
	write(t, jwks, string(good))
}

// state reads what the service keeps, and then takes its store away.
func (p *planted) state(t *testing.T) {
	t.Helper()
	if p.redis == nil {
		return
	}
	ctx := context.Background()
	c := redis.NewClient(&redis.Options{Addr: p.redis.Addr, Password: plantedPassword})
	defer c.Close()
	keys, err := c.Keys(ctx, "*").Result()
	if err != nil || len(keys) < 5 {
		t.Fatalf("Redis has %q, %v", keys, err)
	}
	for _, key := range keys {
		value, err := c.Dump(ctx, key).Result()
		if err != nil && err != redis.Nil {
			t.Fatal(err)
		}
		p.out["Redis"] += key + " " + value + "\n"
	}
	p.redis.Kill()
	p.askAll(t)
	p.out["/-/status without Redis"] = ask(t, http.DefaultClient, http.MethodGet, p.admin+"/-/status").body
}

// crash makes the service show all its goroutines, and die.
func (p *planted) crash(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = p.wait()
	if !strings.Contains(p.log.text(), "goroutine ") {
		t.Fatal("there is no dump of goroutines")
	}
	p.out["log"] = p.log.text()
	err := filepath.WalkDir(p.dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir(), slices.Contains([]string{"policy.yaml", "jwks.json", "sluice.token"}, e.Name()): // what is there to be secret
			return nil
		}
		data, err := os.ReadFile(path)
		p.out[strings.TrimPrefix(path, p.dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *planted) search(t *testing.T) {
	t.Helper()
	// They were believed, or the search would mean nothing.
	for _, want := range []string{`"key":"web"`, `"limit":"speed"`, `"tenant":"acme"`} {
		if !strings.Contains(p.out["log"], want) {
			t.Errorf("the log does not tell of %s:\n%s", want, p.out["log"])
		}
	}
	if p.redis == nil && p.out["sluice.db"] == "" {
		t.Error("there is no file of the store")
	}
	for where, text := range p.out {
		for _, secret := range p.secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s shows %q: …%s…", where, secret, text[max(0, i-80):min(len(text), i+80)])
			}
		}
	}
}
