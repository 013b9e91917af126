package cmd

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/redis/go-redis/v9"

	"sluice/authz/limit/limittest"
)

// TestTenantsInRedis: a key that is written into Redis is good without a reload,
// one that is taken away is not, and nothing secret is there or in the log.
func TestTenantsInRedis(t *testing.T) {
	t.Parallel()
	const password, key, secret = "a-password-nobody-sees", "sk_live_nobody_sees", "a secret that signs tokens, and that nobody sees"
	addr := limittest.StartRedis(t, "--requirepass", password)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, filepath.Join(filepath.Dir(policy), "jwks.json"), `{"keys":[{"kty":"oct","alg":"HS256","k":"`+base64.RawURLEncoding.EncodeToString([]byte(secret))+`"}]}`)
	write(t, policy, `version: 1
identity:
  sources:
    - api_key: {header: X-API-Key}
    - jwt: {header: Authorization, jwks_file: jwks.json, issuer: "https://id.example", tenant_claim: org, user_claim: sub}
  missing: {deny: 401}
plans: {pro: {limits: {speed: {per: key, rate: 1000/s, burst: 1000}}}}
`)
	s := startServiceOn(t, "127.0.0.1:0", policy, "memory", "--tenants", "redis://:"+password+"@"+addr)
	status := func() string {
		a := ask(t, http.DefaultClient, "GET", "http://"+s.addr+"/_sluice/open/all", "X-API-Key", key, "X-Sluice-Ip", "192.0.2.1", "X-Sluice-Method", "GET", "X-Sluice-Uri", "/")
		return a.header.Get("X-Sluice-Decision") + " " + a.header.Get("X-Sluice-Tenant")
	}
	await := func(what, want string) {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if got = status(); got == want {
				return
			}
		}
		t.Errorf("%s: %q, want %q\n%s", what, got, want, s.log.text())
	}
	await("before it is there", "deny ")
	sum := sha256.Sum256([]byte(key))
	name, ctx := "key:"+hex.EncodeToString(sum[:]), context.Background()
	c := redis.NewClient(&redis.Options{Addr: addr, Password: password})
	defer c.Close()
	if err := c.HSet(ctx, "sluice:tenant:umbrella", "plan", "pro").Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.HSet(ctx, "sluice:"+name, "tenant", "umbrella", "id", "umbrella-1").Err(); err != nil {
		t.Fatal(err)
	}
	c.Publish(ctx, "sluice:tenants", name)
	await("a new key", "allow umbrella")
	c.HSet(ctx, "sluice:tenant:umbrella", "disabled", "1")
	c.Publish(ctx, "sluice:tenants", "tenant:umbrella")
	await("a tenant that is switched off", "deny umbrella")
	c.Del(ctx, "sluice:"+name)
	c.Publish(ctx, "sluice:tenants", name)
	await("a key that is gone", "deny ")
	metrics := ask(t, http.DefaultClient, "GET", s.admin+"/metrics").body
	if !strings.Contains(metrics, `sluice_tenant_reads_total{result="found"}`) || !strings.Contains(metrics, "sluice_tenant_changes_heard 1") {
		t.Error("metrics tell nothing of the reads")
	}
	// A token that was unlisted is the tenant's within the second.
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "https://id.example", "org": "hooli", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(),
	}).SignedString([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	byToken := func() string {
		a := ask(t, http.DefaultClient, "GET", "http://"+s.addr+"/_sluice/open/all", "Authorization", "Bearer "+token, "X-Sluice-Ip", "192.0.2.1", "X-Sluice-Method", "GET", "X-Sluice-Uri", "/")
		return a.header.Get("X-Sluice-Decision") + " " + a.header.Get("X-Sluice-Tenant")
	}
	if got := byToken(); got != "deny " {
		t.Errorf("a token of nobody: %q", got)
	}
	written := time.Now()
	c.HSet(ctx, "sluice:tenant:hooli", "plan", "pro")
	c.Publish(ctx, "sluice:tenants", "tenant:hooli")
	for byToken() != "allow hooli" {
		if time.Since(written) > 20*time.Second {
			t.Fatalf("a token of a new tenant: %q\n%s", byToken(), s.log.text())
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("a token of a new tenant is good after %v", time.Since(written))
	keys, err := c.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"the log": s.log.text(), "Redis": strings.Join(keys, "\n"), "metrics": metrics} {
		for _, hidden := range []string{password, key, secret, token} {
			if strings.Contains(text, hidden) {
				t.Errorf("%s holds a secret", what)
			}
		}
	}
}
