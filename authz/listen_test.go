package authz

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestListenUnix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.sock")
	address := "unix:" + path
	ln, err := Listen(context.Background(), address)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o660 {
		t.Errorf("mode %o, want 660", got)
	}
	if _, err := Listen(context.Background(), address); err == nil || !strings.Contains(err.Error(), "another process answers there") {
		t.Errorf("a socket in use: error %v", err)
	}
	// What a killed process leaves behind.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the socket is gone already: %v", err)
	}
	if ln, err = Listen(context.Background(), address); err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	ln.Close()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// A file that is no socket is somebody's.
func TestListenSparesFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(context.Background(), "unix:"+path); err == nil || !strings.Contains(err.Error(), "no socket is in the way") {
		t.Errorf("error %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "x" {
		t.Errorf("the file is gone: %q, %v", b, err)
	}
}

func TestListenErrors(t *testing.T) {
	f := func(address string) {
		t.Helper()
		if ln, err := Listen(context.Background(), address); err == nil {
			ln.Close()
			t.Errorf("%q: no error", address)
		} else if !strings.Contains(err.Error(), `cannot listen on "`+address+`"`) {
			t.Errorf("%q: error %v does not say so", address, err)
		}
	}
	f("127.0.0.1")
	f("127.0.0.1:99999")
	f("unix:/nonexistent/dir/s.sock")
	f("unix:")
}

func TestServeOnUnixSocket(t *testing.T) {
	r := start(t, memoryEngine(t, shop, newMemory()), ServeOptions{Listen: "unix:" + filepath.Join(t.TempDir(), "s.sock")})
	if resp, _, _ := r.exchange(t, ask+"\r\n"); resp.StatusCode != 204 {
		t.Errorf("status %d", resp.StatusCode)
	}
}
