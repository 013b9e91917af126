package gen

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
	"sluice/policies"
)

// logged are the lines of a stack's access log, once there are n.
func (s *stack) logged(n int) []string {
	s.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		text, err := os.ReadFile(filepath.Join(s.nginx.Dir, "access.log"))
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if err == nil && len(lines) >= n && lines[0] != "" {
			return lines
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the access log has %d lines; want %d: %v", len(lines), n, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// field is one NAME="VALUE" of a line of the access log.
func field(line, name string) string {
	m := regexp.MustCompile(` ` + name + `="([^"]*)"`).FindStringSubmatch(line)
	if m == nil {
		return "(none)"
	}
	return m[1]
}

// TestAccessLog: the log says which rule decided, and which one in shadow
// would have.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	s := start(t, proxied+`
edge:
  access:
    - {name: office, exempt: {cidrs: [198.18.0.0/16]}}
    - {name: watch, deny: {cidrs: [203.0.113.0/24, 10.0.0.0/8]}, mode: shadow}
    - {name: watch-too, deny: {cidrs: [203.0.113.0/24]}, mode: shadow}
    - {name: home, allow: {cidrs: [192.0.2.0/24]}}
    - {name: lan, deny: {cidrs: [10.0.0.0/8]}}
    - {name: bots, deny: {user_agents: [zgrab]}, status: 418}
  limits: {one: {per: ip, rate: 1/m, burst: 1, mode: shadow}}
`)
	for i, f := range []struct{ ip, agent, rule, shadowed, denied string }{
		{"198.18.1.1", "", "office", "", ""},
		{"203.0.113.1", "", "", "watch", ""},
		{"192.0.2.1", "zgrab", "home", "", ""},
		{"10.1.1.1", "", "lan", "watch", "403"},
		{"1.1.1.1", "zgrab", "bots", "", "418"},
		{"1.1.1.1", "", "", "", ""},
		{"1.1.1.1", "", "", "", ""},
	} {
		s.get("/", "X-Forwarded-For", f.ip, "User-Agent", f.agent)
		line := s.logged(i + 1)[i]
		if field(line, "rule") != f.rule || field(line, "shadowed") != f.shadowed || field(line, "denied") != f.denied {
			t.Errorf("%s %s is logged as %s", f.ip, f.agent, line)
		}
		if want := map[bool]string{true: "REJECTED_DRY_RUN/", false: ""}[i == 6]; !strings.HasPrefix(field(line, "edge"), want) {
			t.Errorf("%s is logged as %s", f.ip, line)
		}
	}
	s.noWarnings()
}

// TestAccessStatuses: every status that a rule may deny with is what the client
// sees, with our body; 444 closes the connection.
func TestAccessStatuses(t *testing.T) {
	t.Parallel()
	var policy strings.Builder
	policy.WriteString("version: 1\nedge:\n  access:\n")
	var statuses []int
	for status := 400; status < 500; status++ {
		statuses = append(statuses, status)
		fmt.Fprintf(&policy, "    - {name: s%d, deny: all, status: %d, when: {query: {s: '^%d$'}}}\n", status, status, status)
	}
	s := start(t, policy.String())
	for _, status := range statuses {
		got := s.get(fmt.Sprintf("/x.png?s=%d", status))
		if status == 444 {
			if got.status != 0 {
				t.Errorf("444 is %+v", got)
			}
			continue
		}
		if got.status != status || got.header.Get("X-Sluice-Reason") != "access" || got.header.Get("Retry-After") != "" || got.header.Get("Cache-Control") != "no-store" ||
			!slices.Equal(got.header.Values("Content-Type"), []string{"application/problem+json"}) || !strings.Contains(got.body, fmt.Sprintf(`"status":%d,`, status)) {
			t.Errorf("%d is %+v", status, got)
		}
	}
	if got := s.get("/?s=200"); got.status != 200 {
		t.Errorf("no rule fits, and it is %d", got.status)
	}
	s.noWarnings()
}

// TestWhen: every kind of line, in every part of a request, absent, empty,
// present, first of several.
func TestWhen(t *testing.T) {
	t.Parallel()
	var policy strings.Builder
	policy.WriteString("version: 1\nedge:\n  access:\n")
	for _, kind := range []string{"headers", "cookies", "query"} {
		for _, test := range []struct{ name, is string }{{"p", "present"}, {"a", "absent"}, {"r", "'^[a-c]{2}$'"}, {"l", "['^x', 'y$']"}} {
			fmt.Fprintf(&policy, "    - {name: %s-%s, deny: all, routes: [%s-%s], when: {%s: {X-Value: %s}}}\n", kind, test.name, kind, test.name, kind, test.is)
		}
	}
	policy.WriteString("    - {name: m, deny: all, routes: [m], when: {methods: [PUT, DELETE]}}\nroutes:\n  - {name: m, match: {prefix: /m}}\n")
	for _, kind := range []string{"headers", "cookies", "query"} {
		for _, test := range "parl" {
			fmt.Fprintf(&policy, "  - {name: %s-%c, match: {prefix: /%s-%c}}\n", kind, test, kind, test)
		}
	}
	s := start(t, policy.String())
	for value, denied := range map[string]string{
		"": "a", "ab": "pr", "abc": "p", "ab\\n": "p", "xy": "pl", "zy": "pl", "zx": "p", "AB": "p", "!": "p",
	} {
		for _, kind := range []string{"headers", "cookies", "query"} {
			for _, test := range "parl" {
				for _, missing := range []bool{false, true} {
					if missing && value != "" {
						continue
					}
					path, headers := fmt.Sprintf("/%s-%c", kind, test), []string{}
					switch {
					case missing:
					case kind == "headers":
						headers = []string{"X-Value", value}
					case kind == "cookies":
						headers = []string{"Cookie", "other=ab; X-Value=" + value + "; X-Value=later"}
					default:
						path += "?y=ab&X-Value=" + value + "&X-Value=later"
					}
					want := 200
					if strings.ContainsRune(denied, test) {
						want = 403
					}
					if got := s.get(path, headers...); got.status != want {
						t.Errorf("%s with %q (missing: %v) is %d; want %d", path, value, missing, got.status, want)
					}
				}
			}
		}
	}
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "PUT": 403, "DELETE": 403, "POST": 200} {
		if got := s.do(method, "/m", nil); got.status != want {
			t.Errorf("%s is %d; want %d", method, got.status, want)
		}
	}
	s.noWarnings()
}

// TestListFiles: entries out of files are as good as those in the policy.
func TestListFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, map[string]string{
		"policy.yaml": `version: 1
client_ip: {trusted_proxies: [{file: proxies.txt}]}
edge:
  access:
    - {name: listed, deny: {cidrs: [192.0.2.0/24, {file: bad.txt}], user_agents: [{file: agents.txt}]}}
`,
		"proxies.txt": "# ours\n127.0.0.1\n",
		"bad.txt":     "\n# networks\n198.51.100.0/24  # one\n2001:db8:bad::/48\n\t203.0.113.7\n",
		"agents.txt":  "(?i)zgrab # a scanner\n^#hash\n",
	})
	p, ds := policies.Load(filepath.Join(dir, "policy.yaml"))
	if ds.HasErrors() {
		t.Fatal(ds)
	}
	s := startCompiled(t, policies.Compile(p), func(Files, string) {})
	for _, f := range []struct {
		ip, agent string
		want      int
	}{
		{"192.0.2.1", "", 403}, {"198.51.100.9", "", 403}, {"2001:db8:bad:1::1", "", 403}, {"203.0.113.7", "", 403},
		{"203.0.113.8", "", 200}, {"1.1.1.1", "ZGrab/0", 403}, {"1.1.1.1", "#hash", 403}, {"1.1.1.1", "x#hash", 200},
	} {
		if got := s.get("/", "X-Forwarded-For", f.ip, "User-Agent", f.agent); got.status != f.want {
			t.Errorf("%s %q is %d; want %d", f.ip, f.agent, got.status, f.want)
		}
	}
	s.noWarnings()
}

// TestNestedNetworks: the order of rules decides, not the size of their
// networks, and a network twice in one rule is one.
func TestNestedNetworks(t *testing.T) {
	t.Parallel()
	s := start(t, proxied+`
edge:
  access:
    - {name: small, allow: {cidrs: [10.1.1.0/24, "2001:db8:1:1::/64"]}}
    - {name: middle, deny: {cidrs: [10.1.0.0/16, 10.1.0.0/16, 10.1.2.0/24, "2001:db8:1::/48"]}, status: 404}
    - {name: large, allow: {cidrs: [10.0.0.0/8, "2001:db8::/32"]}}
    - {name: inside, deny: {cidrs: [10.2.3.0/24]}}
    - {name: rest, deny: {cidrs: [0.0.0.0/0, "::/0"]}, status: 410}
`)
	for ip, want := range map[string]int{
		"10.1.1.1": 200, "10.1.2.1": 404, "10.1.3.1": 404, "10.2.3.1": 200, "10.9.9.9": 200, "11.0.0.1": 410, "0.0.0.0": 410, "255.255.255.254": 410,
		"2001:db8:1:1::5": 200, "2001:db8:1:2::5": 404, "2001:db8:2::5": 200, "2001:db9::1": 410, "::ffff:10.1.2.1": 404, "64:ff9b::10.1.1.1": 200,
	} {
		if got := s.get("/", "X-Forwarded-For", ip); got.status != want {
			t.Errorf("%s is %d; want %d", ip, got.status, want)
		}
	}
	s.noWarnings()
}
