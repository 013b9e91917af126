package limit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// giveUpAfter is when a batch that may have been counted is no longer repeated:
// before the store forgets its name.
const giveUpAfter = Remember - 10*time.Second

func newPrefix() (p [8]byte) {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	hex.Encode(p[:], random[:])
	return p
}

// name gives a batch a name that no other has.
func (s *Soft) name(d *softDelta) {
	copy(d.id[:], s.prefix[:])
	copy(d.id[len(s.prefix):], fmt.Appendf(nil, "%016x", s.serial.Add(1)))
}

func (c *softCounter) acquire(ctx context.Context) error {
	select {
	case c.busy <- struct{}{}:
		return nil
	default:
	}
	select {
	case c.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unavailable(ctx, ctx.Err())
	}
}

func (c *softCounter) release() { <-c.busy }

// hurry asks for an early flush of one counter.
func (s *Soft) hurry(c *softCounter) {
	if !c.queued.CompareAndSwap(false, true) {
		return
	}
	select {
	case s.kick <- c:
	default:
		c.queued.Store(false)
	}
}

// run flushes until the store is closed.
func (s *Soft) run(ctx context.Context) {
	var workers sync.WaitGroup
	defer workers.Wait()
	for range flushers / 8 {
		workers.Go(func() { s.hurried(ctx) })
	}
	ticker := time.NewTicker(s.o.FlushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = s.Flush(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// hurried makes early flushes.
func (s *Soft) hurried(ctx context.Context) {
	for {
		select {
		case c := <-s.kick:
			c.queued.Store(false)
			_ = s.refresh(ctx, c)
		case <-ctx.Done():
			return
		}
	}
}

// Flush writes what was admitted until now, reads the totals, and drops the
// counters that were not used since the last flush. The error is one of those of
// the store; what could not be written is kept.
func (s *Soft) Flush(ctx context.Context) error {
	counters := s.all()
	work := make(chan *softCounter)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range min(flushers, len(counters)) {
		wg.Go(func() {
			for c := range work {
				if err := s.tend(ctx, c); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	for _, c := range counters {
		work <- c
	}
	close(work)
	wg.Wait()
	if failed == nil {
		s.flushed.Store(s.now())
	}
	return failed
}

// tend is one counter's part of a flush.
func (s *Soft) tend(ctx context.Context, c *softCounter) error {
	if used := c.active.Swap(false); !used {
		if _, owes := c.owes(); !owes {
			s.forget(c, false)
			return nil
		}
	}
	return s.refresh(ctx, c)
}

// refresh writes what a counter owes, and reads its total.
func (s *Soft) refresh(ctx context.Context, c *softCounter) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if err := s.write(ctx, c); err != nil {
		s.failures.Add(1)
		return err
	}
	op := c.op.Load()
	if op == nil {
		return nil // nobody has read its total yet
	}
	ask, now := *op, s.now()
	ask.Cost, ask.Shadow = 1, false
	var state [1]State
	if err := s.inner.Peek(ctx, []Op{ask}, state[:]); err != nil {
		return err
	}
	if e := c.epoch.Load(); e != nil && e.start == state[0].Stamp {
		c.learn(&ask, &state[0], now, true)
	}
	return nil
}

// write writes what a counter owes.
func (s *Soft) write(ctx context.Context, c *softCounter) error {
	if _, owes := c.owes(); !owes {
		return nil
	}
	if err := c.acquire(ctx); err != nil {
		return err
	}
	defer c.release()
	for {
		d := c.next(s.name)
		if d == nil {
			return nil
		}
		if !d.tried.IsZero() && time.Since(d.tried) > giveUpAfter {
			s.doubtful.Add(max(d.units, -d.units))
			c.sent()
			continue
		}
		if err := s.send(ctx, c, d); err != nil {
			return err
		}
		c.sent()
	}
}

// send makes one call for a batch.
func (s *Soft) send(ctx context.Context, c *softCounter, d *softDelta) error {
	op := *c.op.Load()
	op.Stamp = d.start
	first := time.Now()
	err := s.inner.Settle(ctx, d.id[:], []Op{op}, []int64{d.units})
	if err != nil && d.tried.IsZero() && !untouched(err) {
		d.tried = first
	}
	return err
}

// untouched tells whether the store cannot have done what it answered with err: it
// was not reached, or it said no.
func untouched(err error) bool {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return true
	}
	var reply redis.Error
	return errors.As(err, &reply) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, errClosed)
}

// all are the counters there are now.
func (s *Soft) all() []*softCounter {
	counters := make([]*softCounter, 0, s.counters.Load())
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.RLock()
		for _, c := range shard.keys {
			counters = append(counters, c)
		}
		shard.mu.RUnlock()
	}
	return counters
}
