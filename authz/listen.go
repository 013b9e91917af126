package authz

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// socketMode is who may connect to a unix socket: the owner and the group.
const socketMode = 0o660

// Listen opens unix:PATH or HOST:PORT. A unix socket has mode 0660 from its
// first moment; one that is left over, with nobody behind it, is replaced.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return nil, fmt.Errorf("cannot listen on %q: %w", address, err)
		}
		return ln, nil
	}
	ln, err := listenUnix(ctx, path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err = removeStale(path); err == nil {
			ln, err = listenUnix(ctx, path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %q: %w", address, err)
	}
	return ln, nil
}

func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	// On Linux a socket file takes the mode that its descriptor has when it is
	// bound, less the umask; so at no time may others connect.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), socketMode) })
	}}
	ln, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	// The umask may have taken the group's right away.
	if err := os.Chmod(path, socketMode); err != nil {
		ln.Close()
		return nil, err
	}
	return ln, nil
}

// removeStale removes a socket that nobody answers on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("a file that is no socket is in the way (%s)", info.Mode())
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return errors.New("another process answers there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// LoopbackPeers are who may ask when nothing else is said: this machine.
func LoopbackPeers() []netip.Prefix {
	return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// peerListener accepts connections from some addresses only. Whoever may
// connect speaks for every client, so others are not even answered.
type peerListener struct {
	net.Listener
	peers   []netip.Prefix
	refused func(netip.Addr)
}

// Accept waits for the next connection from a peer.
func (l *peerListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
		if !ok { // a unix socket: its mode has decided
			return &lazyConn{Conn: conn}, nil
		}
		addr := tcp.AddrPort().Addr().Unmap().WithZone("")
		if l.admits(addr) {
			return &lazyConn{Conn: conn}, nil
		}
		conn.Close()
		l.refused(addr)
	}
}

func (l *peerListener) admits(addr netip.Addr) bool { return anyContains(l.peers, addr) }

func anyContains(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}
