package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// check runs the verb.
func (p *pushes) check(args ...string) (status int, out, errs string) {
	p.t.Helper()
	var o, e bytes.Buffer
	args = append([]string{"tenants", "check", filepath.Join(p.dir, "policy.yaml"), "--in", "redis://" + p.addr}, args...)
	status = Run(args, strings.NewReader(""), &o, &e)
	return status, o.String(), e.String()
}

// TestCheckTenants: what lets nobody in is told, with its reason, and nothing that may
// be a secret.
func TestCheckTenants(t *testing.T) {
	t.Parallel()
	p := newPushes(t)
	if status, out, errs := p.check(); status != exitOK || out != "0 records, 0 problems\n" || errs != "" {
		t.Errorf("nobody: status %d, %q, %q", status, out, errs)
	}
	if status, _, errs := p.push(); status != exitOK {
		t.Fatal(errs)
	}
	if status, out, errs := p.check(); status != exitOK || out != "6 records, 0 problems\n" || errs != "" {
		t.Errorf("what was pushed: status %d, %q, %q", status, out, errs)
	}

	// The policy loses a plan and a limit, and others have written, too.
	write(t, filepath.Join(p.dir, "policy.yaml"), strings.NewReplacer("  pro: {extends: free}\n", "", "speed:", "pace:").Replace(pushedPolicy))
	ctx := context.Background()
	p.c.HSet(ctx, "sluice:tenant:umbrella", "plan", "free", "claim", "umb")
	p.c.HSet(ctx, "sluice:tenant:typo", "plan", "free", "disable", "1")
	hash := strings.Repeat("ab", 32)
	p.c.HSet(ctx, "sluice:key:"+hash, "tenant", "umbrella", "id", "one", "plan", "pro")
	p.c.HSet(ctx, "sluice:key:"+strings.Repeat("ac", 32), "tenant", "umbrella", "id", "one")
	p.c.HSet(ctx, "sluice:key:"+strings.Repeat("ad", 32), "tenant", "nowhere", "id", "two")
	p.c.HSet(ctx, "sluice:key:"+strings.Repeat("AE", 32), "tenant", "umbrella", "id", "three")
	p.c.HSet(ctx, "sluice:key:sk_live_written_by_mistake_0123456789", "tenant", "umbrella", "id", "four")
	p.c.HSet(ctx, "sluice:claim:other", "tenant", "umbrella")
	p.c.HSet(ctx, "sluice:claim:lost", "tenant", "nowhere", "id", "x")
	p.c.HSet(ctx, "sluice:cert:"+hash, "tenant", "nowhere")
	p.c.Set(ctx, "sluice:cert:"+strings.Repeat("cd", 32), "umbrella", 0)
	const want = `tenant acme: plan: there is no plan pro; want one of free
tenant typo: "disable" is no field of it; want plan, claim, disabled, cidrs, name, override:LIMIT:NUMBER or grant:LIMIT:FROM:UNTIL
certificate abababababab... of nowhere: there is no tenant nowhere
certificate cdcdcdcdcdcd...: it is no hash
claim "lost" of nowhere: "id" is no field of it; want tenant
claim "other" of umbrella: the tenant umbrella says another claim; want the same in both
key globex-web of globex: simulate: this key meets no limit speed; want one of monthly, pace
key one of umbrella: plan: there is no plan pro; want one of free
key one of umbrella: the id one is taken by key:abababababababababababababababababababababababababababababababab, and both have the same counters; want another
key two of nowhere: there is no tenant nowhere
key three of umbrella: its name is no SHA-256 in lower-case hexadecimal, so nobody finds it
key four of umbrella: its name is no SHA-256 in lower-case hexadecimal, so nobody finds it
tenant umbrella: no record says whose the claim "umb" is, so no token finds him
17 records, 13 problems
`
	status, out, errs := p.check()
	if diff := cmp.Diff(sorted(want), sorted(out)); status != exitNo || errs != "" || diff != "" {
		t.Errorf("status %d, %s (-want +got):\n%s", status, errs, diff)
	}
	p.c.HSet(ctx, "sluice:key:sk_live_written_by_mistake_0123456789", "tenant", "umbrella")
	status, out, _ = p.check("--format", "json")
	if strings.Contains(out, "by_mistake") {
		t.Error("a key that was written by mistake is shown")
	}
	var list []recordProblem
	if err := json.Unmarshal([]byte(out), &list); err != nil || status != exitNo || len(list) != 13 || list[0].Record != "tenant:acme" {
		t.Errorf("in JSON: status %d, %v\n%s", status, err, out)
	}
}

func sorted(text string) []string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return lines
}

// TestCheckRefuses: what is wrong with the command or the policy is said, without a password.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	p := newPushes(t)
	f := func(what string, status int, says string, args ...string) {
		t.Helper()
		got, out, errs := p.check(args...)
		if got != status || out != "" || !strings.Contains(errs, says) || strings.Contains(errs, "hidden") {
			t.Errorf("%s: status %d, want %d and %q\n%s%s", what, got, status, says, errs, out)
		}
	}
	f("another format", exitUsage, "want text or json", "--format", "xml")
	f("no Redis", exitUsage, "--in: cannot open Redis", "--in", "http://user:hidden@127.0.0.1/")
	f("nowhere", exitUsage, "check needs --in", "--in", "")
	f("a Redis that is away", exitFailed, "cannot look through the records", "--in", "redis://user:hidden@127.0.0.1:1")
	write(t, filepath.Join(p.dir, "policy.yaml"), "version: 2\n")
	f("a bad policy", exitNo, "version 2 is unknown")
}
