package authz

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxDatagram is the longest datagram that is read, in bytes.
	maxDatagram = 8 << 10
	// datagramQueue is how many ends of requests wait for the store.
	datagramQueue = 8192
	// datagramWorkers settle them.
	datagramWorkers = 4
	// datagramBuffer is what the kernel is asked to hold, in bytes: a burst of ends
	// must not be lost while one is read.
	datagramBuffer = 4 << 20
)

// Datagrams listens to NGINX telling of the ends of requests (sluice/log.conf).
// They are believed from peers alone: whoever may send them could free other
// people's leases, if he knew their request ids.
type Datagrams struct {
	engine *Engine
	conn   *net.UDPConn
	peers  []netip.Prefix
	log    *slog.Logger
	queue  chan Completion
	counts datagramCounts
}

type datagramCounts struct{ settled, unknown, bad, strangers, lost, failed atomic.Uint64 }

// DatagramCounts is what came of the datagrams so far.
type DatagramCounts struct {
	Settled   uint64 // a request of this instance
	Unknown   uint64 // of another instance, or nothing to settle
	Bad       uint64 // not read
	Strangers uint64 // not from a peer
	Lost      uint64 // the queue was full
	Failed    uint64 // the store did not take it
}

// ListenDatagrams opens HOST:PORT. peers nil: LoopbackPeers.
func ListenDatagrams(e *Engine, address string, peers []netip.Prefix, log *slog.Logger) (*Datagrams, error) {
	addr, err := net.ResolveUDPAddr("udp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for datagrams on %q: %w", address, err)
	}
	conn, err := net.ListenUDP("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen for datagrams on %q: %w", address, err)
	}
	return NewDatagrams(e, conn, peers, log), nil
}

// NewDatagrams hears what comes to an open socket, which Serve closes. peers nil:
// LoopbackPeers.
func NewDatagrams(e *Engine, conn *net.UDPConn, peers []netip.Prefix, log *slog.Logger) *Datagrams {
	// Less is possible too; then more is lost in a burst.
	_ = conn.SetReadBuffer(datagramBuffer)
	if peers == nil {
		peers = LoopbackPeers()
	}
	return &Datagrams{engine: e, conn: conn, peers: peers, log: log, queue: make(chan Completion, datagramQueue)}
}

// Addr is where datagrams are heard.
func (l *Datagrams) Addr() net.Addr { return l.conn.LocalAddr() }

// Counts is what came of the datagrams so far.
func (l *Datagrams) Counts() DatagramCounts {
	c := &l.counts
	return DatagramCounts{
		Settled: c.settled.Load(), Unknown: c.unknown.Load(), Bad: c.bad.Load(),
		Strangers: c.strangers.Load(), Lost: c.lost.Load(), Failed: c.failed.Load(),
	}
}

// Serve listens until ctx ends, and then settles what it has heard.
func (l *Datagrams) Serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { l.conn.Close() })
	defer stop()
	var workers sync.WaitGroup
	for range datagramWorkers {
		workers.Go(func() {
			for c := range l.queue {
				l.settle(c)
			}
		})
	}
	l.read()
	close(l.queue)
	workers.Wait()
}

func (l *Datagrams) read() {
	buf := make([]byte, maxDatagram)
	for {
		n, from, err := l.conn.ReadFromUDPAddrPort(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			l.log.Warn("cannot read a datagram", "error", err.Error())
			time.Sleep(10 * time.Millisecond) // an error that stays must not spin
			continue
		}
		l.hear(buf[:n], from.Addr())
	}
}

// hear takes one datagram.
func (l *Datagrams) hear(data []byte, from netip.Addr) {
	if !anyContains(l.peers, from.Unmap().WithZone("")) {
		l.counts.strangers.Add(1)
		return
	}
	c, ok := parseCompletion(data)
	if !ok {
		l.counts.bad.Add(1)
		return
	}
	select {
	case l.queue <- c:
	default:
		l.counts.lost.Add(1)
	}
}

func (l *Datagrams) settle(c Completion) {
	known, err := l.engine.Complete(c)
	switch {
	case errors.Is(err, errSeveral):
		l.counts.unknown.Add(1)
	case err != nil:
		l.counts.failed.Add(1)
	case known:
		l.counts.settled.Add(1)
	default:
		l.counts.unknown.Add(1)
	}
}

// parseCompletion reads a syslog datagram of NGINX whose message is the JSON of
// log format sluice_done.
func parseCompletion(data []byte) (Completion, bool) {
	start := bytes.IndexByte(data, '{')
	if start < 0 || data[0] != '<' {
		return Completion{}, false
	}
	// The status is text: of a client who left it is 000, which is no JSON number.
	var line struct {
		ID     string            `json:"id"`
		Path   string            `json:"path"`
		Status string            `json:"status"`
		Costs  map[string]string `json:"costs"`
	}
	if json.Unmarshal(data[start:], &line) != nil || line.ID == "" || line.Path == "" {
		return Completion{}, false
	}
	status, err := strconv.Atoi(line.Status)
	return Completion{ID: line.ID, Path: line.Path, Status: status, Costs: line.Costs}, err == nil
}
