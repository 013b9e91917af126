package cmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"sluice/authz/limit/limittest"
)

const pushedPolicy = `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}, {client_cert: {}}, {auth_request: {location: /auth, tenant_header: X-Org}}], missing: {deny: 401}}
plans:
  free: {limits: {speed: {per: key, rate: 1/s, burst: 10}, monthly: {per: tenant, quota: 100/month}}}
  pro: {extends: free}
routes: [{name: all, match: {prefix: /}}]
`

// pushed are tenants in a file of their own; the keys are sk_1 and sk_2.
const pushedTenants = `
- id: acme
  plan: pro
  claim: org-1
  cert_sha256: [9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08]
  keys:
    - {id: acme-web, sha256: 0be1a6eb2b36a79f1a2cb16d3d11ec1ac3d4faffab01a9ee8e7d2ab5bc0e7ac5}
  overrides: {speed: {burst: 20}}
- {id: globex, plan: free, disabled: true, keys: [{id: globex-web, sha256: 7f1f1c3aa7ff5a8cb3fb0b4c1d3f1e0d8a4f5b6c7d8e9fa0b1c2d3e4f5061728, simulate: speed}]}
`

// pushes is a folder with a policy and tenants, and a Redis to push into.
type pushes struct {
	t    *testing.T
	dir  string
	addr string
	c    *redis.Client
}

func newPushes(t *testing.T) *pushes {
	t.Helper()
	p := &pushes{t: t, dir: t.TempDir(), addr: limittest.StartRedis(t)}
	p.c = redis.NewClient(&redis.Options{Addr: p.addr})
	t.Cleanup(func() { _ = p.c.Close() })
	write(t, filepath.Join(p.dir, "policy.yaml"), pushedPolicy)
	write(t, filepath.Join(p.dir, "tenants.yaml"), pushedTenants)
	return p
}

