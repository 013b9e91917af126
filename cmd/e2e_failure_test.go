package cmd

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testReload: a new policy is in force after SIGHUP, a broken one is not, and
// buckets keep what they hold.
func testReload(t *testing.T, s *stack, c *http.Client) {
	svc := s.services[0]
	old, err := os.ReadFile(s.policy)
	if err != nil {
		t.Fatal(err)
	}
	address := []string{"X-Forwarded-For", "192.0.2.70"}
	ask(t, c, "GET", s.http1+"/v1/items", address...)

	write(t, s.policy, "version: 1\nplans: {anonymous: {limits: {speed: {per: ip, rate: 1/h}}}}\n")
	_ = svc.cmd.Process.Signal(syscall.SIGHUP)
	svc.log.await(t, "policy not loaded: the last good one serves")
	if got := left(t, ask(t, c, "GET", s.http1+"/v1/items", address...)); got != 8 {
		t.Errorf("after a broken policy %d are left; want 8", got)
	}

	// A change is seen without a signal.
	write(t, s.policy, strings.Replace(string(old), "rate: 1/h, burst: 10}", "rate: 1/h, burst: 4}", 1))
	svc.log.await(t, "policy loaded")
	if got := left(t, ask(t, c, "GET", s.http1+"/v1/items", address...)); got != 3 {
		t.Errorf("a smaller bucket has %d left; want 3: what it held, clamped to 4, less one", got)
	}
	write(t, s.policy, string(old))
}

// testServiceAway: NGINX fails open and closed by itself, and takes the service
// back. C090
func testServiceAway(t *testing.T, s *stack, c *http.Client, store string) {
	addr := s.services[0].addr
	s.services[0].stop()
	if a := ask(t, c, "GET", s.http1+"/v1/items", "X-Forwarded-For", "192.0.2.80"); a.status != 200 || a.header.Get("X-Sluice-Degraded") != "1" {
		t.Errorf("open: status %d, degraded %q; want 200, 1", a.status, a.header.Get("X-Sluice-Degraded"))
	}
	a := ask(t, c, "GET", s.http1+"/v1/pay", "X-Forwarded-For", "192.0.2.80")
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); a.status != 503 || err != nil || seconds < 1 {
		t.Errorf("closed: status %d, Retry-After %q; want 503", a.status, a.header.Get("Retry-After"))
	}
	s.services[0] = startServiceOn(t, addr, s.policy, store)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		a = ask(t, c, "GET", s.http1+"/v1/pay", "X-Forwarded-For", "192.0.2.81")
		if a.status == 200 && a.header.Get("X-Sluice-Degraded") == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service is back, and %d is the answer", a.status)
		}
	}
}

// testSecrets: no key of the run is in a rendered file or a log. C119
func testSecrets(t *testing.T, s *stack) {
	texts := map[string]string{"service": s.services[0].log.text()}
	err := filepath.Walk(s.dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		texts[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		for _, secret := range []string{webKey, batchKey, globexKey, "sk_nobody"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds the key %q", name, secret)
			}
		}
	}
}
