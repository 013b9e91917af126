package gen

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"sluice/gen/gentest"
	"sluice/policies"
)

var definition = regexp.MustCompile(`(?m)^(?:map|geo) .*?(\$\w+) \{`)

// TestNamesApart: names of limits and rules that are parts of each other, or
// differ in what NGINX cannot hold, never define one variable twice (C034).
func TestNamesApart(t *testing.T) {
	t.Parallel()
	nginx := gentest.Binary(t)
	const rest = "{per: [ip, {header: A}, {header: B}], rate: 1/s, burst: 2, only: {cidrs: [10.0.0.0/8], user_agents: [x]}, except: {cidrs: [10.1.0.0/16], user_agents: [y]}, when: {methods: [GET], headers: {C: present}}}"
	policy := "version: 1\nedge:\n  access:\n"
	for _, name := range []string{"a", "a_net", "a__net", "a-net", "A", "deny", "d", "default", "include", "volatile"} {
		policy += fmt.Sprintf("    - {name: %s, deny: {cidrs: [192.0.2.0/24], user_agents: ['%s']}, when: {methods: [GET], query: {%s: present}}}\n", name, name, "q"+regexp.MustCompile(`[^a-zA-Z]`).ReplaceAllString(name, ""))
	}
	policy += "  limits:\n"
	for _, name := range []string{"a", "a_only", "a__only", "a_not", "a-only", "a.only", "A", "none", "none_req", "a_key", "a_test1"} {
		policy += "    " + name + ": " + rest + "\n"
	}
	policy += "routes:\n"
	for i, name := range []string{"deny", "d", "all", "ALL", "a_b", "a-b", "a.b"} {
		policy += fmt.Sprintf("  - {name: %s, match: {prefix: /p%d}}\n", name, i)
	}
	p, _ := policies.Parse("policy.yaml", []byte(policy), nil)
	files, err := Render(policies.Compile(p), Options{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range definition.FindAllStringSubmatch(string(files["sluice/http.conf"]), -1) {
		if seen[m[1]] {
			t.Errorf("%s is defined twice", m[1])
		}
		if len(m[1]) > 47 {
			t.Errorf("%s is longer than NGINX takes", m[1])
		}
		seen[m[1]] = true
	}
	if err := Check(t.Context(), nginx, files); err != nil {
		t.Error(err)
	}
}

// TestZoneSizes: zones are in whole k or m, never smaller than NGINX takes, and
// hold the clients that the policy expects (C031).
func TestZoneSizes(t *testing.T) {
	t.Parallel()
	ip := policies.Per{{Kind: policies.DimIP}}
	f := func(want string, l policies.EdgeLimit, slot int64) {
		t.Helper()
		if got := sizeToken(zoneSize(&l, slot)).String(); got != want {
			t.Errorf("%d clients of %d bytes take %s; want %s", l.Expect, slot, got, want)
		}
	}
	f("33k", policies.EdgeLimit{Per: ip, Expect: 1}, slotSmall)
	f("33k", policies.EdgeLimit{Per: policies.Per{{Kind: policies.DimGlobal}}, Expect: 100000}, slotSmall)
	f("161k", policies.EdgeLimit{Per: ip, Expect: 1000}, slotSmall)
	f("4m", policies.EdgeLimit{Per: ip}, slotSmall)
	f("13m", policies.EdgeLimit{Per: ip, Expect: 100000}, slotSmall)
	f("51m", policies.EdgeLimit{Per: ip, Expect: 100000}, slotLarge)
}

// TestBurst: what the policy says at once is what NGINX lets through at once, and
// a parameter that would be 0 is left out, for NGINX refuses it (C023, C024).
func TestBurst(t *testing.T) {
	t.Parallel()
	f := func(want string, n int64, d policies.Delay) {
		t.Helper()
		burst, delay := burst(&policies.EdgeLimit{Burst: n, Delay: d})
		if got := burst.String() + " " + delay.String(); got != want {
			t.Errorf("burst %d with %+v is %q; want %q", n, d, got, want)
		}
	}
	f(" ", 1, policies.Delay{})
	f(" ", 1, policies.Delay{All: true})
	f("burst=9 nodelay", 10, policies.Delay{})
	f("burst=9 ", 10, policies.Delay{All: true})
	f("burst=9 ", 10, policies.Delay{N: 1})
	f("burst=9 delay=2", 10, policies.Delay{N: 3})
	f("burst=9 nodelay", 10, policies.Delay{N: 10})
	for _, r := range []policies.Rate{{Micro: 500_000, Per: time.Second}, {Micro: 10e6, Per: time.Hour}, {}} {
		if tok, err := rateToken(&policies.EdgeLimit{Rate: r}); err == nil {
			t.Errorf("%+v is rendered as %s", r, tok)
		}
	}
}
