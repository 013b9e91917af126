package gentest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// NGINX is a running nginx.
type NGINX struct {
	Dir string // its prefix: logs and temporary files are here

	t       testing.TB
	process *exec.Cmd
	done    chan struct{}
	output  *safeBuffer
}

// Binary is the path of nginx. Without one the test is skipped; in CI it fails.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("cannot find nginx, which CI must have: %v", err)
	}
	t.Skip("nginx is not installed")
	return ""
}

// Start runs nginx on a configuration, a file below dir, until the test ends,
// and waits until it accepts connections at each of the addresses. The
// configuration must keep pid and temporary paths inside of its prefix, dir.
func Start(t testing.TB, dir, conf string, listens ...string) *NGINX {
	t.Helper()
	n := &NGINX{Dir: dir, t: t, done: make(chan struct{}), output: &safeBuffer{}}
	n.process = exec.Command(Binary(t), "-p", dir, "-c", filepath.Join(dir, conf), "-e", "stderr", "-g", "daemon off;")
	n.process.Stdout, n.process.Stderr = n.output, n.output
	n.process.Env = append(os.Environ(), "TZ=UTC")
	if err := n.process.Start(); err != nil {
		t.Fatalf("cannot start nginx: %v", err)
	}
	go func() {
		// How it ended is seen in its output.
		_ = n.process.Wait()
		close(n.done)
	}()
	t.Cleanup(n.Stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("nginx said:\n%s", n.ErrorLog())
		}
	})
	for _, addr := range listens {
		n.await(addr)
	}
	return n
}

// Stop ends nginx and waits for it.
func (n *NGINX) Stop() {
	select {
	case <-n.done:
		return
	default:
	}
	// It may have ended meanwhile, which is as well.
	_ = n.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.done:
	case <-time.After(5 * time.Second):
		_ = n.process.Process.Kill()
		<-n.done
	}
}

// Reload lets nginx read its configuration again.
func (n *NGINX) Reload() {
	n.t.Helper()
	if err := n.process.Process.Signal(syscall.SIGHUP); err != nil {
		n.t.Fatalf("cannot reload nginx: %v", err)
	}
}

// ErrorLog is all that nginx wrote to standard error, which is where
// error_log should point, and to an error.log in its prefix.
func (n *NGINX) ErrorLog() string {
	text := n.output.String()
	if more, err := os.ReadFile(filepath.Join(n.Dir, "error.log")); err == nil {
		text += string(more)
	}
	return text
}

// await waits until an address accepts connections.
func (n *NGINX) await(addr string) {
	n.t.Helper()
	network := "tcp"
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		network, addr = "unix", path
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		c, err := net.DialTimeout(network, addr, time.Second)
		if err == nil {
			// Nothing was written: nobody waits for this connection.
			_ = c.Close()
			return
		}
		select {
		case <-n.done:
			n.t.Fatalf("nginx ended at once:\n%s", n.ErrorLog())
		default:
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("nginx does not listen on %s: %v\n%s", addr, err, n.ErrorLog())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Test runs nginx -t on a configuration below dir.
func Test(ctx context.Context, t testing.TB, dir, conf string) error {
	t.Helper()
	cmd := exec.CommandContext(ctx, Binary(t), "-t", "-q", "-p", dir, "-c", filepath.Join(dir, conf), "-e", "stderr")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return errors.New(strings.TrimSpace(string(out)) + ": " + err.Error())
	}
	return nil
}

// FreePort is an address on loopback that nobody listens on: below the ports that
// Linux gives to outgoing connections (from 32768 on), one of which could take it
// before nginx does.
func FreePort(t testing.TB) string {
	t.Helper()
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(10_000)))); err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
	t.Fatalf("cannot find a free port: %v", err)
	return ""
}

// WriteFiles writes files below a directory.
func WriteFiles[T string | []byte](t testing.TB, dir string, files map[string]T) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			t.Fatalf("cannot write %q: %v", name, err)
		}
	}
}

// Hermetic are the directives of the main context that keep an nginx within
// its prefix, and those of http that do the same.
func Hermetic() (main, http string) {
	main = "worker_processes 1;\npid nginx.pid;\nerror_log stderr warn;\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		http += fmt.Sprintf("%s_temp_path temp_%s;\n", kind, kind)
	}
	return main, http
}

// safeBuffer is a buffer that a process writes while a test reads.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// CacheDir is where an nginx of the test may keep denials: a name on tmpfs that
// nobody has, for nginx to make, since its workers may not look into a test's
// own folder. What it leaves is removed with the test.
func CacheDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sluice-test-")
	if err != nil {
		t.Fatalf("cannot make a folder on tmpfs: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("cannot open %q to nginx's workers: %v", dir, err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "deny")
}
