package cmd

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asksAsWorker tells whether README starts the client of the examples.
func asksAsWorker(words []string) bool {
	return len(words) > 2 && strings.Join(words[:3], " ") == "go run ./examples/client"
}

// TestReadmeWorker: the worker that README starts does its jobs on a running service,
// no more at a time than its tenant may, and is told when it is refused for good.
func TestReadmeWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "client")
	if out, err := exec.Command("go", "build", "-o", program, "../examples/client").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}]}
plans: {free: {limits: {jobs: {per: tenant, concurrency: 1, lease: 1h}, all: {per: tenant, quota: 30/month}}}}
tenants: [{id: acme, plan: free}]
routes: [{name: search, match: {prefix: /}, cost: 5}]
`)
	s := startService(t, policy, "memory")
	ran := 0
	for _, block := range blocks(t, "sh") {
		for line := range strings.Lines(block) {
			words := strings.Fields(line)
			if !asksAsWorker(words) {
				continue
			}
			ran++
			began := time.Now()
			out, err := exec.Command(program, append([]string{"--service", s.addr}, words[3:]...)...).CombinedOutput()
			if err != nil || strings.Count(string(out), "done, for 5 units\n") != 3 {
				t.Errorf("README: %s%v\n%s", line, err, out)
			}
			// One at a time, 100 ms each, whoever comes too early waits a second.
			if took := time.Since(began); took < 300*time.Millisecond {
				t.Errorf("three jobs took %s: some ran at the same time", took)
			}
		}
	}
	if ran != 1 {
		t.Fatalf("README starts the worker %d times, want 1", ran)
	}
	// 15 of 30 are left: a job that no quota can hold, and nobody's tenant.
	for _, refused := range []struct{ what, args, want string }{
		{"more than there is ever", "--tenant acme --cost 31", "refused for good: too_large all"},
		{"nobody", "--tenant nobody", "refused for good: credential"},
		{"no such route", "--tenant acme --route serach", `route "serach" is not in the policy`},
	} {
		out, err := exec.Command(program, append([]string{"--service", s.addr, "--route", "search"}, strings.Fields(refused.args)...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), refused.want) {
			t.Errorf("%s: %v\n%s\nwant %q", refused.what, err, out, refused.want)
		}
	}
}
