package cmd

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz"
)

// soldToMany is a policy with many tenants, each of whom four requests use up.
func soldToMany(tenants int, notifications string) string {
	var b strings.Builder
	b.WriteString("version: 1\nidentity: {sources: [{api_key: {header: X-API-Key}}]}\n" +
		"plans: {free: {limits: {sold: {per: tenant, quota: 4/month, notify: [50]}}}}\nroutes: [{name: rest, match: {prefix: /}}]\ntenants:\n")
	for i := range tenants {
		fmt.Fprintf(&b, "  - {id: t%d, plan: free, keys: [{id: k%d, sha256: %x}]}\n", i, i, sha256.Sum256(fmt.Appendf(nil, "key-%d", i)))
	}
	return b.String() + notifications
}

// hookUnderLoad is a receiver that goes from bad to good.
type hookUnderLoad struct {
	*httptest.Server
	mode atomic.Int32 // hangs, refuses, takes
	hung chan struct{}
	mu   sync.Mutex
	got  map[string]int // of what was taken
}

const (
	hookHangs int32 = iota
	hookRefuses
	hookTakes
)

func startHook(t *testing.T) *hookUnderLoad {
	h := &hookUnderLoad{hung: make(chan struct{}), got: map[string]int{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hookUnderLoad) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch h.mode.Load() {
	case hookHangs:
		select {
		case <-h.hung:
		case <-r.Context().Done():
		}
		fallthrough
	case hookRefuses:
		w.WriteHeader(500)
		return
	}
	var e authz.Event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		w.WriteHeader(400)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got[e.Type+" "+e.Data.Tenant]++
}

// A receiver that hangs and then refuses costs decisions nothing: a service that tells
// it answers as quickly as one beside it that tells nobody. When it takes what
// happened it gets all of it, once, and the service is as it was.
func TestNotificationsUnderLoad(t *testing.T) {
	const tenants = 150
	t.Setenv("HOOK_SECRET", "a secret of a good length")
	hook := startHook(t)
	var services [2]*service
	var dirs [2]string
	for i, more := range []string{`notifications: [{webhook: "` + hook.URL + `", secret_env: HOOK_SECRET}]` + "\n", ""} {
		dirs[i] = t.TempDir()
		write(t, filepath.Join(dirs[i], "policy.yaml"), soldToMany(tenants, more))
		services[i] = serveIn(t, dirs[i], "--store", "embedded:sluice.db")
	}
	goroutines, files, _ := services[0].gauges(t)

	var next atomic.Int64
	var mu sync.Mutex
	var took [2][]time.Duration
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			for n := next.Add(1) - 1; n < tenants*6; n = next.Add(1) - 1 {
				for i, s := range services {
					began := time.Now()
					a := ask(t, c, http.MethodGet, "http://"+s.addr+"/_sluice/open/rest", "X-Sluice-Ip", "192.0.2.1", "X-Api-Key", fmt.Sprintf("key-%d", n%tenants))
					if want := []int{204, 403}[n/tenants/4]; a.status != want {
						t.Errorf("request %d of a tenant: status %d", n/tenants+1, a.status)
					}
					mu.Lock()
					took[i] = append(took[i], time.Since(began))
					mu.Unlock()
				}
			}
		})
	}
	load.Wait()
	late := func(d []time.Duration) time.Duration {
		slices.Sort(d)
		return d[len(d)*99/100]
	}
	if telling, silent := late(took[0]), late(took[1]); telling > 2*silent+5*time.Millisecond {
		t.Errorf("99 of 100 answers within %s, while a service that tells nobody answers within %s", telling, silent)
	}
	waiting := func() (n float64) {
		for line := range strings.Lines(ask(t, http.DefaultClient, "GET", services[0].admin+"/metrics").body) {
			_, _ = fmt.Sscanf(line, "sluice_notifications_waiting %f", &n)
		}
		return n
	}
	eventually(t, "all to be seen", func() bool { return waiting() == 2*tenants })
	hook.mode.Store(hookRefuses)
	close(hook.hung)
	eventually(t, "a spool", func() bool {
		list, _ := os.ReadDir(filepath.Join(dirs[0], "sluice.spool"))
		return len(list) > tenants
	})
	hook.mode.Store(hookTakes)
	eventually(t, "all to be told", func() bool { return waiting() == 0 })

	hook.mu.Lock()
	defer hook.mu.Unlock()
	if len(hook.got) != 2*tenants {
		t.Errorf("%d were told; want %d", len(hook.got), 2*tenants)
	}
	for what, n := range hook.got {
		if n != 1 {
			t.Errorf("%s was told %d times", what, n)
		}
	}
	if list, _ := os.ReadDir(filepath.Join(dirs[0], "sluice.spool")); len(list) > 0 {
		t.Errorf("%d are left in the spool", len(list))
	}
	// Whoever answered waits for more to do for ten seconds.
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		g, f, _ := services[0].gauges(t)
		if g <= goroutines+6 && f <= files+4 { // a connection to the receiver, and ours
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines %v to %v, files %v to %v", goroutines, g, files, f)
		}
	}
}
