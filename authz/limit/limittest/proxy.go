package limittest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Fault is what a Proxy does with the bytes of one direction.
type Fault int32

// The faults. Those that lose something close the connection afterwards, as a
// broken one would; Hold keeps it open and silent.
const (
	Pass   Fault = iota
	Drop         // nothing arrives
	Cut          // half of it arrives
	Hold         // nothing arrives, now or later
	Repeat       // it arrives twice
	Slow         // it arrives late
)

// slowness is the delay of Slow.
const slowness = 15 * time.Millisecond

// Proxy stands between a store and its Redis and breaks what passes: a reply that
// is lost has been executed, a request that is lost has not.
type Proxy struct {
	// Addr is where it listens, HOST:PORT.
	Addr string

	target   string
	requests atomic.Int32
	replies  atomic.Int32
	dials    atomic.Int64

	mu    sync.Mutex
	conns map[net.Conn]bool
	over  bool
}

// StartProxy starts a proxy before a server; it ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: target, conns: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.dials.Add(1)
			all.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		p.over = true
		p.mu.Unlock()
		p.Sever()
		all.Wait()
	})
	return p
}

// Requests sets what happens to what a store sends from now on.
func (p *Proxy) Requests(f Fault) { p.requests.Store(int32(f)) }

// Replies sets what happens to what Redis answers from now on.
func (p *Proxy) Replies(f Fault) { p.replies.Store(int32(f)) }

// Dials is how many connections were made so far.
func (p *Proxy) Dials() int64 { return p.dials.Load() }

// Sever closes all connections.
func (p *Proxy) Sever() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Open is how many connections there are.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) / 2
}

func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	defer p.forget(client, server)
	if !p.keep(client, server) {
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { p.pump(server, client, &p.requests) })
	ways.Go(func() { p.pump(client, server, &p.replies) })
	ways.Wait()
}

// pump moves bytes until one side closes or a fault ends the connection.
func (p *Proxy) pump(to, from net.Conn, fault *atomic.Int32) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	held := false
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		part := buf[:n]
		f := Fault(fault.Load())
		switch f {
		case Drop:
			return
		case Cut:
			part = part[:n/2]
		case Hold:
			held = true
		case Slow:
			time.Sleep(slowness)
		}
		if held {
			continue
		}
		if _, err := to.Write(part); err != nil || f == Cut {
			return
		}
		if f == Repeat {
			if _, err := to.Write(part); err != nil {
				return
			}
		}
	}
}

func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	return !p.over
}

func (p *Proxy) forget(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}
