package cmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// safeWriter is a buffer that is read while others write.
type safeWriter struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *safeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *safeWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// TestWatchTests: tests run again when the policy, a list of it, or the tests
// change, also after one of them was broken.
func TestWatchTests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy, list, tests := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "bad.txt"), filepath.Join(dir, "policy_test.yaml")
	write(t, policy, "version: 1\nedge: {access: [{name: bad, deny: {cidrs: [{file: bad.txt}]}}]}\n")
	write(t, list, "198.51.100.0/24\n")
	write(t, tests, "tests: [{name: a, requests: [{url: /, ip: 203.0.113.9, expect: {status: 403}}]}]\n")
	var out, errs safeWriter
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- watchTests(ctx, &env{Out: &out, Err: &errs, LookupEnv: os.LookupEnv}, testOptions{Files: []string{tests}, Format: "text", Geo: geoOptions{Mode: "compiled"}})
	}()
	seen := 0
	await := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			text := (out.String() + "\n" + errs.String())
			if n := strings.Count(text, want); n > seen {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("never came: %q in\n%s", want, text)
			}
		}
	}
	await("status  expected 403, came 200")
	write(t, list, "203.0.113.0/24\n")
	await("ok, 1 test")
	write(t, policy, "version: 1\nedge: {acess: []}\n")
	await("did you mean access?")
	write(t, policy, "version: 1\nedge: {access: [{name: other, deny: {cidrs: [203.0.113.9]}, status: 451}]}\n")
	await("status  expected 403, came 451")
	seen = strings.Count(out.String(), "ok, 1 test")
	write(t, tests, "tests: [{name: a, requests: [{url: /, ip: 203.0.113.9, expect: {status: 451}}]}]\n")
	await("ok, 1 test")
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, errNo) {
		t.Error(err)
	}
}
