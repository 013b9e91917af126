package cmd

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// largePolicy writes a policy of 1,000 routes and 10,000 tenants, and a file of
// tests for it.
func largePolicy(b *testing.B) (policy, tests string) {
	b.Helper()
	var p, f strings.Builder
	p.WriteString("version: 1\nidentity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}\n")
	p.WriteString("edge: {limits: {per_ip: {per: ip, rate: 100/s, burst: 200}}}\n")
	p.WriteString("plans:\n  free: {limits: {speed: {per: key, rate: 5/s, burst: 20}}}\n  pro: {extends: free, limits: {speed: {rate: 50/s, burst: 200}, org: {per: tenant, rate: 100/s, burst: 400}}}\n")
	p.WriteString("tenants:\n")
	for i := range 10_000 {
		fmt.Fprintf(&p, "  - {id: t%d, plan: pro, keys: [{id: k%d, sha256: %064x}], overrides: {speed: {burst: %d}}}\n", i, i, i+1, 300+i%7)
	}
	p.WriteString("routes:\n")
	for i := range 1000 {
		fmt.Fprintf(&p, "  - {name: r%d, match: {prefix: /v1/r%d}, cost: %d}\n", i, i, 1+i%9)
	}
	f.WriteString("tests:\n")
	for i := range 50 {
		fmt.Fprintf(&f, "  - name: test %d\n    requests:\n      - {at: 0s, times: 20, key: k%d, url: /v1/r%d, expect: {status: 200, plan: pro}}\n      - {at: 1s, url: /v1/r%d, expect: {status: 200, plan: free}}\n", i, 17*i, 9*i, 9*i+1)
	}
	dir := b.TempDir()
	policy, tests = filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "policy_test.yaml")
	for name, text := range map[string]string{policy: p.String(), tests: f.String()} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	return policy, tests
}

// BenchmarkExplain is sluice explain on a large policy, from its file on.
func BenchmarkExplain(b *testing.B) {
	policy, _ := largePolicy(b)
	benchmarkVerb(b, "explain", policy, "--key", "k77", "/v1/r500")
}

// BenchmarkExplainTenant is the table of a tenant's limits.
func BenchmarkExplainTenant(b *testing.B) {
	policy, _ := largePolicy(b)
	benchmarkVerb(b, "explain", policy, "--tenant", "t77")
}

// BenchmarkTest is sluice test with fifty tests on a large policy.
func BenchmarkTest(b *testing.B) {
	_, tests := largePolicy(b)
	benchmarkVerb(b, "test", tests)
}

func benchmarkVerb(b *testing.B, args ...string) {
	for b.Loop() {
		var out, errs bytes.Buffer
		if status := Run(args, nil, &out, &errs); status != exitOK {
			b.Fatalf("status %d: %.2000s%.2000s", status, &out, &errs)
		}
	}
}
