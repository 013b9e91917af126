package limittest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
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
	return StartServer(t, args...).Addr
}

// Server is a Redis that a test can end and start again.
type Server struct {
	// Addr is its HOST:PORT, for as long as the test lives.
	Addr string

	t    testing.TB
	args []string
	cmd  *exec.Cmd
	gone chan struct{}
}

// StartServer is StartRedis for tests that want to break what they start.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return startServer(t, func(path, port string) []string {
		return append([]string{
			path, "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(),
			"--save", "", "--appendonly", "no", "--daemonize", "no",
		}, args...)
	})
}

func startServer(t testing.TB, command func(path, port string) []string) *Server {
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
		s := &Server{t: t}
		if s.Addr, err = freeAddr(); err != nil {
			break
		}
		_, port, _ := net.SplitHostPort(s.Addr)
		s.args = command(path, port)
		if err = s.start(); err == nil {
			t.Cleanup(s.Kill)
			return s
		}
	}
	t.Fatalf("cannot start redis-server: %v", err)
	return nil
}

// Kill ends the server at once (SIGKILL), as a crash would.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.gone
}

// Restart starts the server again on its port: empty, unless its arguments say
// that it keeps something.
func (s *Server) Restart() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatalf("cannot start redis-server again: %v", err)
	}
}

func (s *Server) start() error {
	var output bytes.Buffer
	cmd := exec.Command(s.args[0], s.args[1:]...)
	cmd.Stdout, cmd.Stderr = &output, &output
	noOrphan(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	s.cmd, s.gone = cmd, gone
	if err := awaitRedis(s.Addr, cmd.Process.Pid, gone); err != nil {
		s.Kill()
		return fmt.Errorf("%w\n%s", err, output.String())
	}
	return nil
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

// freeAddr is an address nobody listens on now. A cluster's node listens 10000
// ports above it, too. Both are below the ports that Linux gives to outgoing
// connections (from 32768 on), one of which could take them while a server restarts.
func freeAddr() (string, error) {
	var err error
	for range 100 {
		port := 20_000 + rand.IntN(2500)
		var l, bus net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err != nil {
			continue
		}
		_ = l.Close()
		if bus, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port+10_000))); err == nil {
			_ = bus.Close()
			return l.Addr().String(), nil
		}
	}
	return "", fmt.Errorf("no free port: %w", err)
}

// Process is the process that runs now.
func (s *Server) Process() *os.Process { return s.cmd.Process }
