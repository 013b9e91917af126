package edge

import (
	"fmt"
	"testing"
	"time"
)

// TestBound: beyond its bound a rate forgets some key for each new one; a policy
// that expects more clients has room for them.
func TestBound(t *testing.T) {
	t.Parallel()
	const policy = `version: 1
edge:
  limits:
    few: {per: ip, rate: 1/m, burst: 5}
    many: {per: [ip, server], rate: 1/m, burst: 5, expect: 200}
routes: [{name: all, match: {prefix: /}}]
`
	m := model(t, policy)
	m.Bound(100)
	for i := range 300 {
		enter(m, get("/", fmt.Sprintf("192.0.%d.%d", i/250, i%250)), time.Duration(i)*time.Millisecond)
	}
	for i, want := range []int{100, 200} {
		if got := len(m.limits[i].zone.buckets); got != want {
			t.Errorf("%s holds %d keys, want %d", m.limits[i].Name, got, want)
		}
	}
}

// TestInherit: what a rate has counted lives on in a Model of another policy, where
// it has the same name and counts by the same; its numbers may be others.
func TestInherit(t *testing.T) {
	t.Parallel()
	const policy = `version: 1
edge: {limits: {a: {per: %s, rate: 1/s, burst: %d}}}
routes: [{name: all, match: {prefix: /}}]
`
	for _, f := range []struct {
		per   string
		burst int
		want  Verdict
	}{
		{"ip", 3, EdgeRate},
		{"ip", 2, EdgeRate},
		{"ip", 4, Passed},
		{"[ip, route]", 3, Passed},
	} {
		old := model(t, fmt.Sprintf(policy, "ip", 3))
		for range 3 {
			enter(old, get("/", "192.0.2.1"), 0)
		}
		m := model(t, fmt.Sprintf(policy, f.per, f.burst))
		m.Inherit(old)
		if v := enter(m, get("/", "192.0.2.1"), 0); v.Verdict != f.want {
			t.Errorf("per %s, burst %d: %v, want %v", f.per, f.burst, v.Verdict, f.want)
		}
	}
}
