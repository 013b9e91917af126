package authz

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// counted counts how often a timer moves.
type counted struct {
	net.Conn
	moves int
}

func (c *counted) SetReadDeadline(t time.Time) error  { c.moves++; return c.Conn.SetReadDeadline(t) }
func (c *counted) SetWriteDeadline(t time.Time) error { c.moves++; return c.Conn.SetWriteDeadline(t) }

func lazyPair(t *testing.T) (ours *lazyConn, inner *counted, theirs net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if theirs, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	conn, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { theirs.Close(); conn.Close() })
	inner = &counted{Conn: conn}
	return &lazyConn{Conn: inner}, inner, theirs
}

// Deadlines that only move on cost nothing, and all that are due are kept.
func TestLazyDeadlines(t *testing.T) {
	t.Parallel()
	ours, inner, theirs := lazyPair(t)
	b := make([]byte, 1)
	for range 100 {
		_ = ours.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := theirs.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		_ = ours.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := ours.Read(b); err != nil {
			t.Fatal(err)
		}
		_ = ours.SetWriteDeadline(time.Now().Add(time.Minute))
		if _, err := ours.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if inner.moves > 3 {
		t.Errorf("timers moved %d times for 100 questions", inner.moves)
	}
	wait := func(what string, least time.Duration, do func() error) {
		t.Helper()
		began := time.Now()
		if err := do(); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) < least {
			t.Errorf("%s: %v after %s", what, err, time.Since(began))
		}
	}
	read := func() error { _, err := ours.Read(b); return err }
	// Earlier at once, later when the earlier one is over.
	_ = ours.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	wait("earlier", 50*time.Millisecond, read)
	wait("over", 0, read)
	_ = ours.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_ = ours.SetReadDeadline(time.Now().Add(150 * time.Millisecond))
	wait("later", 150*time.Millisecond, read)
	_ = ours.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	_ = ours.SetReadDeadline(time.Time{})
	go func() { time.Sleep(50 * time.Millisecond); _, _ = theirs.Write([]byte("y")) }()
	if err := read(); err != nil {
		t.Errorf("without a deadline: %v", err)
	}
	_ = ours.SetDeadline(time.Now().Add(30 * time.Millisecond))
	wait("both", 30*time.Millisecond, read)
}

// A write that a timer cut before its time goes on where it was, and none is endless.
func TestLazyWrite(t *testing.T) {
	t.Parallel()
	ours, _, theirs := lazyPair(t)
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // more than the kernel holds
	_ = ours.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	_ = ours.SetWriteDeadline(time.Now().Add(20 * time.Second))
	got := make(chan []byte)
	go func() {
		time.Sleep(100 * time.Millisecond)
		b, _ := io.ReadAll(io.LimitReader(theirs, int64(len(large))))
		got <- b
	}()
	if n, err := ours.Write(large); n != len(large) || err != nil {
		t.Fatalf("%d bytes of %d, %v", n, len(large), err)
	}
	if !bytes.Equal(<-got, large) {
		t.Error("other bytes came than were written")
	}
	_ = ours.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := ours.Write(large); !errors.Is(err, os.ErrDeadlineExceeded) || n == len(large) {
		t.Errorf("nobody reads: %d bytes, %v", n, err)
	}
}
