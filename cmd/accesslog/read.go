package accesslog

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// DefaultWindow is how far apart lines may be out of order.
	DefaultWindow = time.Minute
	// maxHeld is how many entries wait to be sorted: some 40 MB with their lines.
	maxHeld = 100_000
	// Batches are smaller when many sources are read at a time: all their batches
	// together take a few dozen megabytes.
	batchSize    = 512 << 10
	minBatch     = 2 * MaxLine
	batchMemory  = 48 << 20
	batchesAhead = 2 // of a source
)

// Options are the choices of a Log; the zero value is good.
type Options struct {
	// Format is how lines are written; nil: the first lines of each source tell.
	Format *Format
	// Vars are those that values are wanted of; nil: NewVars.
	Vars *Vars
	// Window is how long a line may come after others that it belongs before, a
	// request's own duration included; 0: DefaultWindow. In whole seconds, at most an hour.
	Window time.Duration
	// Workers are how many parse at a time; 0: one for each processor.
	Workers int
	// Now tells the year of times that have none; nil: time.Now.
	Now func() time.Time
}

// Counts are what came of the lines read so far.
type Counts struct {
	Lines    int64 // that are not blank
	Entries  int64 // handed out
	Bad      [problems]Tally
	Repaired Tally
	// Late lines came so late that their request was taken at a later time than its own.
	Late int64
	// Narrowed is how many seconds went before their window had passed, since more
	// lines came than may wait.
	Narrowed int64
	Whole    int64 // say no more of time than seconds
	Timed    int64 // say how long the request took
}

// Problems are the kinds of what can be wrong with a line.
func Problems() []Problem { return []Problem{Unlike, CutShort, NoTime, TooLong, Leap} }

// Log reads sources. Its methods are for one goroutine, but for Progress.
type Log struct {
	format  *Format
	vars    *Vars
	now     time.Time
	streams []*stream
	queue   *queue
	jobs    chan *batch
	quit    chan struct{}
	closed  sync.Once
	cutting sync.WaitGroup
	pool    sync.Pool
	read    atomic.Int64
	total   int64
	counts  Counts
	last    *batch // of the entry handed out last
	pending *Entry // waits for those before it
	waiting Entry
	err     error
}

// Open begins to read. Close must be called.
func Open(sources []Source, o Options) *Log {
	l := &Log{format: o.Format, vars: o.Vars, jobs: make(chan *batch, 2*len(sources)), quit: make(chan struct{}), now: time.Now()}
	if l.vars == nil {
		l.vars = NewVars()
	}
	if o.Now != nil {
		l.now = o.Now()
	}
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	l.queue = newQueue(min(int64(o.Window/time.Second), 3600), maxHeld)
	size := min(batchSize, max(minBatch, batchMemory/(len(sources)*(batchesAhead+2))))
	l.pool.New = func() any { return &batch{text: make([]byte, 0, size), done: make(chan struct{}, 1)} }
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	for range o.Workers {
		go l.work()
	}
	for _, s := range sources {
		st := &stream{log: l, source: s, batches: make(chan *batch, batchesAhead)}
		l.total += s.size()
		if s.size() == 0 {
			l.total = -1 << 62 // nobody knows
		}
		l.streams = append(l.streams, st)
		l.cutting.Go(st.run)
	}
	go func() { l.cutting.Wait(); close(l.jobs) }()
	return l
}

func (l *Log) work() {
	for b := range l.jobs {
		b.parseAll()
		b.done <- struct{}{}
	}
}

func (l *Log) batch() *batch {
	b := l.pool.Get().(*batch)
	b.reset()
	return b
}

// Close ends reading.
func (l *Log) Close() {
	l.closed.Do(func() { close(l.quit) })
	l.cutting.Wait()
}

// Progress is how many bytes of how many have been read, packed as they are;
// total is 0 when nobody knows. It may be called at any time.
func (l *Log) Progress() (read, total int64) { return l.read.Load(), max(l.total, 0) }

// Counts are those of the lines read so far.
func (l *Log) Counts() Counts {
	c := l.counts
	c.Late, c.Narrowed = l.queue.late, l.queue.early
	return c
}

// Err is why Next ended before the end of the log.
func (l *Log) Err() error { return l.err }

// Next is the next entry by the beginning of its request, nil at the end of all
// sources or after an error.
func (l *Log) Next() *Entry {
	l.release()
	for {
		if e := l.queue.pop(); e != nil {
			l.counts.Entries++
			l.last = e.batch
			return e
		}
		if l.pending == nil && !l.pull() {
			if l.err != nil || !l.queue.drain() {
				return nil
			}
			continue
		}
		if l.queue.ready(l.pending) {
			l.queue.push(*l.pending)
			l.pending = nil
		}
	}
}

// release gives a batch back whose entries have all been seen.
func (l *Log) release() {
	if b := l.last; b != nil {
		l.last = nil
		l.seen(b)
	}
}

func (l *Log) seen(b *batch) {
	if b.live--; b.live <= 0 {
		l.pool.Put(b)
	}
}

// pull takes the line that was written first of those that the sources come to.
func (l *Log) pull() bool {
	var from *stream
	for _, s := range l.streams {
		if !s.fill() {
			if l.err != nil {
				return false
			}
			continue
		}
		if from == nil || s.head().End < from.head().End {
			from = s
		}
	}
	if from == nil {
		return false
	}
	l.waiting = *from.head()
	l.pending = &l.waiting
	// A batch whose entries have all been seen is somebody else's.
	if from.next++; from.next == len(from.current.entries) {
		from.current = nil
	}
	return true
}

func (s *stream) head() *Entry { return &s.current.entries[s.next] }

// fill makes sure that the stream has a head; false at its end.
func (s *stream) fill() bool {
	for !s.ended && s.current == nil {
		b, ok := <-s.batches
		if !ok {
			s.ended, s.current = true, nil
			break
		}
		<-b.done
		if b.err != nil {
			s.log.err = b.err
			s.ended, s.current = true, nil
			break
		}
		s.log.count(b)
		if len(b.entries) == 0 {
			s.log.pool.Put(b)
			continue
		}
		s.current, s.next = b, 0
	}
	return !s.ended
}

func (l *Log) count(b *batch) {
	c := &l.counts
	c.Lines += b.lines
	c.Whole += b.whole
	c.Timed += b.timed
	c.Repaired.join(b.repaired)
	for i := range b.problems {
		c.Bad[i].join(b.problems[i])
	}
}