// push runs the verb.
func (p *pushes) push(args ...string) (status int, out, errs string) {
	p.t.Helper()
	var o, e bytes.Buffer
	args = append([]string{"tenants", "push", filepath.Join(p.dir, "policy.yaml"), filepath.Join(p.dir, "tenants.yaml"), "--to", "redis://" + p.addr}, args...)
	status = Run(args, strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

func (p *pushes) want(what, want string, args ...string) {
	p.t.Helper()
	if status, out, errs := p.push(args...); status != exitOK || errs != "" || out != want {
		p.t.Errorf("%s: status %d\n%s%s%s", what, status, errs, out, cmp.Diff(want, out))
	}
}

// there are the records in Redis.
func (p *pushes) there() map[string]map[string]string {
	p.t.Helper()
	names, err := p.c.Keys(context.Background(), "sluice:*").Result()
	if err != nil {
		p.t.Fatal(err)
	}
	out := map[string]map[string]string{}
	for _, n := range names {
		out[n] = p.c.HGetAll(context.Background(), n).Val()
	}
	return out
}

// TestPush: what differs is written, what is left over stays until it is pruned, and
// to do it again does nothing.
func TestPush(t *testing.T) {
	t.Parallel()
	p := newPushes(t)
	ctx := context.Background()
	// What is somebody else's stays as it is.
	p.c.Set(ctx, "sluice:{acme}:speed-1234:", "x", 0)
	p.c.Set(ctx, "keys", "x", 0)
	const first = `would add    tenant acme
would add    claim "org-1" of acme
would add    certificate 9f86d081884c... of acme
would add    key acme-web of acme
would add    tenant globex
would add    key globex-web of globex
6 added, 0 changed, 0 removed, 0 unchanged (nothing was written)
`
	p.want("a try", first, "--dry-run")
	if got := p.there(); len(got) != 1 {
		t.Errorf("a try wrote %v", got)
	}
	p.want("for the first time", strings.ReplaceAll(strings.Replace(first, " (nothing was written)", "", 1), "would add    ", "added        "))
	link := map[string]string{"tenant": "acme"}
	want := map[string]map[string]string{
		"sluice:{acme}:speed-1234:": nil,
		"sluice:tenant:acme":        {"plan": "pro", "claim": "org-1", "override:speed:burst": "20"},
		"sluice:claim:org-1":        link,
		"sluice:cert:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08": link,
		"sluice:key:0be1a6eb2b36a79f1a2cb16d3d11ec1ac3d4faffab01a9ee8e7d2ab5bc0e7ac5":  {"tenant": "acme", "id": "acme-web"},
		"sluice:tenant:globex": {"plan": "free", "disabled": "1"},
		"sluice:key:7f1f1c3aa7ff5a8cb3fb0b4c1d3f1e0d8a4f5b6c7d8e9fa0b1c2d3e4f5061728": {"tenant": "globex", "id": "globex-web", "simulate": "speed"},
	}
	if diff := cmp.Diff(want, p.there()); diff != "" {
		t.Errorf("what is in Redis (-want +got):\n%s", diff)
	}
	p.want("again", "0 added, 0 changed, 0 removed, 6 unchanged\n")

	// A tenant changes, a key goes, and others have written, too.
	write(t, filepath.Join(p.dir, "tenants.yaml"), strings.Replace(strings.Replace(pushedTenants, "plan: free, disabled: true, keys: [{", "plan: pro, keys: [{plan: free, ", 1),
		"  keys:\n    - {id: acme-web, sha256: 0be1a6eb2b36a79f1a2cb16d3d11ec1ac3d4faffab01a9ee8e7d2ab5bc0e7ac5}\n", "  cidrs: [192.0.2.0/24, 198.51.100.7]\n", 1))
	p.c.HSet(ctx, "sluice:tenant:umbrella", "plan", "free")
	p.c.HSet(ctx, "sluice:claim:\x1b[31m", "tenant", "\x1b[32m")
	p.c.HSet(ctx, "sluice:key:7f1f1c3aa7ff5a8cb3fb0b4c1d3f1e0d8a4f5b6c7d8e9fa0b1c2d3e4f5061728", "secret", "sk_live_do_not_show")
	p.c.Del(ctx, "sluice:claim:org-1")
	p.c.Set(ctx, "sluice:claim:org-1", "acme", 0)
	const changed = `changed      tenant acme: cidrs "192.0.2.0/24 198.51.100.7"
changed      claim "org-1" of acme: it could not be used
changed      tenant globex: no disabled (was 1), plan free -> pro
changed      key globex-web of globex: it could not be used
left         claim "\x1b[31m"
left         key acme-web of acme
left         tenant umbrella
0 added, 4 changed, 0 removed, 1 unchanged; 3 in Redis are not in the files: --prune removes them
`
	p.want("changes", changed)
	if got := p.there(); len(got) != 9 || got["sluice:tenant:umbrella"]["plan"] != "free" || got["sluice:claim:org-1"]["tenant"] != "acme" || got["sluice:tenant:globex"]["disabled"] != "" {
		t.Errorf("what is in Redis: %v", got)
	}
	const pruned = `would remove claim "\x1b[31m"
would remove key acme-web of acme
would remove tenant umbrella
0 added, 0 changed, 3 removed, 5 unchanged (nothing was written)
`
	p.want("a try of pruning", pruned, "--prune", "--dry-run")
	if len(p.there()) != 9 {
		t.Error("a try removed something")
	}
	status, out, _ := p.push("--prune", "--format", "json")
	var report pushReport
	if err := json.Unmarshal([]byte(out), &report); err != nil || status != exitOK || len(report.Removed) != 3 || report.Same != 5 || report.DryRun {
		t.Errorf("pruned: status %d, %v\n%s", status, err, out)
	}
	if got := p.there(); len(got) != 6 || p.c.Exists(ctx, "keys").Val() != 1 {
		t.Errorf("after pruning: %v", got)
	}
	p.want("and again", "0 added, 0 changed, 0 removed, 5 unchanged\n", "--prune")
}

// TestPushMany: more than a batch, and of many changes a few are told.
func TestPushMany(t *testing.T) {
	t.Parallel()
	p := newPushes(t)
	var text strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&text, "- {id: t%d, plan: free, keys: [{id: k%d, sha256: %064x}]}\n", i, i, i+1)
	}
	write(t, filepath.Join(p.dir, "tenants.yaml"), text.String())
	status, out, errs := p.push()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != exitOK || len(lines) != maxTold+2 || lines[maxTold] != "added        2980 more; --format json tells all" || lines[maxTold+1] != "3000 added, 0 changed, 0 removed, 0 unchanged" {
		t.Errorf("status %d\n%s%s", status, errs, out)
	}
	p.want("again", "0 added, 0 changed, 0 removed, 3000 unchanged\n")
	if n := len(p.there()); n != 3000 {
		t.Errorf("%d records", n)
	}
}

