package authz

import (
	"errors"
	"net"
	"os"
	"time"
)

// lazyConn is a connection whose deadlines are cheap. The server sets three for each
// question, and each of them moves a timer of the runtime's: a tenth of the time that
// an answer took. Here a later deadline is only noted; when the earlier one is over,
// which it is once in seconds, the timer moves to where it should be by then.
//
// One goroutine reads, writes and sets deadlines; others may only close it.
type lazyConn struct {
	net.Conn
	read, write lazyDeadline
}

// lazyDeadline is when an operation is to end, and when the timer says so: never
// later.
type lazyDeadline struct {
	due, armed time.Time // zero: never
}

// set notes a deadline. It tells whether the timer has to move at once: to end
// earlier, or never.
func (d *lazyDeadline) set(t time.Time) (move bool) {
	d.due = t
	if t.IsZero() {
		return !d.armed.IsZero()
	}
	return d.armed.IsZero() || t.Before(d.armed)
}

// early tells whether an operation was ended by a timer that should not have yet.
func (d *lazyDeadline) early(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && (d.due.IsZero() || time.Now().Before(d.due))
}

// SetReadDeadline implements net.Conn.
func (c *lazyConn) SetReadDeadline(t time.Time) error {
	if !c.read.set(t) {
		return nil
	}
	return c.armRead()
}

// SetWriteDeadline implements net.Conn.
func (c *lazyConn) SetWriteDeadline(t time.Time) error {
	if !c.write.set(t) {
		return nil
	}
	return c.armWrite()
}

// SetDeadline implements net.Conn.
func (c *lazyConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *lazyConn) armRead() error {
	c.read.armed = c.read.due
	return c.Conn.SetReadDeadline(c.read.due)
}

func (c *lazyConn) armWrite() error {
	c.write.armed = c.write.due
	return c.Conn.SetWriteDeadline(c.write.due)
}

// Read implements net.Conn.
func (c *lazyConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err == nil || n > 0 || !c.read.early(err) {
			return n, err
		}
		if err := c.armRead(); err != nil {
			return 0, err
		}
	}
}

// Write implements net.Conn.
func (c *lazyConn) Write(b []byte) (written int, err error) {
	for {
		n, err := c.Conn.Write(b[written:])
		if written += n; err == nil || !c.write.early(err) {
			return written, err
		}
		if err := c.armWrite(); err != nil {
			return written, err
		}
	}
}
