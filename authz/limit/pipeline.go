package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// once is a command that the client never sends again. Its retries are off
// (MaxRetries), but a cluster's client repeats within MaxRedirects what was lost
// after it was sent, unless the command says this.
type once struct{ *redis.StringCmd }

// NoRetry is asked by the client.
func (once) NoRetry() bool { return true }

func newOnce(ctx context.Context, args []any) once {
	cmd := redis.NewStringCmd(ctx, args...)
	cmd.SetFirstKeyPos(firstKey)
	return once{cmd}
}

// What a job has come to.
const (
	jobWaits int32 = iota // in the queue
	jobSent               // perhaps on the wire: it may have happened
	jobLeft               // its caller went before it was sent: it never happens
)

// job is a command that waits for a batch.
type job struct {
	cmd      once
	ctx      context.Context
	deadline time.Time
	state    atomic.Int32
	done     chan struct{} // one message when cmd has its reply
}

// pipeline brings the commands of many callers to one server on few
// connections. Whoever finds it idle sends his command himself. When commands
// are on their way already, the next ones gather in a queue, which lanes, a
// goroutine and a connection each, send as batches, one after the other.
//
// A command is written once at most. A batch whose connection is lost fails: all
// of its commands may have happened. Nobody waits for a batch beyond his own
// deadline, and who leaves the queue before it is sent has done nothing.
//
// Replies are told apart by their order alone. What would shift it, a reply that is
// left over or comes twice, is seen by the number in each (call.claim): whoever got
// another's fails. A refusal of the server (NOSCRIPT) has no number; taken for
// another's it may cost the tenant a request, never the limit.
//
// The client's auto-pipelining was the other choice. Its full-duplex form carries
// what was not answered over to a new connection, by retries of its own, which
// rules it out; its default form lets callers wait for their batch beyond their
// deadlines, and is slower. Decisions a second against single commands on a pool of 20, in
// one interleaved run (BenchmarkRedisSend, two processors that Redis and the
// callers shared):
//
//	callers          1     16     64    256
//	auto-pipelining  0.5   1.3    1.6   2.5
//	this             1.0   1.4    1.7   2.5
//
// Unloaded a plain command is fastest, whence the callers that go by themselves;
// two lanes keep Redis busy while the first one's replies are read.
type pipeline struct {
	client *redis.Client
	busy   atomic.Int32 // callers that send their command themselves
	single int32        // how many may
	jobs   sync.Pool    // of *job

	mu    sync.Mutex
	queue []*job
	lanes int // that run now
	most  int // that may
}

const (
	maxSingle = 2
	maxLanes  = 2
	// maxBatch bounds what is lost with one connection, and how long its first
	// command waits for the last one.
	maxBatch = 128
)

func newPipeline(client *redis.Client) *pipeline {
	p := &pipeline{client: client, single: maxSingle, most: maxLanes}
	p.jobs.New = func() any { return &job{done: make(chan struct{}, 1)} }
	return p
}

// do sends a command and waits for its reply, no longer than ctx allows.
func (p *pipeline) do(ctx context.Context, args []any) (string, error) {
	cmd := newOnce(ctx, args)
	if p.busy.Add(1) <= p.single {
		err := p.client.Process(ctx, cmd)
		p.busy.Add(-1)
		return cmd.Val(), err
	}
	p.busy.Add(-1)
	j := p.jobs.Get().(*job)
	j.cmd, j.ctx = cmd, ctx
	j.state.Store(jobWaits)
	var ok bool
	if j.deadline, ok = ctx.Deadline(); !ok {
		j.deadline = time.Now().Add(clientTimeout)
	}
	p.enqueue(j)
	select {
	case <-j.done:
		j.cmd, j.ctx = once{}, nil
		p.jobs.Put(j)
		return cmd.Val(), cmd.Err()
	case <-ctx.Done():
		// Either it is never sent now, or it is on its way and may happen. The job and
		// its command are the lane's.
		j.state.CompareAndSwap(jobWaits, jobLeft)
		return "", ctx.Err()
	}
}

func (p *pipeline) enqueue(j *job) {
	p.mu.Lock()
	p.queue = append(p.queue, j)
	start := p.lanes < p.most && (p.lanes == 0 || len(p.queue) >= maxBatch/4)
	if start {
		p.lanes++
	}
	p.mu.Unlock()
	if start {
		go p.lane()
	}
}

// lane sends batches until the queue is empty.
func (p *pipeline) lane() {
	var jobs []*job
	pipe := p.client.Pipeline()
	for {
		if jobs = p.next(jobs[:0]); len(jobs) == 0 {
			return
		}
		send(pipe, jobs)
		clear(jobs)
	}
}

// next moves the head of the queue into jobs; none ends the lane.
func (p *pipeline) next(jobs []*job) []*job {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.queue), maxBatch)
	jobs = append(jobs, p.queue[:n]...)
	rest := copy(p.queue, p.queue[n:])
	clear(p.queue[rest:])
	p.queue = p.queue[:rest]
	if n == 0 {
		p.lanes--
	}
	return jobs
}

// send executes a batch of those whose callers still wait.
func send(pipe redis.Pipeliner, jobs []*job) {
	sent := jobs[:0]
	var latest time.Time
	for _, j := range jobs {
		if j.ctx.Err() != nil || !j.state.CompareAndSwap(jobWaits, jobSent) {
			continue
		}
		if j.deadline.After(latest) {
			latest = j.deadline
		}
		sent = append(sent, j)
		_ = pipe.Process(j.ctx, j.cmd)
	}
	if len(sent) == 0 {
		return
	}
	ctx, cancel := context.WithDeadline(context.Background(), latest)
	_, _ = pipe.Exec(ctx)
	cancel()
	for _, j := range sent {
		j.done <- struct{}{}
	}
}