// TestPushRefuses: nothing is written when something is wrong, and no password is shown.
func TestPushRefuses(t *testing.T) {
	t.Parallel()
	p := newPushes(t)
	for what, c := range map[string]struct {
		tenants string
		status  int
		says    string
		args    []string
	}{
		"a plan that is none":    {"- {id: acme, plan: gold}\n", exitNo, "there is no plan gold", nil},
		"a number of the others": {"- {id: acme, plan: free, overrides: {speed: {quota: 1/day}}}\n", exitNo, "belongs to one of quota", nil},
		"a wait of its own":      {"- {id: acme, plan: free, overrides: {speed: {wait: 1s}}}\n", exitFailed, "tenant acme: overrides.speed.wait: 1s is longer", nil},
		"nobody to keep":         {"[]\n", exitUsage, "--prune would remove all", []string{"--prune"}},
		"another format":         {"[]\n", exitUsage, "want text or json", []string{"--format", "xml"}},
		"no Redis":               {"[]\n", exitUsage, "--to: cannot open Redis", []string{"--to", "http://user:hidden@127.0.0.1/"}},
		"a Redis that is away":   {"[]\n", exitFailed, "cannot look through the records", []string{"--to", "redis://user:hidden@127.0.0.1:1"}},
	} {
		write(t, filepath.Join(p.dir, "tenants.yaml"), c.tenants)
		status, out, errs := p.push(c.args...)
		if status != c.status || out != "" || !strings.Contains(errs, c.says) || strings.Contains(errs, "hidden") {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", what, status, c.status, c.says, errs, out)
		}
	}
	if got := p.there(); len(got) != 0 {
		t.Errorf("written: %v", got)
	}
	var o, e bytes.Buffer
	if status := Run([]string{"tenants", "push"}, strings.NewReader(""), &o, &e); status != exitUsage || !strings.Contains(e.String(), "push needs POLICY") {
		t.Errorf("without a policy: %d, %s", status, &e)
	}
	if status := Run([]string{"tenants", "push", filepath.Join(p.dir, "none.yaml"), "--to", "redis://x"}, strings.NewReader(""), &o, &e); status != exitFailed {
		t.Errorf("without a file: %d, %s", status, &e)
	}
}

// TestPushIsFelt: a running service feels what is pushed, for better and for worse.
func TestPushIsFelt(t *testing.T) {
	t.Parallel()
	p := newPushes(t)
	const key = "sk_pushed"
	file := func(more string) {
		write(t, filepath.Join(p.dir, "tenants.yaml"), fmt.Sprintf("- {id: acme, plan: free%s, keys: [{id: web, sha256: %x}]}\n", more, sha256.Sum256([]byte(key))))
	}
	s := startServiceOn(t, "127.0.0.1:0", filepath.Join(p.dir, "policy.yaml"), "memory", "--tenants", "redis://"+p.addr)
	ask := func() string {
		a := ask(t, http.DefaultClient, "GET", "http://"+s.addr+"/_sluice/open/all", "X-API-Key", key, "X-Sluice-Ip", "192.0.2.1", "X-Sluice-Method", "GET", "X-Sluice-Uri", "/")
		return strings.Join(slices.DeleteFunc([]string{a.header.Get("X-Sluice-Decision"), a.header.Get("X-Sluice-Tenant"), a.header.Get("X-Sluice-Reason"), policyOf(a.header.Get("RateLimit-Policy"))}, func(s string) bool { return s == "" }), " ")
	}
	await := func(what, want string) {
		t.Helper()
		got := ""
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if got = ask(); got == want {
				return
			}
		}
		t.Errorf("%s: %q, want %q\n%s", what, got, want, s.log.text())
	}
	await("before it is pushed", "deny credential")
	push := func(args ...string) {
		t.Helper()
		if status, out, errs := p.push(args...); status != exitOK {
			t.Fatalf("status %d\n%s%s", status, errs, out)
		}
	}
	file("")
	push()
	await("a tenant that is pushed", "allow acme q=10")
	file(", overrides: {speed: {burst: 77}}")
	push()
	await("with a number of its own", "allow acme q=77")
	file(", disabled: true")
	push()
	await("switched off", "deny acme disabled")
	write(t, filepath.Join(p.dir, "tenants.yaml"), "- {id: other, plan: free}\n")
	push("--prune")
	await("pruned", "deny credential")
	if strings.Contains(s.log.text(), key) {
		t.Error("a key is in the log")
	}
}

// policyOf is the quota of the limit speed in RateLimit-Policy.
func policyOf(header string) string {
	_, rest, found := strings.Cut(header, `"speed";`)
	if !found {
		return ""
	}
	quota, _, _ := strings.Cut(rest, ";")
	return quota
}

// TestPushWithoutFiles: a policy that has its tenants itself needs no more.
func TestPushWithoutFiles(t *testing.T) {
	t.Parallel()
	p := newPushes(t)
	policy := filepath.Join(p.dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte(pushedPolicy+"tenant_files: [tenants.yaml]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if status := Run([]string{"tenants", "push", policy, "--to", "redis://" + p.addr, "--dry-run"}, strings.NewReader(""), &out, &errs); status != exitOK || !strings.Contains(out.String(), "6 added") {
		t.Errorf("status %d\n%s%s", status, &errs, &out)
	}
	// A file that the policy names already is read once.
	p.want("the same file", out.String(), "--dry-run")
}
