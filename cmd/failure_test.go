package cmd

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/authz/limit/limittest"
)

// A Redis that accepts and never answers, under load: open routes pass and say so,
// closed ones are refused, nobody waits longer than the deadline allows, nothing is
// an error of ours; then it answers again, and so do we. C090, C091, C092
func TestServeStoreSilent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, `version: 1
limits: {many: {per: ip, rate: 1000/s, burst: 1000000}}
routes:
  - {name: open, match: {prefix: /open}}
  - {name: closed, match: {prefix: /closed}, on_store_down: closed}
`)
	server := limittest.StartServer(t)
	s := serveIn(t, dir, "--store", "redis://"+server.Addr, "--deadline", "50ms")
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	question := func(path string) (status int, degraded string) {
		a := ask(t, client, http.MethodGet, "http://"+s.addr+path, "X-Sluice-Ip", "192.0.2.1")
		return a.status, a.header.Get("X-Sluice-Degraded")
	}
	if status, degraded := question("/_sluice/open/open"); status != 204 || degraded != "" {
		t.Fatalf("before: %d, degraded %q", status, degraded)
	}
	var warm sync.WaitGroup // the same connections as later: each has a goroutine
	for range 32 {
		warm.Go(func() { _, _ = question("/_sluice/open/open") })
	}
	warm.Wait()
	goroutines := s.metric(t, "go_goroutines")

	if err := server.Process().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process().Signal(syscall.SIGCONT) }()
	var all sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	for i := range 16 {
		all.Go(func() {
			for range 40 {
				path, want := "/_sluice/open/open", 204
				if i%2 == 0 {
					path, want = "/_sluice/closed/closed", 403
				}
				began := time.Now()
				status, degraded := question(path)
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
				if status != want || degraded != "1" {
					t.Errorf("%s: status %d, degraded %q", path, status, degraded)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	// 5 ms are wanted on a quiet machine; a client's own timeout would be a second.
	if p99 := took[len(took)*99/100]; p99 > 50*time.Millisecond+500*time.Millisecond {
		t.Errorf("one decision in a hundred took %v", p99)
	}
	// While the breaker is open nobody waits at all: 640 questions that each waited
	// 50 ms, 16 at a time, would be 40 such waits.
	if s.metric(t, "sluice_store_breaker_opened_total") == 0 {
		t.Error("the breaker did not open")
	}
	if b := s.status(t).Store.Breaker; b == "closed" || b == "" {
		t.Errorf("the breaker is %q", b)
	}

	if err := server.Process().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); s.status(t).Store.Breaker != "closed"; {
		if time.Now().After(end) {
			t.Fatalf("Redis answers again, and the breaker is %q", s.status(t).Store.Breaker)
		}
		_, _ = question("/_sluice/open/open")
	}
	if status, degraded := question("/_sluice/closed/closed"); status != 204 || degraded != "" {
		t.Errorf("after: %d, degraded %q", status, degraded)
	}
	for end := time.Now().Add(20 * time.Second); s.metric(t, "go_goroutines") > goroutines+16; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v goroutines are left, there were %v", s.metric(t, "go_goroutines"), goroutines)
		}
	}
}

// metric is a metric without labels, as /metrics shows it.
func (s *service) metric(t *testing.T, name string) (n float64) {
	t.Helper()
	a := ask(t, http.DefaultClient, http.MethodGet, s.admin+"/metrics")
	for line := range strings.Lines(a.body) {
		if _, err := fmt.Sscanf(line, name+" %g", &n); err == nil {
			return n
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
