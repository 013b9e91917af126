package replay

import (
	"fmt"
	"time"

	"sluice/cmd/accesslog"
	"sluice/cmd/trial"
	"sluice/geo"
	"sluice/policies"
)

// maxKeys is how many counters a trial keeps: more than the clients of any log
// that fits into an afternoon.
const maxKeys = 4_000_000

// Options are the choices of a run.
type Options struct {
	// Policy is what is tried, and Against, when it is not nil, what it is compared with.
	Policy, Against *policies.Compiled
	// Sources are the logs. Format and Window are as in accesslog.Options.
	Sources []accesslog.Source
	Format  *accesslog.Format
	Window  time.Duration
	// Tenant is the variable of the log that says whose a request is: by a tenant's id
	// or claim, a key's id, or the SHA-256 of a key in hexadecimal. Empty: sluice_tenant,
	// where the log has it. Who is named by it needs no credential in the log.
	Tenant string
	// SkipCacheHits leaves out what was answered from NGINX's cache. In production
	// limits apply before the cache is looked at.
	SkipCacheHits bool
	// Geo are the databases that say where clients are.
	Geo geo.Tables
	// Progress, when it is not nil, is told now and then how many bytes of how many
	// have been read; total is 0 when nobody knows.
	Progress func(read, total int64)
}

// progressStep is after how many lines Progress is told.
const progressStep = 4096

// Run replays the logs. An error is the logs', or that the service cannot enforce
// a policy.
func Run(o Options) (*Report, error) {
	r, err := newRunner(o)
	if err != nil {
		return nil, err
	}
	log := accesslog.Open(o.Sources, accesslog.Options{Format: o.Format, Vars: r.builder.vars, Window: o.Window})
	defer log.Close()
	for n := 0; ; n++ {
		if o.Progress != nil && n%progressStep == 0 {
			o.Progress(log.Progress())
		}
		e := log.Next()
		if e == nil {
			break
		}
		if err := r.entry(e); err != nil {
			return nil, err
		}
	}
	if err := log.Err(); err != nil {
		return nil, err
	}
	if err := r.drain(); err != nil {
		return nil, err
	}
	counts := log.Counts()
	if counts.Lines > 0 && counts.Entries == 0 {
		return nil, unreadable(&counts)
	}
	if o.Progress != nil {
		o.Progress(log.Progress())
	}
	return r.report(&counts), nil
}

// unreadable says why not one line could be read.
func unreadable(c *accesslog.Counts) error {
	for _, p := range accesslog.Problems() {
		if t := c.Bad[p]; t.Lines > 0 {
			return fmt.Errorf("cannot read any of %d lines; %s:%d %s", c.Lines, t.Source, t.Line, p)
		}
	}
	return fmt.Errorf("cannot read any of %d lines", c.Lines)
}

// runner is a run under way.
type runner struct {
	Options
	builder *builder
	now     *trial.Trial // of Policy
	before  *trial.Trial // of Against, or nil
	free    *item
	tally   *tally
	skipped Skipped
	refused int64 // requests that had been answered 429 when they were logged
}

// Skipped is what of a log is no client's request.
type Skipped struct {
	NoRequest   int64 `json:"no_request"`  // NGINX could not read it, or the client sent none
	Subrequests int64 `json:"subrequests"` // of NGINX itself: what asks the service
	CacheHits   int64 `json:"cache_hits"`  // left out because it was asked for
	Datagrams   int64 `json:"datagrams"`   // what tells the service of ends of requests: it names no client
}

// item is one request under way in both trials.
type item struct {
	next   *item // of those that are free
	runner *runner

	buf         []byte // what the requests' strings point to
	header      []span
	now, before trial.Request
	told        func(*trial.Outcome) // made once
	toldBefore  func(*trial.Outcome)
	waits       int // for outcomes

	at                int64 // microseconds since 1970
	source            string
	line              int64
	http10, forwarded bool

	fate, old fate
}

func newRunner(o Options) (*runner, error) {
	r := &runner{Options: o}
	var err error
	if r.builder, err = newBuilder(&o); err != nil {
		return nil, err
	}
	// A policy that the service cannot enforce should not cost a gigabyte of reading.
	if err := r.start(time.Time{}); err != nil {
		return nil, err
	}
	r.now, r.before = nil, nil
	r.tally = newTally(o.Policy, o.Against != nil)
	return r, nil
}

// start begins the trials at the log's first time.
func (r *runner) start(at time.Time) (err error) {
	if r.now, err = trial.New(r.builder.policy, trial.Options{Start: at, Geo: r.Geo, MaxKeys: maxKeys}); err != nil {
		return err
	}
	if r.Against != nil {
		r.before, err = trial.New(r.builder.against, trial.Options{Start: at, Geo: r.Geo, MaxKeys: maxKeys})
	}
	return err
}

// entry runs one line through the trials.
func (r *runner) entry(e *accesslog.Entry) error {
	if r.skip(e) {
		return nil
	}
	if r.now == nil {
		if err := r.start(time.UnixMicro(e.Start)); err != nil {
			return err
		}
	}
	if e.Status() == 429 {
		r.refused++
	}
	it := r.take()
	it.at, it.source, it.line = e.Start, e.Source(), e.Line
	r.builder.build(it, e)
	if r.builder.ours(it) {
		r.skipped.Subrequests++
		r.put(it)
		return nil
	}
	it.waits = 1
	if r.before != nil {
		it.waits = 2
		r.before.Submit(&it.before, it.toldBefore)
	}
	r.now.Submit(&it.now, it.told)
	return nil
}

// skip counts what is no client's request.
func (r *runner) skip(e *accesslog.Entry) bool {
	switch {
	case e.Value(accesslog.VarDone) != nil || isDatagram(e):
		r.skipped.Datagrams++
	case !e.HasRequest():
		r.skipped.NoRequest++
	case r.SkipCacheHits && string(e.Value(accesslog.VarCacheStatus)) == "HIT":
		r.skipped.CacheHits++
	default:
		return false
	}
	return true
}

func (r *runner) take() *item {
	it := r.free
	if it == nil {
		it = &item{runner: r}
		it.told = func(o *trial.Outcome) { it.fate.fill(o, r.tally, &it.now); it.done() }
		it.toldBefore = func(o *trial.Outcome) { it.old.fill(o, nil, &it.before); it.done() }
		return it
	}
	r.free = it.next
	return it
}

func (r *runner) put(it *item) {
	it.next, r.free = r.free, it
}

// done counts the item when both trials have told.
func (it *item) done() {
	if it.waits--; it.waits > 0 {
		return
	}
	it.runner.tally.add(it)
	it.runner.put(it)
}

// drain lets what is still held go on.
func (r *runner) drain() error {
	if r.now == nil {
		return r.start(time.Time{})
	}
	if r.before != nil {
		r.before.Drain()
	}
	r.now.Drain()
	r.tally.demand.flush()
	return nil
}
