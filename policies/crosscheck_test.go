package policies

import (
	"strings"
	"testing"
)

// TestCrossChecks wants the findings of reading and of Validate in one run, and
// none that only follow from something that could not be read.
func TestCrossChecks(t *testing.T) {
	t.Parallel()
	const plans = "version: 1\nidentity: {sources: [{api_key: {header: X-API-Key}}]}\n" +
		"routes: [{name: all, match: {prefix: /}}]\n"
	tests := []struct {
		name, src string
		want      []string // the rules, in order
	}{
		{"both", plans + "plans: {free: {limits: {a: {per: key, rate: 1/s, burst: 1}}}}\n" +
			"tenants: [{id: t, plan: gone}]\nresponses: {body: xml}\n", []string{rulePlan, ruleWord}},
		{"a plan that could not be read is no unknown plan", plans + "plans: {f ree: {limits: {a: {per: key, rate: 1/s, burst: 1}}}}\n" +
			"tenants: [{id: t, plan: free}]\n", []string{ruleName}},
		{"a misspelt section could be any", plans + "plan: {free: {}}\ntenants: [{id: t, plan: free}]\n", []string{ruleUnknown}},
		{"another section is still checked", plans + "client_ip: {header: X-Forwarded-For, ipv6_prefix: 1}\nnotifications: [{webhok: a}]\n",
			[]string{ruleNoProxies, ruleIPv6Prefix, ruleUnknown}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, found := Parse("policy.yaml", []byte(tt.src), nil)
			var rules []string
			for _, d := range found {
				if !d.Warning {
					rules = append(rules, d.Rule)
				}
			}
			if got, want := strings.Join(rules, " "), strings.Join(tt.want, " "); got != want {
				t.Errorf("got %s, want %s\n%v", got, want, found)
			}
		})
	}
}
