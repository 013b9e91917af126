package policies

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoadSites loads the example of the language and the policies of real sites.
func TestLoadSites(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/sites/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no sites: %v", err)
	}
	for _, file := range append(files, "testdata/example/policy.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			_, found := Load(file)
			for _, d := range found {
				if !d.Warning {
					t.Error(d)
				}
			}
		})
	}
}

// TestLoadExample looks at values of the example that are written in an odd way
// or come from other files.
func TestLoadExample(t *testing.T) {
	t.Parallel()
	p, _ := Load("testdata/example/policy.yaml")
	speed := p.Plans["pro"].Limits["speed"]
	got := map[string]any{
		"proxies":   networkTexts(p.ClientIP.TrustedProxies),
		"per":       p.Edge.Limits["per_key"].Per,
		"delay":     *p.Edge.Limits["per_ip"].Delay,
		"everybody": p.Edge.Access[5].Deny.All,
		"absent":    p.Edge.Access[6].When.Cookies["session"].Absent,
		"rate":      speed.Rate.String(),
		"count":     p.Routes[6].Limits["failures"].Count.Statuses,
		"unlimited": p.Plans["enterprise"].Limits["monthly"].Quota.Unlimited,
		"languages": p.Responses.MessageOrder,
		"tenants":   []Name{p.Tenants[0].ID, p.Tenants[3].ID},
		"regex":     p.Routes[4].Match.Regex.NGINX(),
		"jwks":      p.File(p.Identity.Sources[3].JWT.JWKSFile),
	}
	want := map[string]any{
		"proxies":   []string{"10.20.0.0/16", "2001:db8:ff::/48", "203.0.113.0/25", "2001:db8:cd::/48"},
		"per":       Per{{Kind: DimHeader, Name: "X-API-Key"}},
		"delay":     Delay{},
		"everybody": true,
		"absent":    true,
		"rate":      "50/s",
		"count":     []int{401, 403},
		"unlimited": true,
		"languages": []Language{"en", "ru"},
		"tenants":   []Name{"acme", "umbrella"},
		"regex":     `^/v1/files/[0-9a-f]{8}\z`,
		"jwks":      filepath.Join("testdata", "example", "jwks.json"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("example (-want +got):\n%s", diff)
	}
}

func networkTexts(l List[Network]) []string {
	var out []string
	for _, n := range l.All() {
		out = append(out, n.String())
	}
	return out
}

// TestLoadMissing wants a finding, and no more, for what is not there.
func TestLoadMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	missing := filepath.Join(dir, "policy.yaml")
	for _, path := range []string{missing, dir} {
		p, found := Load(path)
		if p == nil || len(found) != 1 || found[0].Rule != ruleRead || found[0].Pos.File != path {
			t.Errorf("%s: got %v", path, found)
		}
	}
	src := "version: 1\nidentity: {sources: [{jwt: {header: Authorization, jwks_file: jwks.json, issuer: \"https://id.example\", audience: api, tenant_claim: org}}]}\n" +
		"tenant_files: [tenants/*.yaml]\nplans: {free: {}}\nroutes: [{name: a, match: {prefix: /}}]\n"
	_, found := ParseIn(dir, "-", []byte(src))
	var got []string
	for _, d := range found {
		if !d.Warning {
			got = append(got, d.Path+" "+d.Rule)
		}
	}
	if want := "identity.sources[0].jwt.jwks_file read, tenant_files[0] read"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", found, want)
	}
	if err := os.WriteFile(missing, []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, found := Load(missing); len(found) != 1 || found[0].Rule != ruleRead {
		t.Errorf("a file that is too large: got %v", found)
	}
}

// TestLoadWith: tenants of more files are checked as the policy's are, and findings
// stand in their own files, named as they were given.
func TestLoadWith(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"conf/policy.yaml": "version: 1\nplans: {free: {}}\nidentity: {sources: [{api_key: {header: X-API-Key}}]}\ntenants: [{id: acme, plan: free}]\n",
		"more/a.yaml":      "- {id: globex, plan: free}\n",
		"more/b[1].yaml":   "- {id: hooli, plan: gold}\n- {id: acme, plan: free}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, policy := range []string{"conf/policy.yaml", filepath.Join(dir, "conf/policy.yaml")} {
		p, found := LoadWith(policy, []string{"more/a.yaml", filepath.Join(dir, "more/a.yaml")})
		if found.HasErrors() || len(p.Tenants) != 2 || p.Tenants[1].ID != "globex" {
			t.Errorf("%s: %d tenants, %v", policy, len(p.Tenants), found)
		}
	}
	if _, found := LoadWith("conf/policy.yaml", []string{"more/none.yaml"}); len(found) == 0 || found[0].Rule != ruleRead || !strings.Contains(found[0].Message, "more/none.yaml") {
		t.Errorf("a file that is not there: %v", found)
	}
	_, found := LoadWith("conf/policy.yaml", []string{"more/b[1].yaml"})
	var got []string
	for _, d := range found {
		if !d.Warning {
			got = append(got, fmt.Sprintf("%s:%d %s", d.Pos.File, d.Pos.Line, d.Rule))
		}
	}
	if want := "more/b[1].yaml:1 unknown-plan, more/b[1].yaml:2 duplicate-name"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	if _, found := LoadWith("none.yaml", nil); len(found) != 1 || found[0].Rule != ruleRead {
		t.Errorf("no policy: %v", found)
	}
}

// TestTenantOrder wants tenant files in the order of their names, each once.
func TestTenantOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"b", "a", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("- {id: "+name+", plan: free}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, _ := ParseIn(dir, "policy", []byte("version: 1\nplans: {free: {}}\ntenants: [{id: z, plan: free}]\ntenant_files: [c.yaml, '*.yaml']\n"))
	var got []Name
	for _, tenant := range p.Tenants {
		got = append(got, tenant.ID)
	}
	if diff := cmp.Diff([]Name{"z", "c", "a", "b"}, got); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
}
