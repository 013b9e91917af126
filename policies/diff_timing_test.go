package policies

import (
	"fmt"
	"strings"
	"testing"
)

// crowded is a policy of 1,000 routes and 10,000 tenants with two keys each.
func crowded() string {
	var b strings.Builder
	b.WriteString("version: 1\nidentity: {sources: [{api_key: {header: X-Key}}], missing: {plan: p0}}\nplans:\n")
	for i := range 20 {
		fmt.Fprintf(&b, "  p%d: {limits: {speed: {per: key, rate: %d/s, burst: 50}, monthly: {per: tenant, quota: 10000/month}}}\n", i, i+1)
	}
	b.WriteString("routes:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  - {name: r%d, match: {prefix: /v%d/%d}, cost: 2}\n", i, i%7, i)
	}
	b.WriteString("  - {name: rest, match: {prefix: /}}\ntenants:\n")
	for i := range 10_000 {
		extra := ""
		if i%10 == 0 {
			extra = fmt.Sprintf(", overrides: {speed: {rate: %d/s}}", i%50+1)
		}
		fmt.Fprintf(&b, "  - {id: t%d, plan: p%d%s, keys: [{id: k%d, sha256: %064x}, {id: l%d, sha256: %064x}]}\n", i, i%20, extra, i, i+1, i, i+1_000_000)
	}
	return b.String()
}

// BenchmarkDiff compares two policies of 1,000 routes and 10,000 tenants that
// differ in a plan that many have, in tenants and in routes; read says what it
// takes to read and check both first, as `sluice diff` does.
func BenchmarkDiff(b *testing.B) {
	old := crowded()
	now := strings.NewReplacer("rate: 7/s, burst: 50", "rate: 7/s, burst: 40", "cost: 2", "cost: 3", "plan: p3", "plan: p4").Replace(old)
	x, y := good(b, old), good(b, now)
	b.Run("compare", func(b *testing.B) {
		for b.Loop() {
			if d := Diff(x, y); len(d.Changes) < 3 {
				b.Fatal(told(d))
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			good(b, old)
			good(b, now)
		}
	})
}
