package cmd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice/cmd/replay"
	"sluice/cmd/trial"
	"sluice/gen/gentest"
	"sluice/policies"
	"sluice/policies/edge"
)

// TestAllAlike: the same policies and requests through NGINX and the running
// service, through explain, test and replay: the same verdict, limit and headers.
// Policies and requests are drawn; rates are so slow that the time of a run tells
// nothing but seconds.
func TestAllAlike(t *testing.T) {
	gentest.Binary(t)
	requests := 350
	if testing.Short() {
		requests = 60
	}
	for i := range 6 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			a := startAlike(t, rand.New(rand.NewPCG(seed, 0)))
			for n := range requests {
				a.one(n)
				if t.Failed() {
					t.Fatalf("the policy:\n%s", a.text)
				}
			}
			a.varied()
			a.explained()
			a.tested()
			a.replayed()
		})
	}
}

// alike is one policy on all of them.
type alike struct {
	t      *testing.T
	r      *rand.Rand
	text   string
	policy string
	url    string
	client *http.Client
	trial  *trial.Trial
	seen   []alikeAnswer
}

// alikeAnswer is one request and what came of it, on NGINX.
type alikeAnswer struct {
	method, path, host, ip string
	key, agent             string
	at                     time.Time
	took                   time.Duration
	status                 int
	denied                 bool
	header                 http.Header
	limit                  string // as the trial names it
}

func startAlike(t *testing.T, r *rand.Rand) *alike {
	a := &alike{t: t, r: r, client: &http.Client{Timeout: 20 * time.Second}}
	dir := t.TempDir()
	a.policy = filepath.Join(dir, "policy.yaml")
	var c *policies.Compiled
	for range 1000 { // some that are drawn never let a request through
		a.text = alikePolicy(r)
		write(t, a.policy, a.text)
		if c, _ = ready(policies.Load(a.policy)); c != nil {
			break
		}
	}
	if c == nil {
		t.Fatalf("no good policy was drawn:\n%s", a.text)
	}
	app, listen := startApp(t), gentest.FreePort(t)
	svc := startService(t, a.policy, "memory")
	run(t, "render", a.policy, "--out", dir, "--full", "--no-deny-cache", "--listen", listen, "--upstream", app.addr,
		"--authz", svc.addr, "--datagrams", svc.datagrams)
	ask := filepath.Join(dir, "sluice/ask.conf")
	fill(t, ask, ask, "proxy_connect_timeout 100ms", "proxy_connect_timeout 10s", "proxy_send_timeout 200ms", "proxy_send_timeout 10s", "proxy_read_timeout 200ms", "proxy_read_timeout 10s")
	gentest.Start(t, dir, "nginx.conf", listen)
	a.url = "http://" + listen
	t.Cleanup(a.client.CloseIdleConnections)
	var err error
	if a.trial, err = trial.New(c, trial.Options{Start: time.Now()}); err != nil {
		t.Fatal(err)
	}
	return a
}

