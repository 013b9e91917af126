package authz

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"sluice/authz/limit"
)

const (
	// denialQueue is how many denials wait for being written.
	denialQueue = 1024
	// denialsPerSecond are written when nothing else is asked for.
	denialsPerSecond = 100
)

// denialLog writes a line for every denial, apart from the decisions: they hand
// over a few words and go on. In a storm some lines are written each second and
// the others are counted.
type denialLog struct {
	log        *slog.Logger
	perSecond  int
	queue      chan denialLine
	suppressed atomic.Uint64 // did not fit into the queue
	stop       chan struct{}
	done       chan struct{}
}

// denialLine is one line: plain values and names of the policy, nothing borrowed.
// It cannot hold a credential, because a Decision does not.
type denialLine struct {
	verdict        Verdict
	reason         Reason
	shadow         bool
	status         int
	route          string
	tenant, key    string
	plan, limit    string
	cost, left     int64
	wait           time.Duration
	client         netip.Prefix
	err            error
	strangerToPeer netip.Addr
}

func newDenialLog(log *slog.Logger, perSecond int) *denialLog {
	if perSecond <= 0 {
		perSecond = denialsPerSecond
	}
	l := &denialLog{
		log: log, perSecond: perSecond, queue: make(chan denialLine, denialQueue),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go l.run()
	return l
}

// note hands over a decision that refused, would have, or could not be made.
func (l *denialLog) note(d *Decision) {
	if d.Verdict == Allow && d.Reason == ReasonNone {
		return
	}
	l.put(denialLine{
		verdict: d.Verdict, reason: d.Refused(), shadow: d.Reason == ReasonShadow, status: d.Status,
		route: d.Route, tenant: d.Tenant, key: d.Key, plan: d.Plan, limit: d.Limit,
		cost: d.Cost, left: d.Left, wait: d.Wait, client: d.Client, err: d.Err,
	})
}

// stranger notes a connection from outside of the peers.
func (l *denialLog) stranger(addr netip.Addr) { l.put(denialLine{strangerToPeer: addr}) }

func (l *denialLog) put(d denialLine) {
	select {
	case l.queue <- d:
	default:
		l.suppressed.Add(1)
	}
}

// close writes what waits, and ends. Nothing may be noted afterwards.
func (l *denialLog) close() {
	close(l.stop)
	<-l.done
}

func (l *denialLog) run() {
	defer close(l.done)
	second := time.NewTicker(time.Second)
	defer second.Stop()
	written := 0
	for {
		select {
		case d := <-l.queue:
			l.write(d, &written)
		case <-second.C:
			written = 0
			l.sum()
		case <-l.stop:
			for len(l.queue) > 0 {
				l.write(<-l.queue, &written)
			}
			l.sum()
			return
		}
	}
}

// write writes a line, or counts it when this second has had enough.
func (l *denialLog) write(d denialLine, written *int) {
	if *written++; *written > l.perSecond {
		l.suppressed.Add(1)
		return
	}
	d.write(l.log)
}

// sum says how many lines were left out.
func (l *denialLog) sum() {
	if n := l.suppressed.Swap(0); n > 0 {
		l.log.Warn("denials not written", "count", n)
	}
}

func (d *denialLine) write(log *slog.Logger) {
	if d.strangerToPeer.IsValid() {
		log.Warn("connection refused: not a peer", "peer", d.strangerToPeer.String())
		return
	}
	attrs := []any{"verdict", d.verdict.String(), "reason", d.reason.String(), "route", d.route}
	if d.status > 0 {
		attrs = append(attrs, "status", d.status)
	}
	// Somebody known is named by his key. Of somebody unknown there is only the
	// address that his counter has.
	if d.tenant != "" {
		attrs = append(attrs, "tenant", d.tenant, "key", d.key)
	} else if d.client.IsValid() {
		attrs = append(attrs, "client", client{prefix: d.client, addr: d.client.Addr()}.String())
	}
	if d.plan != "" {
		attrs = append(attrs, "plan", d.plan)
	}
	if d.limit != "" {
		attrs = append(attrs, "limit", d.limit, "cost", d.cost, "left", d.left)
		if d.wait != limit.Never {
			attrs = append(attrs, "wait", d.wait.String())
		}
	}
	switch {
	case d.err != nil:
		log.Error("not decided", append(attrs, "error", d.err.Error())...)
	case d.verdict == Degraded:
		log.Warn("not decided", attrs...)
	case d.shadow:
		log.Info("would be denied", attrs...)
	default:
		log.Info("denied", attrs...)
	}
}
