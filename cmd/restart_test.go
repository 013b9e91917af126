package cmd

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// manager is what systemd is to a service: it keeps the sockets.
type manager struct {
	files  []*os.File
	names  []string
	notify *net.UnixConn
	listen string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	m := &manager{}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m.listen = tcp.Addr().String()
	m.keep(t, "sluice.socket", tcp.(*net.TCPListener))
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	m.keep(t, "sluice.socket", udp)
	path := filepath.Join(t.TempDir(), "notify")
	m.notify, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.notify.Close() })
	return m
}

// keep keeps a socket in a file of its own.
func (m *manager) keep(t *testing.T, name string, socket interface {
	File() (*os.File, error)
	Close() error
}) {
	t.Helper()
	f, err := socket.File()
	if err != nil {
		t.Fatal(err)
	}
	// Else closing it would remove the file of a unix socket.
	if unix, ok := socket.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false)
	}
	socket.Close()
	t.Cleanup(func() { f.Close() })
	m.files, m.names = append(m.files, f), append(m.names, name)
}

// command is a service as the manager starts it: LISTEN_PID is its own number.
func (m *manager) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec sluice serve "$@"`, "sluice"}, args...)...)
	cmd.ExtraFiles = m.files
	cmd.Env = append(os.Environ(), fmt.Sprintf("LISTEN_FDS=%d", len(m.files)), "LISTEN_FDNAMES="+strings.Join(m.names, ":"))
	if m.notify != nil {
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+m.notify.LocalAddr().String())
	}
	return cmd
}

// start starts the service and waits until it says that it is ready.
func (m *manager) start(t *testing.T, args ...string) *service {
	t.Helper()
	cmd := m.command(args...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &service{cmd: cmd, log: follow(stderr), addr: m.listen}
	t.Cleanup(s.stop)
	m.await(t, s, "READY=1")
	return s
}

// await waits for what the service tells its manager.
func (m *manager) await(t *testing.T, s *service, want string) {
	t.Helper()
	buf := make([]byte, 256)
	_ = m.notify.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, err := m.notify.Read(buf)
	if err != nil || string(buf[:n]) != want {
		t.Fatalf("the manager hears %q, %v; want %q; the log:\n%s", buf[:n], err, want, s.log.text())
	}
}

const restartPolicy = `version: 1
limits:
  sold: {per: global, quota: 1000000000/month, accounting: soft}
responses: {headers: [x-ratelimit]}
`

// Five restarts under load, with the store in a file: the questions wait, each is
// answered by this process or the next one, and each is counted once.
func TestRestartLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, restartPolicy)
	m := newManager(t)
	args := []string{policy, "--store", "embedded:" + filepath.Join(dir, "sluice.db"), "--admin", ""}
	s := m.start(t, args...)

	var asked, bad atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for client := range 8 {
		load.Go(func() {
			c := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
			defer c.CloseIdleConnections()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				req, _ := http.NewRequest(http.MethodGet, "http://"+m.listen+"/_sluice/open/all", nil)
				req.Header.Set("X-Sluice-Ip", "192.0.2.1")
				req.Header.Set("X-Sluice-Request", fmt.Sprintf("%016d%016d", client, n))
				asked.Add(1)
				resp, err := c.Do(req)
				if err != nil {
					bad.Add(1)
					t.Errorf("no answer: %v", err)
					continue
				}
				resp.Body.Close()
				if resp.StatusCode != 204 || resp.Header.Get("X-Sluice-Degraded") != "" {
					bad.Add(1)
					t.Errorf("status %d, degraded %q", resp.StatusCode, resp.Header.Get("X-Sluice-Degraded"))
				}
			}
		})
	}
	for range 5 {
		before := asked.Load()
		for asked.Load() < before+200 {
			time.Sleep(time.Millisecond)
		}
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		m.await(t, s, "STOPPING=1")
		if err := s.wait(); err != nil {
			t.Errorf("it ended with %v:\n%s", err, s.log.text())
		}
		s = m.start(t, args...)
	}
	close(stop)
	load.Wait()

	a := ask(t, http.DefaultClient, http.MethodGet, "http://"+m.listen+"/_sluice/open/all", "X-Sluice-Ip", "192.0.2.1")
	if got, want := a.header.Get("X-Ratelimit-Remaining"), fmt.Sprint(1_000_000_000-asked.Load()-1); got != want {
		t.Errorf("%s are left after %d requests; want %s", got, asked.Load()+1, want)
	}
	if bad.Load() > 0 {
		t.Errorf("%d of %d requests got no good answer", bad.Load(), asked.Load())
	}
}

// A file has one service; the second one says so, and the first goes on.
func TestServeSecondOnFile(t *testing.T) {
	t.Parallel()
	dir, _ := adminSite(t)
	s := serveIn(t, dir, "--store", "embedded:sluice.db")
	second := exec.Command("sluice", "serve", "policy.yaml", "--listen", "127.0.0.1:0", "--store", "embedded:sluice.db", "--datagrams", "", "--admin", "")
	second.Dir = dir
	out, err := second.CombinedOutput()
	if second.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), `cannot open store "sluice.db": another process has it`) {
		t.Errorf("error %v:\n%s", err, out)
	}
	if a := ask(t, http.DefaultClient, http.MethodGet, "http://"+s.addr+"/_sluice/open/rest"); a.status != 204 {
		t.Errorf("the first one answers %d", a.status)
	}
}

// Sockets that are of no use, or open to everybody, are refused, and said which.
func TestServeHandedSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, restartPolicy)
	unix := func(mode os.FileMode) *net.UnixListener {
		path := filepath.Join(t.TempDir(), "s")
		ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return ln
	}
	tcp := func() *net.TCPListener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return ln.(*net.TCPListener)
	}
	f := func(want string, keep func(m *manager)) {
		t.Helper()
		m := &manager{}
		keep(m)
		out, err := m.command(policy, "--store", "memory", "--datagrams", "", "--admin", "").CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("error %v; want %q in\n%s", err, want, out)
		}
	}
	f("want SocketMode=0660", func(m *manager) { m.keep(t, "sluice.socket", unix(0o666)) })
	f("is one too many", func(m *manager) { m.keep(t, "a", tcp()); m.keep(t, "b", tcp()) })
	f("is nothing to listen on", func(m *manager) {
		file, err := os.Open(policy)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		m.files, m.names = []*os.File{file}, []string{"a"}
	})
	// Both good ones, and the admin port by its name.
	m := newManager(t)
	m.files, m.names = nil, nil
	questions, admin := unix(0o660), unix(0o600)
	path, adminPath := questions.Addr().String(), admin.Addr().String()
	m.keep(t, "sluice.socket", questions)
	m.keep(t, "admin", admin)
	m.start(t, policy, "--store", "memory", "--datagrams", "", "--token-file", filepath.Join(dir, "token"))
	for path, url := range map[string]string{path: "http://sluice/_sluice/open/all", adminPath: "http://localhost/-/status"} {
		c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}}}
		if a := ask(t, c, http.MethodGet, url); a.status/100 != 2 {
			t.Errorf("%s on %s: status %d %s", url, path, a.status, a.body)
		}
	}
}
