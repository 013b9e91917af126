package limit

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// clientTimeout ends what has no deadline of its own: dialling, which goes on
// for the pool after its caller has left, and a Take without a deadline.
const clientTimeout = time.Second

// renewPause is how long a dialer keeps its connections at least.
const renewPause = 100 * time.Millisecond

var errStale = errors.New("the connection belongs to a server that was given up")

// dialFunc is what the client takes as its dialer.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer dials, and can give up all it has dialled: the pool asks a connection
// whether it is well before each use, and one that was given up says no.
//
// The client does so alone for replies that begin with READONLY. Redis 6.2 wraps
// what a script meets ("ERR Error running script ... -READONLY"), and the client
// would keep asking a demoted master for ever, wherever its name points to now.
type dialer struct {
	dial    dialFunc
	born    atomic.Uint64 // the generation of new connections
	renewed atomic.Int64  // when the last one began, Unix nanoseconds
}

func (d *dialer) dialConn(ctx context.Context, network, addr string) (net.Conn, error) {
	born := d.born.Load()
	c, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, dialer: d, born: born}, nil
}

// renew gives up all connections, once in a while: a storm of complaints is not a
// storm of dialling.
func (d *dialer) renew() {
	last, now := d.renewed.Load(), time.Now().UnixNano()
	if now-last >= int64(renewPause) && d.renewed.CompareAndSwap(last, now) {
		d.born.Add(1)
	}
}

// conn is a connection that may be given up.
type conn struct {
	net.Conn
	dialer *dialer
	born   uint64
}

// SyscallConn is how the pool looks whether the other side has closed. With TLS
// it cannot see that: what is there to read may be TLS' own.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	if c.born != c.dialer.born.Load() {
		return nil, errStale
	}
	if s, ok := c.Conn.(syscall.Conn); ok {
		return s.SyscallConn()
	}
	return unseen{}, nil
}

// unseen is a connection that nobody can look at.
type unseen struct{}

func (unseen) Control(func(uintptr)) error    { return nil }
func (unseen) Read(func(uintptr) bool) error  { return nil }
func (unseen) Write(func(uintptr) bool) error { return nil }