// alikePolicy draws a policy.
func alikePolicy(r *rand.Rand) string {
	var b strings.Builder
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	maybe := func(format string, args ...any) {
		if r.IntN(3) > 0 {
			fmt.Fprintf(&b, format, args...)
		}
	}
	n := func(from, to int) int { return from + r.IntN(to-from+1) }
	fmt.Fprintf(&b, "version: 1\nmode: %s\nclient_ip: {trusted_proxies: [127.0.0.1]}\n", pick("enforce", "enforce", "enforce", "enforce", "shadow"))
	fmt.Fprintf(&b, "responses: {headers: [%s], retry_after_jitter: 0%%}\n", pick("ratelimit", "ratelimit, x-ratelimit", "ratelimit-12", "ratelimit-3, x-ratelimit"))
	fmt.Fprintf(&b, "identity:\n  sources: [{api_key: {header: X-API-Key}}, {api_key: {header: Authorization, scheme: Bearer, prefix: sk_}}, {api_key: {query: key}}]\n")
	fmt.Fprintf(&b, "  missing: {%s}\n  invalid: {%s}\n", pick("plan: anonymous", "plan: anonymous", "deny: 401"), pick("plan: anonymous", "deny: 401"))
	b.WriteString("edge:\n  access:\n    - {name: ours, exempt: {cidrs: [192.0.2.250]}}\n")
	maybe("    - {name: bad, deny: {cidrs: [192.0.2.240/28], user_agents: ['(?i)bot']}, status: %s}\n", pick("403", "404", "451"))
	maybe("    - {name: seen, deny: {user_agents: [odd]}, mode: shadow}\n")
	maybe("    - {name: closed, deny: all, routes: [pay], when: {methods: [DELETE]}}\n")
	b.WriteString("  limits:\n    per_ip: {per: ip, rate: 1/m, burst: " + strconv.Itoa(n(10, 50)) + "}\n")
	maybe("    per_key: {per: {header: X-API-Key}, rate: 1/m, burst: %d, routes: [search, pay], when: {headers: {X-API-Key: present}}}\n", n(10, 40))
	maybe("    conns: {per: server, connections: 50}\n")
	b.WriteString("plans:\n  anonymous:\n    limits:\n")
	fmt.Fprintf(&b, "      speed: {per: ip, rate: %d/h, burst: %d}\n", n(1, 20), n(3, 25))
	b.WriteString("  free:\n    limits:\n")
	fmt.Fprintf(&b, "      speed: {per: key, rate: %d/h, burst: %d}\n", n(1, 20), n(5, 60))
	maybe("      org: {per: tenant, rate: 3/h, burst: %d}\n", n(20, 90))
	maybe("      day: {per: tenant, quota: %d/day, overage: %d%s}\n", n(30, 90), n(1, 9), pick("", ", status: 429"))
	maybe("      hours: {per: [tenant, route], window: %d/2h, algorithm: %s}\n", n(10, 50), pick("fixed", "log"))
	maybe("      new: {per: tenant, rate: 1/h, burst: %d, mode: shadow}\n", n(2, 20))
	fmt.Fprintf(&b, "  pro:\n    extends: free\n    priority: high\n    limits:\n      speed: {burst: %d}\n", n(30, 90))
	hash := func(key string) string { sum := sha256.Sum256([]byte(key)); return hex.EncodeToString(sum[:]) }
	fmt.Fprintf(&b, "tenants:\n  - {id: acme, plan: pro, keys: [{id: a1, sha256: %s}, {id: a2, sha256: %s, plan: free}], overrides: {speed: {burst: %d}}}\n", hash("sk_a1"), hash("sk_a2"), n(20, 60))
	fmt.Fprintf(&b, "  - {id: beta, plan: free, %skeys: [{id: b1, sha256: %s}]}\n", pick("", "", "disabled: true, ", "cidrs: [192.0.2.0/26], "), hash("sk_b1"))
	fmt.Fprintf(&b, "limits: {all: {per: global, rate: 60/h, burst: %d}}\n", n(150, 400))
	fmt.Fprintf(&b, "routes:\n  - {name: health, match: {exact: /healthz}, exempt: true}\n")
	fmt.Fprintf(&b, "  - {name: search, match: {prefix: /search}, cost: %d%s}\n", n(1, 6), pick("", ", plans: [free, pro]"))
	fmt.Fprintf(&b, "  - {name: pay, match: {prefix: /pay, methods: [POST]}, on_store_down: closed, limits: {paid: {per: [ip, route], rate: 1/h, burst: %d, count: requests}}}\n", n(2, 9))
	fmt.Fprintf(&b, "  - {name: big, match: {regex: '^/big/[0-9]+$'}, cost: %d}\n", n(10, 20))
	b.WriteString("  - {name: site, match: {prefix: /site}, service: false}\n  - {name: rest, match: {prefix: /}}\n")
	return b.String()
}

