package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// largePolicy has so many tenants and routes, all of them good.
func largePolicy(tenants, routes int) *Policy {
	var b strings.Builder
	b.WriteString(`version: 1
identity:
  sources: [{api_key: {header: X-API-Key}}]
  missing: {plan: p0}
limits:
  backend: {per: global, rate: 20000/s, burst: 40000}
plans:
`)
	for i := range 20 {
		fmt.Fprintf(&b, "  p%d: {limits: {speed: {per: key, rate: 10/s, burst: 50}, org: {per: tenant, rate: 20/s, burst: 100}}}\n", i)
	}
	b.WriteString("edge:\n  access:\n")
	for i := range 200 {
		fmt.Fprintf(&b, "    - {name: a%d, deny: {cidrs: [10.%d.0.0/16, 192.0.2.%d]}, routes: [r%d]}\n", i, i, i, i%routes)
	}
	b.WriteString("routes:\n")
	for i := range routes {
		fmt.Fprintf(&b, "  - {name: r%d, match: {prefix: /r%d}, cost: %d, plans: [p%d, p%d]}\n", i, i, 1+i%50, i%20, (i+1)%20)
	}
	b.WriteString("  - {name: all, match: {prefix: /}}\ntenants:\n")
	for i := range tenants {
		fmt.Fprintf(&b, "  - {id: t%d, plan: p%d, overrides: {speed: {burst: 60}}, keys: [{id: k%d, sha256: %064x}, {id: l%d, sha256: %064x}]}\n",
			i, i%20, i, 2*i+1, i, 2*i+2)
	}
	p, found := decodeOnly("policy.yaml", []byte(b.String()), files{})
	if found.HasErrors() {
		panic("BUG: " + found[0].String())
	}
	return p
}

// TestValidateIsQuick wants a large site checked in well under a second.
func TestValidateIsQuick(t *testing.T) {
	p := largePolicy(10_000, 1_000)
	begin := time.Now()
	found := p.Validate()
	if took := time.Since(begin); took > 5*time.Second { // far above, for slow machines and the race detector
		t.Errorf("took %s", took)
	}
	if len(found) > 0 {
		t.Errorf("%d findings, the first: %v", len(found), found[0])
	}
}

func BenchmarkValidate(b *testing.B) {
	p := largePolicy(10_000, 1_000)
	for b.Loop() {
		p.Validate()
	}
}
