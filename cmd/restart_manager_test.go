package cmd

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	return newManagerOn(t, listenOn(t, "tcp", "127.0.0.1:0"))
}

// newManagerOn is a manager whose service answers on a listener, TCP or unix.
func newManagerOn(t *testing.T, ln net.Listener) *manager {
	t.Helper()
	m := &manager{listen: ln.Addr().String()}
	if ln.Addr().Network() == "unix" {
		m.listen = "unix:" + m.listen
	}
	m.keep(t, "sluice.socket", ln.(keeper))
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

// keeper is a socket whose file can be kept.
type keeper interface {
	File() (*os.File, error)
	Close() error
}

// keep keeps a socket in a file of its own.
func (m *manager) keep(t *testing.T, name string, socket keeper) {
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

func listenOn(t *testing.T, network, addr string) net.Listener {
	t.Helper()
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	return ln
}