// one sends one request to NGINX and tries the same.
func (a *alike) one(i int) {
	pick := func(list ...string) string { return list[a.r.IntN(len(list))] }
	x := alikeAnswer{
		method: pick("GET", "GET", "POST", "DELETE"), host: pick("a.example", "b.example"),
		path:  pick("/search", "/search/x?q=1", "/pay", "/pay/1", "/big/7", "/big/x", "/site", "/", "/a/../search", "/healthz"),
		ip:    "192.0.2." + pick("1", "2", "3", "100", "250", "245"),
		key:   pick("", "", "sk_a1", "sk_a2", "sk_b1", "sk_nobody"),
		agent: pick("curl", "curl", "curl", "bot/1", "odd"),
	}
	req, err := http.NewRequest(x.method, a.url+x.path, nil)
	if err != nil {
		a.t.Fatal(err)
	}
	req.URL.Opaque, req.Host = x.path, x.host
	header := x.fields()
	for _, f := range header {
		req.Header.Set(f.Name, f.Value)
	}
	req.Header.Set("X-Forwarded-For", x.ip)
	x.at = time.Now()
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	_ = resp.Body.Close()
	x.took, x.status, x.header = time.Since(x.at), resp.StatusCode, resp.Header
	trace := &trial.Trace{}
	a.trial.Run(&trial.Request{
		Request: edge.Request{Peer: netip.MustParseAddr(x.ip), Method: x.method, URI: x.path, Host: x.host, Header: header},
		At:      x.at, Trace: trace,
	}, func(o *trial.Outcome) {
		x.limit, x.denied = o.Limit, o.Denied
		a.compare(i, &x, o.Status, o.Header())
	})
	e := a.trial.Explain(trace)
	if e.Status != x.status || e.Denied != x.denied || e.Limit != x.limit || len(e.Header) != len(trace.Header) {
		a.t.Errorf("request %d: explained as %d %q %v; came %d %q", i, e.Status, e.Limit, e.Header, x.status, x.limit)
	}
	a.seen = append(a.seen, x)
}

// fields are the headers of a request but the proxy's.
func (x *alikeAnswer) fields() []edge.Field {
	out := []edge.Field{{Name: "User-Agent", Value: x.agent}}
	if x.key != "" {
		out = append(out, edge.Field{Name: "X-API-Key", Value: x.key})
	}
	return out
}

// ours are the headers of ours that clients see.
func ours() []string {
	return []string{
		"RateLimit", "RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset",
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After", "WWW-Authenticate",
		policies.HeaderLimit, policies.HeaderReason, policies.HeaderDegraded,
	}
}

// compare holds what came from NGINX against what the trial says.
func (a *alike) compare(i int, x *alikeAnswer, status int, header []edge.Field) {
	want := http.Header{}
	for _, f := range header {
		want.Set(f.Name, f.Value)
	}
	if x.status != status {
		a.t.Errorf("request %d, %s %s of %q from %s: NGINX answered %d, the trial says %d; %v", i, x.method, x.path, x.key, x.ip, x.status, status, header)
		return
	}
	for _, name := range ours() {
		if name == "RateLimit" && want.Get("RateLimit") == "" && x.header.Get("RateLimit") == `"the-app";r=1` {
			continue // a route that the service does not know, or another dialect
		}
		if !nearly(name, x.header.Get(name), want.Get(name), x.took) {
			a.t.Errorf("request %d, %s %s of %q from %s is %d: NGINX says %s: %s, the trial %s", i, x.method, x.path, x.key, x.ip, status, name, x.header.Get(name), want.Get(name))
		}
	}
}

var seconds = regexp.MustCompile(`;[tw]=(\d+)$|^(\d+)$`)

// nearly tells whether two headers say the same, but for seconds that may have
// gone by between NGINX and the trial.
func nearly(name, a, b string, took time.Duration) bool {
	if a == b {
		return true
	}
	if name != "RateLimit" && name != "Retry-After" && !strings.HasSuffix(name, "-Reset") {
		return false
	}
	at, bt := seconds.FindStringSubmatch(cutCost(a)), seconds.FindStringSubmatch(cutCost(b))
	if at == nil || bt == nil || seconds.ReplaceAllString(cutCost(a), "") != seconds.ReplaceAllString(cutCost(b), "") {
		return false
	}
	x, _ := strconv.Atoi(at[1] + at[2])
	y, _ := strconv.Atoi(bt[1] + bt[2])
	return max(x-y, y-x) <= 1+int(took.Seconds())
}

// cutCost takes the cost off the end, which says no time.
func cutCost(s string) string { s, _, _ = strings.Cut(s, ";c="); return s }

// varied: not all requests went one way, or nothing was compared.
func (a *alike) varied() {
	reasons := map[string]int{}
	for i := range a.seen {
		reasons[strconv.FormatBool(a.seen[i].denied)+a.seen[i].header.Get(policies.HeaderReason)]++
	}
	a.t.Logf("%v", reasons)
	if a.trial.Policy().Mode == policies.ModeEnforce && (reasons["false"] < 10 || len(reasons) < 4) {
		a.t.Errorf("the requests were all alike: %v", reasons)
	}
}

