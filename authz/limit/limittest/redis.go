package limittest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// StartRedis starts a Redis of its own for the test, on a free loopback port,
// without persistence, and ends it with the test. More arguments are given to
// redis-server. It returns HOST:PORT.
//
// Where redis-server is not installed the test is skipped; with CI=true it fails.
func StartRedis(t testing.TB, args ...string) (addr string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("cannot find redis-server, which CI needs: %v", err)
		}
		t.Skip("redis-server is not installed")
	}
	// Between the choice of a port and its use another process may take it.
	for range 5 {
		if addr, err = startRedis(t, path, args); err == nil {
			return addr
		}
	}
	t.Fatalf("cannot start redis-server: %v", err)
	return ""
}

func startRedis(t testing.TB, path string, args []string) (string, error) {
	addr, err := freeAddr()
	if err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(addr)
	var output bytes.Buffer
	cmd := exec.Command(path, append([]string{
		"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(),
		"--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)...)
	cmd.Stdout, cmd.Stderr = &output, &output
	noOrphan(cmd)
	if err := cmd.Start(); err != nil {
		return "", err
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	stop := func() {
		_ = cmd.Process.Kill()
		<-gone
	}
	if err := awaitRedis(addr, cmd.Process.Pid, gone); err != nil {
		stop()
		return "", fmt.Errorf("%w\n%s", err, output.String())
	}
	t.Cleanup(stop)
	return addr, nil
}

// awaitRedis waits until the process with this id answers: on a port that
// somebody else took another Redis may.
func awaitRedis(addr string, pid int, gone <-chan struct{}) error {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	var last error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-gone:
			return fmt.Errorf("redis-server ended by itself: %w", last)
		default:
		}
		var conn net.Conn
		if conn, last = net.Dial("tcp", addr); last != nil { // the client would log it
			continue
		}
		_ = conn.Close()
		var info string
		if info, last = client.Info(context.Background(), "server").Result(); last != nil {
			if strings.HasPrefix(last.Error(), "NOAUTH") {
				return nil // our own, with a password: no other test has one on this port
			}
			continue
		}
		if strings.Contains(info, "process_id:"+strconv.Itoa(pid)+"\r\n") {
			return nil
		}
		last = fmt.Errorf("another server answers on %s", addr)
	}
	return fmt.Errorf("redis-server does not answer: %w", last)
}

// freeAddr is an address nobody listens on now.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
