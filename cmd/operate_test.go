package cmd

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/authz/limit/limittest"
)

const operatedPolicy = `version: 1
identity: {sources: [{api_key: {header: X-API-Key}}]}
plans:
  free:
    limits:
      daily: {per: tenant, quota: 3/month}
tenants:
  # of sk_demo_acme_web
  - {id: acme, plan: free, keys: [{id: acme-web, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]}
routes: [{name: rest, match: {prefix: /}}]
`

// verb runs a verb in the directory of a service, as its operator does.
func (s *service) verb(t *testing.T, dir string, args ...string) (out string, code int) {
	t.Helper()
	c := exec.Command("sluice", append([]string{args[0], "--admin", strings.TrimPrefix(s.admin, "http://")}, args[1:]...)...)
	c.Dir = dir
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return both.String(), c.ProcessState.ExitCode()
}

// must is verb for what has to work; it returns what is printed.
func (s *service) must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, code := s.verb(t, dir, args...)
	if code != exitOK {
		t.Fatalf("sluice %s: status %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// asks is the status that a tenant's question gets: 204, 402, 403.
func (s *service) asks(t *testing.T) string {
	t.Helper()
	a := ask(t, http.DefaultClient, "GET", "http://"+s.addr+"/_sluice/open/rest", "X-Sluice-Ip", "192.0.2.7", "X-Api-Key", "sk_demo_acme_web")
	if a.status == 204 {
		return "allow"
	}
	return a.header.Get("X-Sluice-Status") + " " + a.header.Get("X-Sluice-Reason")
}

func operatedSite(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "policy.yaml"), operatedPolicy)
	return dir
}

// An operator sees what a tenant used, gives him more, resets and blocks him; all
// of it is written down, and lasts a restart.
func TestOperators(t *testing.T) {
	t.Parallel()
	dir := operatedSite(t)
	s := serveIn(t, dir, "--store", "embedded:sluice.db", "--audit", "audit.log")
	for range 3 {
		s.asks(t)
	}
	if got := s.asks(t); got != "402 quota" {
		t.Fatalf("the fourth: %q", got)
	}
	if out := s.must(t, dir, "tenants"); !strings.Contains(out, "acme    free  1     0       -") {
		t.Errorf("tenants:\n%s", out)
	}
	if out := s.must(t, dir, "usage", "acme"); !strings.Contains(out, "acme: plan free\n") || !strings.Contains(out, "daily  quota  all   3     3   0     20") {
		t.Errorf("usage:\n%s", out)
	}
	until := time.Now().UTC().AddDate(0, 0, 3).Format(time.DateOnly)
	if out := s.must(t, dir, "grant", "acme", "daily", "--add", "2", "--until", until, "--reason", "launch"); !strings.Contains(out, "acme: daily + 2 from ") {
		t.Errorf("grant:\n%s", out)
	}
	if got := s.asks(t); got != "allow" {
		t.Errorf("after a grant: %q", got)
	}
	s.stop()
	s = serveIn(t, dir, "--store", "embedded:sluice.db", "--audit", "audit.log")
	if out := s.must(t, dir, "usage", "acme"); !strings.Contains(out, "4     5   1") || !strings.Contains(out, "local  launch") {
		t.Errorf("usage after a restart:\n%s", out)
	}
	s.must(t, dir, "block", "acme", "--until", "1h", "--reason", "abuse")
	if got := s.asks(t); got != "403 disabled" {
		t.Errorf("blocked: %q", got)
	}
	s.must(t, dir, "unblock", "acme", "--reason", "sorry")
	if out := s.must(t, dir, "reset", "acme", "daily", "--reason", "goodwill"); !strings.Contains(out, "1 counter reset") {
		t.Errorf("reset:\n%s", out)
	}
	for i := range 6 {
		if got, want := s.asks(t), []string{"allow", "402 quota"}[i/5]; got != want {
			t.Errorf("question %d after a reset: %q, want %q", i, got, want)
		}
	}
	audit, err := os.ReadFile(filepath.Join(dir, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for i, action := range []string{"grant", "block", "unblock", "reset"} {
		if lines := strings.Split(string(audit), "\n"); len(lines) != 5 || !strings.Contains(lines[i], `"who":"local"`) || !strings.Contains(lines[i], `"action":"`+action+`"`) {
			t.Errorf("audit line %d: no %s\n%s", i, action, audit)
		}
	}
}

// What is wrong is said, and is no success.
func TestOperatorsMistakes(t *testing.T) {
	t.Parallel()
	dir := operatedSite(t)
	s := serveIn(t, dir)
	f := func(want int, says string, args ...string) {
		t.Helper()
		if out, code := s.verb(t, dir, args...); code != want || !strings.Contains(out, says) {
			t.Errorf("sluice %s: status %d, want %d and %q\n%s", strings.Join(args, " "), code, want, says, out)
		}
	}
	f(exitUsage, "needs TENANT", "usage")
	f(exitUsage, "needs --add N, --until DATE and --reason WHY", "grant", "acme", "daily", "--add", "5")
	f(exitUsage, "needs --reason", "reset", "acme")
	f(exitUsage, "needs --until TIME", "block", "acme", "--reason", "x")
	f(exitUsage, "want a time such as", "block", "acme", "--reason", "x", "--until", "soon")
	f(exitUsage, "want text or json", "usage", "acme", "--format", "xml")
	f(exitFailed, `no tenant "acem"`, "usage", "acem")
	f(exitFailed, `no quota "dayly"; want one of: daily`, "grant", "acme", "dayly", "--add", "5", "--until", "2099-01-01", "--reason", "x")
	f(exitFailed, "no day of the calendar", "grant", "acme", "daily", "--add", "5", "--until", "tomorrow", "--reason", "x")
	f(exitFailed, "SLUICE_ADMIN_TOKEN", "reset", "acme", "--reason", "x", "--token-file", "none")
	f(exitFailed, "does it run", "usage", "acme", "--admin", "127.0.0.1:1")
}

// Two services on one Redis: what is said to one is felt by the other within two
// seconds, also to lift what it remembers.
func TestOperatorsElsewhere(t *testing.T) {
	t.Parallel()
	url := "redis://" + limittest.StartRedis(t)
	dir, other := operatedSite(t), operatedSite(t)
	s, o := serveIn(t, dir, "--store", url), serveIn(t, other, "--store", url)
	for range 3 {
		s.asks(t)
	}
	if got := o.asks(t); got != "402 quota" {
		t.Fatalf("the fourth, elsewhere: %q", got)
	}
	until := time.Now().UTC().AddDate(0, 0, 3).Format(time.DateOnly)
	s.must(t, dir, "grant", "acme", "daily", "--add", "1", "--until", until, "--reason", "launch")
	eventually(t, "a grant elsewhere", func() bool { return o.asks(t) == "allow" })
	s.must(t, dir, "block", "acme", "--until", "1h", "--reason", "abuse")
	eventually(t, "a block elsewhere", func() bool { return o.asks(t) == "403 disabled" })
	o.must(t, other, "unblock", "acme", "--reason", "sorry")
	eventually(t, "no block any more", func() bool { return s.asks(t) == "402 quota" })
}