// explained: the command line tells of the first request what came of it.
func (a *alike) explained() {
	x := &a.seen[0]
	args := []string{"explain", a.policy, "--format", "json", "--ip", x.ip, "-X", x.method, "-H", "Host: " + x.host}
	for _, f := range x.fields() {
		args = append(args, "-H", f.Name+": "+f.Value)
	}
	var out, errs bytes.Buffer
	if status := Run(append(args, x.path), nil, &out, &errs); status != exitOK {
		a.t.Fatalf("explain: status %d: %s", status, &errs)
	}
	var e trial.Explanation
	if err := json.Unmarshal(out.Bytes(), &e); err != nil {
		a.t.Fatal(err)
	}
	var header []edge.Field
	for name, value := range e.Headers {
		header = append(header, edge.Field{Name: name, Value: value})
	}
	a.compare(0, x, e.Status, header)
}

// tested: a file of tests that expects what came passes.
func (a *alike) tested() {
	var b strings.Builder
	start := a.seen[0].at.Truncate(time.Millisecond)
	fmt.Fprintf(&b, "policy: policy.yaml\nstart: %s\ntests:\n  - name: as it came\n    requests:\n", start.Format(time.RFC3339Nano))
	quote := func(s string) string { text, _ := json.Marshal(s); return string(text) }
	for i := range a.seen {
		x := &a.seen[i]
		fmt.Fprintf(&b, "      - {at: %dms, method: %s, url: %s, host: %s, ip: %s, headers: {User-Agent: %s", x.at.Sub(start).Milliseconds(), x.method, quote(x.path), x.host, x.ip, quote(x.agent))
		if x.key != "" {
			fmt.Fprintf(&b, ", X-API-Key: %s", x.key)
		}
		fmt.Fprintf(&b, "}, expect: {status: %d", x.status)
		if x.denied && x.limit != "" {
			fmt.Fprintf(&b, ", limit: %s", x.limit)
		}
		if reason := x.header.Get(policies.HeaderReason); x.denied && reason != "" {
			fmt.Fprintf(&b, ", reason: %s", reason)
		}
		var list []string
		for _, name := range []string{"RateLimit-Limit", "RateLimit-Remaining", "X-RateLimit-Limit", "X-RateLimit-Remaining", "RateLimit-Policy"} {
			value := x.header.Get(name)
			if value == "" {
				value = "absent"
			}
			list = append(list, name+": "+quote(value))
		}
		fmt.Fprintf(&b, ", headers: {%s}}}\n", strings.Join(list, ", "))
	}
	file := filepath.Join(filepath.Dir(a.policy), "policy_test.yaml")
	write(a.t, file, b.String())
	var out, errs bytes.Buffer
	if status := Run([]string{"test", file}, nil, &out, &errs); status != exitOK {
		a.t.Errorf("test: status %d: %.4000s%.4000s", status, &out, &errs)
	}
}

// replayed: a log of the same requests has the same denials.
func (a *alike) replayed() {
	var b strings.Builder
	want := map[string]int64{}
	for i := range a.seen {
		x := &a.seen[i]
		fmt.Fprintf(&b, "%d.%03d %s \"%s %s HTTP/1.1\" %d \"%s\" \"%s\" \"%s\"\n", x.at.Unix(), x.at.Nanosecond()/1e6, x.ip, x.method, x.path, 200, x.host, x.agent, x.key)
		if x.denied {
			want[x.header.Get(policies.HeaderReason)+" "+x.limit]++
		}
	}
	log := filepath.Join(filepath.Dir(a.policy), "access.log")
	write(a.t, log, b.String())
	var out, errs bytes.Buffer
	if status := Run([]string{"replay", a.policy, log, "--format", "json", "--log-format",
		`$msec $remote_addr "$request" $status "$http_host" "$http_user_agent" "$http_x_api_key"`}, nil, &out, &errs); status != exitOK {
		a.t.Fatalf("replay: status %d: %s", status, &errs)
	}
	var report replay.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		a.t.Fatal(err)
	}
	got := map[string]int64{}
	for _, d := range report.Denials {
		got[d.Reason+" "+d.Limit] += d.Requests
	}
	for _, name := range slices.Sorted(mapsKeys(got, want)) {
		if got[name] != want[name] {
			a.t.Errorf("replay: %q denied %d requests; NGINX and the service %d\n%s", name, got[name], want[name], &errs)
		}
	}
}

// mapsKeys are the keys of both.
func mapsKeys(a, b map[string]int64) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range a {
			if !yield(k) {
				return
			}
		}
		for k := range b {
			if _, both := a[k]; !both && !yield(k) {
				return
			}
		}
	}
}
