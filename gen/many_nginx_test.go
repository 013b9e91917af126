package gen

import (
	"fmt"
	"strings"
	"testing"

	"sluice/gen/gentest"
)

// TestManyRules: the flags of many rules are longer than NGINX's longest argument,
// and the first rule that fits still decides.
func TestManyRules(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(proxied + "\nedge:\n  access:\n")
	const rules = 300
	for i := range rules {
		what := fmt.Sprintf("deny: {cidrs: [10.%d.%d.0/24]}, status: %d", i/250, i%250, 400+i%2*10)
		switch i {
		case 100:
			what = "deny: {cidrs: [10.0.0.0/8]}, mode: shadow"
		case 290:
			what = "allow: {cidrs: [10.1.0.0/16]}"
		}
		fmt.Fprintf(&b, "    - {name: blocked-network-of-somebody-else-%d, %s}\n", i, what)
	}
	b.WriteString("    - {name: rest, deny: {cidrs: [10.0.0.0/8]}, status: 418}\n")
	s := start(t, b.String())
	for i, f := range []struct{ ip, rule, shadowed, denied string }{
		{"10.0.0.1", "0", "", "400"},
		{"10.0.99.1", "99", "", "410"},
		{"10.0.101.1", "101", "100", "410"},
		{"10.0.249.1", "249", "100", "410"},
		{"10.1.39.1", "289", "100", "410"},
		{"10.1.41.1", "290", "100", ""},
		{"10.1.49.1", "290", "100", ""},
		{"10.2.1.1", "rest", "100", "418"},
		{"192.0.2.1", "", "", ""},
	} {
		s.get("/", "X-Forwarded-For", f.ip)
		line := s.logged(i + 1)[i]
		short := func(name string) string {
			return strings.TrimPrefix(field(line, name), "blocked-network-of-somebody-else-")
		}
		if short("rule") != f.rule || short("shadowed") != f.shadowed || field(line, "denied") != f.denied {
			t.Errorf("%s is logged as %s", f.ip, line)
		}
	}
}

// TestManyConditions: a rule and a limit with very many conditions are for the
// requests that meet all of them.
func TestManyConditions(t *testing.T) {
	t.Parallel()
	var when []string
	var all []string
	for i := range 130 { // with all their names longer than NGINX's longest argument
		when = append(when, fmt.Sprintf("X-Header-Number-%d: present", i))
		all = append(all, fmt.Sprintf("X-Header-Number-%d", i), "1")
	}
	s := start(t, proxied+"\nedge:\n  access:\n    - {name: many-conditions, deny: {cidrs: [10.0.0.0/8]}, status: 418, when: {headers: {"+strings.Join(when, ", ")+"}}}\n"+
		"  limits:\n    many: {per: ip, rate: 1/m, burst: 1, when: {headers: {"+strings.Join(when[:60], ", ")+"}}}\n")
	f := func(want int, ip string, headers []string) {
		t.Helper()
		if r := s.get("/", append([]string{"X-Forwarded-For", ip}, headers...)...); r.status != want {
			t.Errorf("%s with %d headers: %d, want %d", ip, len(headers)/2, r.status, want)
		}
	}
	f(418, "10.0.0.1", all)
	f(200, "10.0.0.2", all[:256])
	f(429, "10.0.0.2", all[:256])
	f(200, "10.0.0.2", all[:118])
	f(200, "10.0.0.2", all[:118])
	f(200, "192.0.2.1", all)
	f(429, "192.0.2.1", all)
}

// TestLongNames: what is long in a policy, NGINX reads: comments, host names, and
// more servers than it has connections by itself.
func TestLongNames(t *testing.T) {
	t.Parallel()
	nginx := gentest.Binary(t)
	label := strings.Repeat("a", 60)
	var hosts, rules, many strings.Builder
	for i := range 520 {
		fmt.Fprintf(&many, "  - {name: r%d, match: {hosts: [h%d.example], prefix: /}}\n", i, i)
	}
	for i := range 100 {
		fmt.Fprintf(&rules, "    - {name: %s%d, deny: {cidrs: [10.0.%d.0/24], user_agents: [x%d]}}\n", label, i, i, i)
		fmt.Fprintf(&hosts, "%s%d.%s.%s.example, ", label, i, label, label)
	}
	for _, policy := range []string{
		"edge:\n  access:\n" + rules.String(),
		"routes:\n  - {name: one, match: {hosts: [" + strings.TrimSuffix(hosts.String(), ", ") + "], prefix: /}}\n",
		"routes:\n  - {name: one, match: {hosts: [h234567890.example], prefix: /}}\n  - {name: two, match: {hosts: ['*.h234567890123456789.example'], prefix: /}}\n",
		"routes:\n" + many.String(),
	} {
		files, err := Render(compiled(t, "version: 1\nlimits: {x: {per: ip, rate: 1/s, burst: 1}}\n"+policy), Options{Full: true})
		if err == nil {
			err = Check(t.Context(), nginx, files)
		}
		if err != nil {
			t.Errorf("%.300s\n%v", policy, err)
		}
	}
}

// TestNameBucket: every length of a host name that can be fits, in NGINX's own
// opinion.
func TestNameBucket(t *testing.T) {
	t.Parallel()
	nginx := gentest.Binary(t)
	for _, n := range []int{8, 39, 41, 105, 233, 253} {
		host := strings.Repeat("abcdefgh.", 30)[:n-1] + "x"
		for _, name := range []string{host, "*." + host[:n-2]} {
			if name = strings.TrimRight(name, "."); strings.Contains(name, "..") || strings.Contains(name, ".x") {
				continue
			}
			files, err := Render(compiled(t, fmt.Sprintf("version: 1\nroutes: [{name: a, match: {hosts: ['%s'], prefix: /}}]\n", name)), Options{Full: true})
			if err == nil {
				err = Check(t.Context(), nginx, files)
			}
			if err != nil {
				t.Errorf("%d bytes: %v", len(name), err)
			}
		}
	}
}
