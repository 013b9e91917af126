package cmd

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/cmd/replay"
	"sluice/gen/gentest"
)

// replayed is a policy whose answers depend on the order of requests alone: in the
// time of a test nothing refills.
const replayed = `version: 1
client_ip: {trusted_proxies: [127.0.0.0/8], header: X-Forwarded-For}
identity:
  sources: [{api_key: {header: X-API-Key}}]
  missing: {plan: anonymous}
  invalid: {deny: 401}
edge:
  access:
    - {name: blocked, deny: {cidrs: [198.51.100.0/24]}}
    - {name: scanners, deny: {user_agents: ['mass"can', 'пaук']}}
    - {name: session, deny: all, routes: [files], when: {cookies: {session: absent}, methods: [GET]}}
  limits:
    per_ip: {per: ip, rate: 1/m, burst: 20}
    by_referer: {per: {header: Referer}, rate: 1/m, burst: 6, routes: [api], when: {headers: {Referer: present}}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1/h, burst: 6}}}
  pro: {limits: {org: {per: tenant, window: 40/1h, algorithm: fixed}, speed: {per: key, rate: 1/h, burst: 15}}}
tenants:
  # of sk_demo_acme_web and sk_demo_acme_batch
  - id: acme
    plan: pro
    keys:
      - {id: acme-web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}
      - {id: acme-batch, sha256: 8388b8a03592a5904e2d6236fb89ba6dc98280d81953fa9e51f2ca5ac756fc9c}
routes:
  - {name: health, match: {exact: /healthz}, exempt: true}
  - {name: search, match: {prefix: /v1/search}, cost: 3, plans: [pro]}
  - {name: files, match: {regex: '^/v1/files/[a-f ]+$'}, cost: 2}
  - {name: api, match: {prefix: /v1}}
  - {name: site, match: {prefix: /}, service: false}
`

// logFormats are the same lines in every escaping, and as JSON that is none.
const logFormats = `
log_format r_text '$remote_addr [$msec] "$request" $status $request_time "$http_user_agent" "$http_x_forwarded_for" $realip_remote_addr "$http_x_api_key" "$http_cookie" "$host" "$http_referer"';
log_format r_json escape=json '{"msec":$msec,"remote_addr":"$remote_addr","request":"$request","status":$status,"request_time":$request_time,"http_user_agent":"$http_user_agent","http_x_forwarded_for":"$http_x_forwarded_for","realip_remote_addr":"$realip_remote_addr","http_x_api_key":"$http_x_api_key","http_cookie":"$http_cookie","host":"$host","http_referer":"$http_referer"}';
log_format r_poor '{"msec":$msec,"remote_addr":"$remote_addr","upstream_status":$upstream_status,"request":"$request","status":$status,"request_time":$request_time,"http_user_agent":"$http_user_agent","http_x_forwarded_for":"$http_x_forwarded_for","realip_remote_addr":"$realip_remote_addr","http_x_api_key":"$http_x_api_key","http_cookie":"$http_cookie","host":"$host","http_referer":"$http_referer"}';
log_format r_none escape=none '$remote_addr\t$msec\t$request\t$status\t$request_time\t$http_user_agent\t$http_x_forwarded_for\t$realip_remote_addr\t$http_x_api_key\t$http_cookie\t$host\t$http_referer';
access_log text.log r_text; access_log json.log r_json; access_log poor.log r_poor; access_log none.log r_none; access_log sluice.log sluice_access;
`

// TestReplayOfNGINX: a log that NGINX wrote with a policy, replayed under the same
// policy, gives what NGINX and the service had answered: C117, C119.
func TestReplayOfNGINX(t *testing.T) {
	gentest.Binary(t)
	dir, app := t.TempDir(), startApp(t)
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, replayed)
	service := startService(t, policy, "memory")
	listen := gentest.FreePort(t)
	run(t, "render", policy, "--out", dir, "--full", "--authz", service.addr, "--datagrams", service.datagrams,
		"--upstream", app.addr, "--listen", listen, "--cache-dir", gentest.CacheDir(t))
	conf, ask := filepath.Join(dir, "nginx.conf"), filepath.Join(dir, "sluice/ask.conf")
	fill(t, conf, conf, "include sluice/http.conf;", "include sluice/http.conf;"+logFormats)
	fill(t, ask, ask, "200ms", "10s")
	one, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	write(t, conf, oneWorker(string(one)))
	server := gentest.Start(t, dir, "nginx.conf", listen)

	want := traffic(t, "http://"+listen, 600)
	server.Stop()
	ownLog(t, policy, filepath.Join(dir, "sluice.log"), want.all)
	for _, name := range []string{"text", "json", "poor", "none"} {
		args := []string{"replay", policy, filepath.Join(dir, name+".log"), "--format", "json"}
		switch name {
		case "text", "none":
			args = append(args, "--log-format", directive(name))
		}
		var out, errs bytes.Buffer
		if status := Run(args, strings.NewReader(""), &out, &errs); status != 0 {
			t.Fatalf("replay of %s: %d\n%s", name, status, errs.String())
		}
		r := &replay.Report{}
		if err := json.Unmarshal(out.Bytes(), r); err != nil {
			t.Fatal(err)
		}
		got := answers{by: map[string]int64{}, denied: map[string]int64{}, all: int(r.Verdicts.Requests)}
		for i := range r.Denials {
			d := &r.Denials[i]
			got.by[deniedBy(d.Reason, d.Limit)] += d.Requests
		}
		for _, o := range r.Offenders {
			got.denied[o.Who] = o.Denied
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(answers{})); diff != "" {
			t.Errorf("%s: -NGINX +replay:\n%s", name, diff)
		}
		if (r.Log.Repaired > 0) != (name == "poor") {
			t.Errorf("%s: %d lines were repaired", name, r.Log.Repaired)
		}
		if strings.Contains(out.String(), "sk_") {
			t.Errorf("%s: the report holds a credential", name)
		}
	}
}

