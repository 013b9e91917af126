package gen

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
	"sluice/policies"
)

// stack is a rendered policy on a running NGINX, between a stand-in for the
// service and one for the application.
type stack struct {
	t     testing.TB
	nginx *gentest.NGINX
	authz *gentest.Authz
	app   *gentest.App
	addr  string
	files Files

	cacheDir string
}

// compiled compiles a policy that must be a good one.
func compiled(t testing.TB, src string) *policies.Compiled {
	t.Helper()
	p, ds := policies.Parse("policy.yaml", []byte(src), nil)
	if ds.HasErrors() {
		t.Fatalf("the policy of the test is not good: %v", ds)
	}
	return policies.Compile(p)
}

// start renders a policy as a whole configuration and runs it.
func start(t testing.TB, policy string) *stack {
	return startWith(t, policy, func(Files, string) {})
}

// startWith lets the test change the files, and names the address to listen on.
func startWith(t testing.TB, policy string, change func(f Files, listen string)) *stack {
	t.Helper()
	return startCompiled(t, compiled(t, policy), change)
}

func startCompiled(t testing.TB, c *policies.Compiled, change func(f Files, listen string)) *stack {
	t.Helper()
	return startOptions(t, c, Options{}, change)
}

// startOptions adds what a running NGINX needs to the options.
func startOptions(t testing.TB, c *policies.Compiled, opt Options, change func(f Files, listen string)) *stack {
	t.Helper()
	gentest.Binary(t)
	s := &stack{t: t, authz: gentest.StartAuthz(t), app: gentest.StartApp(t), addr: gentest.FreePort(t)}
	opt.Version, opt.Full, opt.Listen = "test", true, []string{s.addr}
	s.cacheDir = gentest.CacheDir(t)
	opt.CacheDir = s.cacheDir
	opt.Authz, opt.Upstreams = []string{s.authz.Addr}, []string{s.app.Addr}
	files, err := Render(c, opt)
	if err != nil {
		t.Fatal(err)
	}
	change(files, s.addr)
	s.files = files
	dir := t.TempDir()
	gentest.WriteFiles(t, dir, files)
	s.nginx = gentest.Start(t, dir, "nginx.conf", s.addr)
	return s
}

// answer is what a client got.
type answer struct {
	status int
	header http.Header
	body   string
}

// get asks for a path. Headers come in pairs; Host is the host.
func (s *stack) get(path string, headers ...string) answer {
	return s.do("GET", path, nil, headers...)
}

func (s *stack) do(method, path string, body []byte, headers ...string) answer {
	s.t.Helper()
	req, err := http.NewRequest(method, "http://"+s.addr+path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	client := &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return answer{}
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// statuses asks several times.
func (s *stack) statuses(n int, path string, headers ...string) []int {
	s.t.Helper()
	var out []int
	for range n {
		out = append(out, s.get(path, headers...).status)
	}
	return out
}

func (s *stack) noWarnings() {
	s.t.Helper()
	for line := range strings.Lines(s.nginx.ErrorLog()) {
		for _, bad := range []string{"uninitialized", "[emerg]", "[alert]", "[crit]"} {
			if strings.Contains(line, bad) {
				s.t.Errorf("nginx complains: %s", line)
			}
		}
	}
}

// normalPath is a path as NGINX normalises it.
func normalPath(t testing.TB, target string) []byte {
	t.Helper()
	path, ok := policies.NormalizePath(nil, []byte(target))
	if !ok {
		t.Fatalf("cannot normalise %q", target)
	}
	return path
}
