package limit

import (
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// EmbeddedOptions are the choices of an Embedded; the zero value is good.
type EmbeddedOptions struct {
	// Memory are the choices of the counters. MaxKeys bounds them all; quotas that the
	// file holds are loaded even beyond it.
	Memory MemoryOptions
	// FlushEvery is how often soft quotas are written, and so how much of them a crash
	// can lose; 5 s if 0.
	FlushEvery time.Duration
	// LockWait is how long another process may hold the file before OpenEmbedded gives
	// up; 1 s if 0.
	LockWait time.Duration
}

// Embedded is the Store of one process that forgets nothing that was sold: a Memory,
// whose quotas are also in a file. Rates, windows and leases are lost with the
// process; what they limit is over soon.
//
// A charge or correction of a hard quota is on disk before its call returns, and
// many calls share one commit, so that a busy store waits no more often than an
// idle one. Ops that are Soft or Shadow wait for nothing: they are written every
// FlushEvery and by Close. The names of charges and corrections are written with
// them, so what is repeated after a crash is known.
//
// When the file cannot be written, hard charges fail with ErrUnavailable, counted
// in memory all the same, and are written as soon as they can be. Periods that are
// over are removed from the file; what was sold in this one never is.
type Embedded struct {
	*Memory
	file    *soldFile
	every   time.Duration
	stop    chan struct{}
	ended   chan struct{} // closed when the last commit is done
	closing sync.Once
	last    error // of Close

	commits  atomic.Int64
	failures atomic.Int64
	failed   atomic.Pointer[error] // the last commit's
}

// EmbeddedStats are what an Embedded has done since it was opened.
type EmbeddedStats struct {
	// Commits is how often the file was written, Failures how often it could not be.
	Commits, Failures int64
	// Waiting is how many quotas have changed and are not on disk, and Lag how long
	// the oldest change has waited: at most FlushEvery while all is well.
	Waiting int
	Lag     time.Duration
	// Bytes is the size of the file.
	Bytes int64
	// Err is why the last commit failed; nil when it did not.
	Err error
}

// OpenEmbedded opens the store in the file at path, and makes the file when it is
// not there. One process has it at a time. A file that is damaged, of another
// program or of a later format is left as it is.
func OpenEmbedded(path string, o EmbeddedOptions) (*Embedded, error) {
	if o.FlushEvery <= 0 {
		o.FlushEvery = 5 * time.Second
	}
	if o.LockWait <= 0 {
		o.LockWait = time.Second
	}
	file, err := openSoldFile(path, o.LockWait)
	if err != nil {
		return nil, err
	}
	e := &Embedded{
		Memory: NewMemory(o.Memory),
		file:   file,
		every:  o.FlushEvery,
		stop:   make(chan struct{}),
		ended:  make(chan struct{}),
	}
	if err := e.load(); err != nil {
		_ = file.close()
		return nil, err
	}
	e.journal = newJournal()
	go e.run()
	return e, nil
}

// load fills the empty Memory with what the file holds.
func (e *Embedded) load() error {
	return e.file.load(e.clock(true), func(key []byte, s soldQuota) {
		e.restore([]byte(s.tag), key, quotaForm, s.words())
	}, func(m soldMark) {
		e.restore([]byte(m.tag), []byte(m.name), markForm, m.words())
	})
}

// restore puts a counter into a Memory that nobody uses yet.
func (m *Memory) restore(tag, key []byte, f form, w words) {
	s := &m.shards[maphash.Bytes(m.seed, tag)%shardCount]
	hash := hashOf(maphash.Bytes(m.seed, key), f)
	if old := s.part(hash).find(hash, key); old != nil {
		old.words = w // a mark made twice: the later one is behind
		return
	}
	s.insert(hash, key, w)
	m.keys.Add(1)
}

// run writes batches, one after another, until the store is closed.
func (e *Embedded) run() {
	defer close(e.ended)
	ticker := time.NewTicker(e.every)
	defer ticker.Stop()
	for {
		select {
		case <-e.journal.kick:
			_ = e.commit(e.journal.cut(true), false)
		case <-ticker.C:
			_ = e.commit(e.journal.cut(false), true)
		case <-e.stop:
			e.journal.close()
			_ = e.commit(e.journal.cut(true), false) // what fails is lazy now
			e.last = e.commit(e.journal.cut(false), false)
			return
		}
	}
}

// commit writes a batch and lets those go on who wait for it.
func (e *Embedded) commit(b *batch, sweep bool) error {
	var err error
	at := e.clock(true)
	if !b.empty() || sweep {
		if err = e.file.write(b, at, sweep); err != nil {
			e.failures.Add(1)
		} else {
			e.commits.Add(1)
		}
		e.failed.Store(&err)
	}
	e.journal.finish(b, err, at)
	return err
}

// Close writes what is not on disk yet, and gives the file free. Its error says how
// many quotas could not be written.
func (e *Embedded) Close() error {
	e.closing.Do(func() {
		_ = e.Memory.Close()
		close(e.stop)
		<-e.ended
		if n, _ := e.journal.waiting(); n > 0 {
			e.last = fmt.Errorf("cannot write %d quotas: %w", n, e.last)
		}
		if err := e.file.close(); err != nil && e.last == nil {
			e.last = fmt.Errorf("cannot close store %q: %w", e.file.path, err)
		}
	})
	return e.last
}

// Stats tells how the file is doing.
func (e *Embedded) Stats() EmbeddedStats {
	s := EmbeddedStats{Commits: e.commits.Load(), Failures: e.failures.Load(), Bytes: sizeOf(e.file.path)}
	var since time.Time
	if s.Waiting, since = e.journal.waiting(); !since.IsZero() {
		s.Lag = time.Since(since)
	}
	if err := e.failed.Load(); err != nil {
		s.Err = *err
	}
	return s
}
