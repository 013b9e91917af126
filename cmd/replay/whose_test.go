package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sluice/policies"
)

// TestTenantColumn: a log without credentials says whose a request is.
func TestTenantColumn(t *testing.T) {
	const logFormat = `$remote_addr [$msec] "$request" $status $remote_user`
	for _, name := range []string{"acme", "acme-web", "aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc", "AFF85B06E3327CDB725A9E56CA5DDC5A72A358D21F38B621E3F4DBF2CCEF43BC"} {
		line := `192.0.2.1 [1796094245.000] "GET /v1/search HTTP/1.1" 200 ` + name
		r := run(t, Options{Policy: compiled(t, twoFloors), Tenant: "remote_user"}, logFormat, line, line)
		wantDenials(t, r.Denials, "1 of 1: speed (plan pro), since 03:04:05 at 2, most acme")
		if strings.Contains(strings.Join(r.Notes, "\n"), "identity") {
			t.Errorf("%s: notes %q", name, r.Notes)
		}
	}
	line := `192.0.2.1 [1796094245.000] "GET /v1/x HTTP/1.1" 200 nobody`
	r := run(t, Options{Policy: compiled(t, twoFloors), Tenant: "$remote_user"}, logFormat, line, line, line)
	wantDenials(t, r.Denials, "1 of 1: speed (plan anonymous), since 03:04:05 at 3, most 192.0.2.1")
	if !strings.Contains(strings.Join(r.Notes, "\n"), "3 lines name a tenant or key that the policy does not know") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestTenantWithoutKey: for whom nothing can be shown is told, and counts as nobody.
func TestTenantWithoutKey(t *testing.T) {
	c := compiled(t, `version: 1
identity: {sources: [{client_cert: {}}], missing: {plan: free}}
plans: {free: {limits: {speed: {per: ip, rate: 1/m, burst: 1}}}}
tenants: [{id: acme, plan: free, cert_sha256: ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]}]
`)
	line := `192.0.2.1 [1796094245.000] "GET / HTTP/1.1" acme`
	r := run(t, Options{Policy: c, Tenant: "remote_user"}, `$remote_addr [$msec] "$request" $remote_user`, line, line)
	wantDenials(t, r.Denials, "1 of 1: speed (plan free), since 03:04:05 at 2, most 192.0.2.1")
	if !strings.Contains(strings.Join(r.Notes, "\n"), "2 lines name a tenant without an API key") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestTenantByToken: who has no key, and may show a token, is known by the column too.
func TestTenantByToken(t *testing.T) {
	const src = `version: 1
identity:
  sources: [{jwt: {header: Authorization, jwks_file: jwks.json, issuer: "https://id.example", audience: api, tenant_claim: org}}]
  missing: {plan: free}
  unlisted: {plan: free}
plans: {free: {limits: {speed: {per: tenant, rate: 1/m, burst: 1}}}}
tenants: [{id: acme, plan: free, claim: org-1}]
`
	const jwks = `{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "a", "alg": "EdDSA", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`
	p, ds := policies.Parse("policy.yaml", []byte(src), func(policies.FileName) ([]byte, error) { return []byte(jwks), nil })
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	line := func(name string) string { return `192.0.2.1 [1796094245.000] "GET / HTTP/1.1" ` + name }
	r := run(t, Options{Policy: policies.Compile(p), Tenant: "remote_user"}, `$remote_addr [$msec] "$request" $remote_user`,
		line("org-1"), line("org-1"), line("elsewhere"), line("elsewhere"), line("-"))
	wantDenials(t, r.Denials, "2 of 2: speed (plan free), since 03:04:05 at 2, most acme")
	if r.Offenders[1].Who != "elsewhere" {
		t.Errorf("offenders: %+v", r.Offenders)
	}
}

// TestSharedAddress is C020: when one private address sends most of it, a proxy is
// not trusted.
func TestSharedAddress(t *testing.T) {
	var lines []string
	for i := range 20 {
		lines = append(lines, hit(float64(10*i), "172.16.0.9", "GET /healthz", "-", "-"), hit(float64(10*i), fmt.Sprintf("192.0.2.%d", i), "GET /healthz", "-", "-"))
	}
	r := run(t, Options{Policy: compiled(t, twoFloors)}, full, lines...)
	if !strings.Contains(strings.Join(r.Notes, "\n"), "50 % of the requests come from 172.16.0.9, a private address: a proxy that client_ip.trusted_proxies should name?") {
		t.Errorf("notes: %q", r.Notes)
	}
}

// TestSecrets is C119: a credential in a log is in nothing that is told of it,
// wherever it stood, and hashing it finds its owner.
func TestSecrets(t *testing.T) {
	const secret = "sk_demo_acme_web"
	c := compiled(t, strings.Replace(twoFloors, "{api_key: {header: X-API-Key}}", "{api_key: {header: X-API-Key}}, {api_key: {query: key}}", 1))
	r := run(t, Options{Policy: c}, full,
		hit(0, "192.0.2.1", "GET /v1/search?key="+secret, "-", "-"),
		hit(1, "192.0.2.1", "GET /v1/search?key="+secret, "-", "-"),
		hit(2, "192.0.2.1", "GET /v1/search", "-", secret),
		hit(3, "192.0.2.1", "GET /unknown/"+secret+"?k%65y="+secret, "-", secret),
		hit(4, "192.0.2.1", "GET /unknown/"+strings.ReplaceAll(secret, "_", "%5f"), "-", secret),
		"a line that nobody reads "+secret,
		`192.0.2.1 [`+secret+`] "GET / HTTP/1.1" 200 0.000 "-" "-" "-"`,
	)
	wantDenials(t, r.Denials, "2 of 1: speed (plan pro), since 03:04:06 at 2, most acme")
	var text, page strings.Builder
	if err := r.WriteText(&text, Style{Width: 160, Colour: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for what, out := range map[string]string{"text": text.String(), "page": page.String(), "json": string(asJSON)} {
		for _, part := range []string{secret, "demo", "k%65y"} {
			if strings.Contains(out, part) {
				t.Errorf("%s holds %q", what, part)
			}
		}
		if !strings.Contains(out, "acme") {
			t.Errorf("%s does not name the tenant", what)
		}
	}
}