// ownLog: what render's own log format lacks (credentials, above all) the service's
// word makes up for: whose a request is.
func ownLog(t *testing.T, policy, log string, requests int) {
	t.Helper()
	var out, errs bytes.Buffer
	if status := Run([]string{"replay", policy, log, "--format", "json"}, strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("replay of NGINX's sluice_access: %d\n%s", status, errs.String())
	}
	r := &replay.Report{}
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		t.Fatal(err)
	}
	if r.Verdicts.Requests != int64(requests) || len(r.Log.Bad) > 0 || !slices.Contains(r.Heat.Groups, "acme") {
		t.Errorf("sluice_access: %+v %+v %q", r.Verdicts, r.Log, r.Heat.Groups)
	}
}

// deniedBy is a reason, with the limit where clients are told it for certain.
func deniedBy(reason, limit string) string {
	if reason == "access" || reason == "edge_rate" {
		return reason
	}
	return reason + " " + limit
}

// directive is one of the formats, as nginx.conf has it.
func directive(name string) string {
	_, text, _ := strings.Cut(logFormats, "log_format r_"+name)
	text, _, _ = strings.Cut(text, ";\n")
	return "log_format r_" + name + text + ";"
}

// oneWorker keeps the log in the order of the requests.
func oneWorker(conf string) string {
	lines := strings.Split(conf, "\n")
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "worker_processes") {
			lines[i] = "worker_processes 1;"
		}
	}
	return strings.Join(lines, "\n")
}

// answers is what came of requests: how many by reason and limit, and how many
// denials each client or tenant got.
type answers struct {
	all        int
	by, denied map[string]int64
}

// traffic sends random requests, one after the other.
func traffic(t *testing.T, url string, n int) answers {
	t.Helper()
	out := answers{all: n, by: map[string]int64{}, denied: map[string]int64{}}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for range n {
		ip := pick("192.0.2.1", "192.0.2.2", "192.0.2.3", "203.0.113.4", "2001:db8:1::5", "198.51.100.6", "203.0.113.7")
		headers := []string{"X-Forwarded-For", pick("", "203.0.113.99, ", "unknown, ") + ip}
		key := pick("", "", "", "sk_demo_acme_web", "sk_demo_acme_batch", "sk_wrong")
		if key != "" {
			headers = append(headers, "X-API-Key", key)
		}
		headers = append(headers, "User-Agent", pick("curl/8.5.0", `say "hi"`, `back\slash`, `a mass"can b`, "пaук", "Mozilla/5.0 (X11)", "\x80\xff"))
		if random.IntN(2) == 0 {
			headers = append(headers, "Cookie", pick("session=1", `a="b"; session=x`, "other=2"))
		}
		if random.IntN(3) == 0 {
			headers = append(headers, "Referer", pick("https://a.example/", `https://b.example/"x"`, "-"))
		}
		target := pick("/v1/a", "/v1/search?q=1", "/v1/search/%22x%22?y=%5C", "/v1/files/a%20b", "/v1/files/abc", "/healthz", "/", "/docs/x", "/v1/%D0%BF")
		got := ask(t, client, pick("GET", "GET", "POST"), url+target, headers...)
		if got.status == 200 {
			continue
		}
		who := ip
		if strings.Contains(ip, ":") {
			who = "2001:db8:1::/64"
		}
		reason := got.header.Get("X-Sluice-Reason")
		if strings.HasPrefix(key, "sk_demo") && reason != "access" && reason != "edge_rate" {
			who = "acme"
		}
		out.by[deniedBy(reason, got.header.Get("X-Sluice-Limit"))]++
		out.denied[who]++
	}
	if len(out.by) < 5 {
		t.Fatalf("too little was denied for a test: %v", out)
	}
	return out
}
