package cmd

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sluice/authz"
	"sluice/authz/limit/limittest"
)

// Two services on one Redis, a tenant who comes to the end of his quota, and a
// webhook that is away at first: it gets every step once, signed, and no place
// shows the secret.
func TestServeNotifies(t *testing.T) {
	const secret = "notify-secret-91aa"
	t.Setenv("HOOK_SECRET", secret)
	var mu sync.Mutex
	away, got := true, map[string]int{}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if away {
			w.WriteHeader(503)
			return
		}
		body, _ := io.ReadAll(r.Body)
		id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		if r.Header.Get("webhook-signature") != authz.Sign([]byte(secret), id, at, body) {
			t.Errorf("signature %q of %s", r.Header.Get("webhook-signature"), body)
		}
		var e authz.Event
		if err := json.Unmarshal(body, &e); err != nil || e.Data.Tenant != "acme" || e.Data.Max != 3 {
			t.Errorf("%v in %s", err, body)
		}
		got[e.Type]++
	}))
	defer hook.Close()
	url := "redis://" + limittest.StartRedis(t)
	dirs := [2]string{operatedSite(t), operatedSite(t)}
	var services []*service
	for _, dir := range dirs {
		write(t, filepath.Join(dir, "policy.yaml"), strings.Replace(operatedPolicy, "3/month", "3/month, notify: [60]", 1)+
			`notifications: [{webhook: "`+hook.URL+`", secret_env: HOOK_SECRET}]`+"\n")
		services = append(services, serveIn(t, dir, "--store", url))
	}
	for i := range 5 {
		services[i%2].asks(t)
	}
	services[1].asks(t) // both have refused
	waiting := func(s *service) bool {
		return strings.Contains(ask(t, http.DefaultClient, "GET", s.admin+"/metrics").body, "sluice_notifications_waiting 0")
	}
	eventually(t, "a spool", func() bool {
		list, _ := os.ReadDir(filepath.Join(dirs[0], "sluice.spool"))
		return len(list) > 0
	})
	mu.Lock()
	away = false
	mu.Unlock()
	eventually(t, "both services to be done", func() bool { return waiting(services[0]) && waiting(services[1]) })
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || got[authz.EventThreshold] != 1 || got[authz.EventExhausted] != 1 {
		t.Errorf("got %v; want each once", got)
	}
	for _, s := range services {
		for line := range strings.Lines(s.log.text()) {
			if strings.Contains(line, secret) || strings.Contains(line, hook.URL) && line[0] == '{' { // validate's own warning has the URL
				t.Errorf("the secret, or the webhook's URL, is in the log: %s", line)
			}
		}
	}
}

// Without its secret a service does not start.
func TestServeNotifiesWithoutSecret(t *testing.T) {
	t.Parallel()
	dir := operatedSite(t)
	write(t, filepath.Join(dir, "policy.yaml"), operatedPolicy+`notifications: [{webhook: "https://hooks.example/x", secret_env: SURELY_NOT_SET}]`+"\n")
	c := exec.Command("sluice", "serve", "policy.yaml", "--listen", "127.0.0.1:0", "--admin", "", "--datagrams", "", "--store", "memory")
	c.Dir = dir
	out, _ := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(string(out), "$SURELY_NOT_SET is not set") {
		t.Errorf("status %d\n%s", code, out)
	}
}

// TestReadmeSignature: the line that README shows makes the signature that is sent.
func TestReadmeSignature(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, ok := strings.Cut(string(readme), "printf 'v1,%s'")
	if !ok {
		t.Fatal("README does not show how to check a signature")
	}
	line, _, _ = strings.Cut("printf 'v1,%s'"+line, "\n```")
	tool(t, "openssl")
	c := exec.Command("sh", "-c", line)
	body := `{"type":"quota.threshold","data":{"used":"100%"}}`
	c.Env = append(os.Environ(), "id=evt_1", "timestamp=1770163200", "secret=s3cret words", "body="+body)
	out, err := c.CombinedOutput()
	if want := authz.Sign([]byte("s3cret words"), "evt_1", "1770163200", []byte(body)); err != nil || string(out) != want {
		t.Errorf("README's line gives %q, %v; want %q", out, err, want)
	}
}
