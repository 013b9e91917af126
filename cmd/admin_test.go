package cmd

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice/authz"
)

const adminPolicy = `version: 1
limits: {all: {per: ip, rate: 100/s, burst: 10}}
tenant_files: [tenants/*.yaml]
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
plans: {free: {}}
routes: [{name: rest, match: {prefix: /}}]
`

// adminSite is a directory with a policy and a service on it.
func adminSite(t *testing.T) (dir, policy string) {
	t.Helper()
	dir = t.TempDir()
	policy = filepath.Join(dir, "policy.yaml")
	write(t, policy, adminPolicy)
	write(t, filepath.Join(dir, "tenants/a.yaml"), "[{id: acme, plan: free}]\n")
	return dir, policy
}

// serveIn starts a service in a directory, where it leaves its token.
func serveIn(t *testing.T, dir string, args ...string) *service {
	t.Helper()
	return serveWith(t, dir, nil, args...)
}

// serveWith is serveIn with more variables.
func serveWith(t *testing.T, dir string, env []string, args ...string) *service {
	t.Helper()
	cmd := exec.Command("sluice", append([]string{"serve", "policy.yaml", "--listen", "127.0.0.1:0", "--store", "memory", "--datagrams", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &service{cmd: cmd, log: follow(stderr)}
	t.Cleanup(s.stop)
	s.admin = "http://" + s.log.await(t, "admin")["listen"].(string)
	s.addr = s.log.await(t, "serving")["listen"].(string)
	return s
}

func (s *service) status(t *testing.T) (st authz.Status) {
	t.Helper()
	a := ask(t, http.DefaultClient, "GET", s.admin+"/-/status")
	if err := json.Unmarshal([]byte(a.body), &st); err != nil {
		t.Fatalf("status %d: %v in %s", a.status, err, a.body)
	}
	return st
}

// The token that serve leaves is what changes things; it goes with the service.
func TestServeToken(t *testing.T) {
	t.Parallel()
	dir, _ := adminSite(t)
	s := serveIn(t, dir)
	path := filepath.Join(dir, "sluice.token")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("token file: %v, mode %v; want 0600", err, info.Mode())
	}
	secret, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bearer := "Bearer " + strings.TrimSpace(string(secret))
	if a := ask(t, http.DefaultClient, "POST", s.admin+"/-/reload", "Authorization", bearer); a.status != 200 || !strings.Contains(a.body, `"hash"`) {
		t.Errorf("reload: %d %s", a.status, a.body)
	}
	st := s.status(t)
	if !st.Ready || st.Listeners["authz"] == "" || st.Listeners["admin"] == "" || st.Listeners["datagrams"] == "" || st.Policy.Tenants != 1 {
		t.Errorf("status %+v", st)
	}
	s.stop()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the token is left behind: %v", err)
	}
	if log := s.log.text(); strings.Contains(log, strings.TrimSpace(string(secret))) { // C119
		t.Errorf("the token is in the log")
	}
}

// A second service on one admin port says so before it answers anybody, and
// leaves the first one's token alone.
func TestServeAdminPortTaken(t *testing.T) {
	t.Parallel()
	dir, policy := adminSite(t)
	s := serveIn(t, dir)
	before, err := os.ReadFile(filepath.Join(dir, "sluice.token"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sluice", "serve", policy, "--listen", "127.0.0.1:0", "--store", "memory", "--datagrams", "", "--admin", strings.TrimPrefix(s.admin, "http://"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), "cannot open the admin port") || !strings.Contains(string(out), "a second sluice perhaps") {
		t.Errorf("error %v\n%s", err, out)
	}
	if strings.Contains(string(out), `"serving"`) {
		t.Errorf("it served:\n%s", out)
	}
	if after, err := os.ReadFile(filepath.Join(dir, "sluice.token")); err != nil || string(after) != string(before) {
		t.Errorf("the token of the first was touched: %v", err)
	}
}

// Files are watched: the policy, those of its tenants, new ones, and the tokens.
// A broken policy leaves the last good one, and is told in every place.
func TestServeWatches(t *testing.T) {
	t.Parallel()
	dir, policy := adminSite(t)
	tokens := filepath.Join(dir, "tokens")
	// printf one | sha256sum
	one := "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
	write(t, tokens, "ops write "+one+"\n")
	s := serveIn(t, dir, "--admin-tokens", "tokens")
	if _, err := os.Stat(filepath.Join(dir, "sluice.token")); !os.IsNotExist(err) {
		t.Errorf("a token was written beside a file of tokens: %v", err)
	}
	eventually(t, "the first look", func() bool { return s.status(t).Reload.Loads > 0 })
	hash := s.status(t).Policy.Hash

	write(t, filepath.Join(dir, "tenants/b.yaml"), "[{id: globex, plan: free}]\n")
	eventually(t, "a new file of tenants", func() bool { return s.status(t).Policy.Tenants == 2 })
	write(t, policy+".new", strings.Replace(adminPolicy, "100/s", "50/s", 1))
	if err := os.Rename(policy+".new", policy); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new policy", func() bool { return s.status(t).Policy.Hash != hash })
	hash = s.status(t).Policy.Hash

	write(t, policy, "version: 1\nroutes: [\n")
	eventually(t, "a broken policy", func() bool { return s.status(t).Reload.Error != "" })
	st := s.status(t)
	if st.Policy.Hash != hash || len(st.Reload.Findings) == 0 || st.Reload.Findings[0].Line == 0 {
		t.Errorf("a broken policy: %+v", st)
	}
	if a := ask(t, http.DefaultClient, "GET", s.admin+"/metrics"); !strings.Contains(a.body, "sluice_reload_successful 0\n") {
		t.Error("metrics do not tell that the policy is broken")
	}
	// While it is broken, its other files are still known.
	write(t, policy, adminPolicy)
	eventually(t, "a good policy again", func() bool { st := s.status(t); return st.Reload.Error == "" && st.Policy.Hash != hash })

	if a := ask(t, http.DefaultClient, "POST", s.admin+"/-/reload", "Authorization", "Bearer one"); a.status != 200 {
		t.Errorf("the operators' token: %d %s", a.status, a.body)
	}
	write(t, tokens, "ops write "+strings.Repeat("ab", 32)+"\n")
	eventually(t, "a token taken away", func() bool {
		return ask(t, http.DefaultClient, "POST", s.admin+"/-/reload", "Authorization", "Bearer one").status == 401
	})
}

// While it stops, a service says that it is not ready, until decisions under
// way are made.
func TestServeStopsInOrder(t *testing.T) {
	t.Parallel()
	dir, _ := adminSite(t)
	s := serveIn(t, dir)
	// A question whose head is not finished keeps the service from ending.
	conn := dialService(t, s.addr)
	if _, err := conn.Write([]byte("GET /_sluice/open/rest HTTP/1.1\r\nHost: x\r\n")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, "not ready", func() bool {
		a := ask(t, http.DefaultClient, "GET", s.admin+"/readyz")
		return a.status == 503 && strings.Contains(a.body, "stopping")
	})
	if a := ask(t, http.DefaultClient, "GET", s.admin+"/metrics"); a.status != 200 {
		t.Errorf("metrics while stopping: %d", a.status)
	}
	if _, err := conn.Write([]byte("\r\n")); err != nil {
		t.Fatal(err)
	}
	s.log.await(t, "stopped")
	_ = s.wait()
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

func dialService(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}
