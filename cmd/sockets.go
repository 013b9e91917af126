package cmd

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"
)

// sockets are those that the service manager has opened for this process, as
// systemd does by a .socket unit; nil where it gave none.
//
// They stay open while one process ends and the next one starts, so questions that
// come in between wait in the kernel and find no closed door.
type sockets struct {
	decisions net.Listener
	admin     net.Listener
	datagrams *net.UDPConn
}

// adminSocket is the FileDescriptorName= of the one for the admin port.
const adminSocket = "admin"

// handedSockets takes what the service manager left in LISTEN_FDS.
func handedSockets() (sockets, error) {
	var s sockets
	for _, f := range activation.Files(true) {
		err := s.take(f)
		f.Close() // a copy of it is in use
		if err != nil {
			s.close()
			return sockets{}, fmt.Errorf("cannot use a socket of the service manager: %w", err)
		}
	}
	return s, nil
}

// take finds out what a socket is for: by its kind, and its name.
func (s *sockets) take(f *os.File) error {
	kind, err := syscall.GetsockoptInt(int(f.Fd()), syscall.SOL_SOCKET, syscall.SO_TYPE)
	switch {
	case err != nil:
		return fmt.Errorf("%s is nothing to listen on: %w", f.Name(), err)
	case kind == syscall.SOCK_DGRAM:
		return s.takeDatagrams(f)
	}
	ln, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("%s is nothing to listen on: %w", f.Name(), err)
	}
	place := &s.decisions
	if f.Name() == adminSocket {
		place = &s.admin
	}
	if *place != nil {
		ln.Close()
		return fmt.Errorf("%s is one too many; want one ListenStream=, and one of FileDescriptorName=%s", ln.Addr(), adminSocket)
	}
	*place = ln
	return checkMode(ln.Addr())
}

func (s *sockets) takeDatagrams(f *os.File) error {
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return fmt.Errorf("%s is nothing to listen on: %w", f.Name(), err)
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok || s.datagrams != nil {
		conn.Close()
		return fmt.Errorf("%s is one too many, or no UDP; want one ListenDatagram=HOST:PORT", conn.LocalAddr())
	}
	s.datagrams = udp
	return nil
}

// checkMode refuses a unix socket that everybody may connect to, which is what
// systemd makes unless it is told otherwise: who connects speaks for every client.
func checkMode(addr net.Addr) error {
	unix, ok := addr.(*net.UnixAddr)
	if !ok {
		return nil
	}
	info, err := os.Stat(unix.Name)
	if err != nil {
		return err
	}
	const others fs.FileMode = 0o002
	if mode := info.Mode().Perm(); mode&others != 0 {
		return fmt.Errorf("everybody may connect to %q (mode %#o); want SocketMode=0660", unix.Name, mode)
	}
	return nil
}

func (s *sockets) close() {
	for _, ln := range []net.Listener{s.decisions, s.admin} {
		if ln != nil {
			ln.Close()
		}
	}
	if s.datagrams != nil {
		s.datagrams.Close()
	}
}
