package policies

import (
	"fmt"
	"strings"
	"testing"
)

// TestPos looks places up as checks do.
func TestPos(t *testing.T) {
	t.Parallel()
	src := "version: 1\n" +
		"x-match: &match {prefix: /merged, methods: [GET]}\n" +
		"routes:\n" +
		"  - name: a\n" +
		"    match:\n" +
		"      prefix: /é\n" +
		"      hosts: [\"é\", b.example]\n" +
		"  - {name: b, match: {<<: *match, prefix: /own}}\n" +
		"  - {name: c, match: *match}\n" +
		"plans: {v1.5: {limits: {}}}\n" +
		"tenant_files: [t.yaml, u.yaml]\n"
	tenants := map[FileName]string{
		"t.yaml": "# two\n- {id: t0, plan: free}\n- id: t1\n  plan: free\n",
		"u.yaml": "- {id: u0, plan: free}\n",
	}
	p, _ := Parse("dir/policy.yaml", []byte(src), func(f FileName) ([]byte, error) { return []byte(tenants[f]), nil })
	tests := []struct {
		path string
		want Pos
	}{
		{"", Pos{"dir/policy.yaml", 1, 1}},
		{"version", Pos{"dir/policy.yaml", 1, 10}},
		{"routes[0].match", Pos{"dir/policy.yaml", 5, 5}},
		{"routes[0].match.regex", Pos{"dir/policy.yaml", 5, 5}},
		{"routes[0].match.prefix", Pos{"dir/policy.yaml", 6, 15}},
		{"routes[0].match.hosts[1]", Pos{"dir/policy.yaml", 7, 21}},
		{"routes[1].match.prefix", Pos{"dir/policy.yaml", 8, 43}},
		{"routes[1].match.methods[0]", Pos{"dir/policy.yaml", 2, 45}},
		{"routes[2].match", Pos{"dir/policy.yaml", 9, 22}},
		{"routes[2].match.prefix", Pos{"dir/policy.yaml", 2, 26}},
		{"routes[9].match", Pos{"dir/policy.yaml", 3, 1}},
		{`plans."v1.5".limits`, Pos{"dir/policy.yaml", 10, 24}},
		{"plans.pro", Pos{"dir/policy.yaml", 10, 8}},
		{"tenants[1].plan", Pos{"dir/t.yaml", 4, 9}},
		{"tenants[2].plan", Pos{"dir/u.yaml", 1, 18}},
		{"tenants[2].keys[0].id", Pos{"dir/u.yaml", 1, 3}},
		{"notifications[0]", Pos{"dir/policy.yaml", 1, 1}},
	}
	for _, tt := range tests {
		if got := p.pos(tt.path); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.path, got, tt.want)
		}
	}
	if got := (&Policy{}).pos("routes[0]"); got != (Pos{}) {
		t.Errorf("a policy without a file: got %v", got)
	}
}

// TestAliasBomb reads small files that would be large policies, and deep ones.
// What was not bounded would not end: "merges" stands for 3 to the power of 60.
func TestAliasBomb(t *testing.T) {
	t.Parallel()
	var wide strings.Builder
	wide.WriteString("version: 1\nx-l: &l {a0: &x {per: ip, rate: 1/s, burst: 1}")
	for i := range 2000 {
		fmt.Fprintf(&wide, ", a%d: *x", i+1)
	}
	wide.WriteString("}\nplans:\n")
	for i := range 2000 {
		fmt.Fprintf(&wide, "  p%d: {limits: *l}\n", i)
	}
	merges := "version: 1\nx-0: &m0 {a: 1}\n"
	for i := range 60 {
		merges += fmt.Sprintf("x-%d: &m%d {<<: [*m%d, *m%d, *m%d]}\n", i+1, i+1, i, i, i)
	}
	merges += "limits: {a: *m60}\n"
	tests := map[string]struct{ src, rule string }{
		"wide":     {wide.String(), ruleAlias},
		"merges":   {merges, ruleAlias},
		"deep":     {"version: 1\nx: " + strings.Repeat("[", 50_000), ruleSyntax},
		"deep end": {"version: 1\nmode: " + strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000), ruleShape},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, found := Parse("policy.yaml", []byte(tt.src), nil)
			hit := false
			for _, d := range found {
				hit = hit || d.Rule == tt.rule
			}
			if !hit {
				t.Errorf("no finding of %s among %d", tt.rule, len(found))
			}
		})
	}
}
