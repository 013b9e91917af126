package limit

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// journal collects what an Embedded has to write: every quota that changed, as it
// is now, and the names that made it change. A Memory tells it under the locks of
// its shards, so for one counter the last word is the latest.
//
// What must be on disk before it is answered goes into the urgent batch, which is
// committed as soon as the last commit is done: all that came meanwhile share the
// next one. The rest goes into the lazy batch, which waits for the flush. A nil
// journal keeps nothing.
type journal struct {
	mu     sync.Mutex
	urgent *batch
	lazy   *batch
	kick   chan struct{} // holds one when there is something urgent
	flying *batch        // urgent, and being written
	closed *batch        // what steps get after the end: an error
}

// batch is what is written by one commit.
type batch struct {
	quotas map[string]soldQuota // by the counter's key
	marks  []soldMark
	since  time.Time     // when the first of them came
	done   chan struct{} // closed when it is written, or cannot be
	err    error         // to be read when done is closed
}

// soldQuota is a quota as it is to be written, one without an end to be forgotten.
type soldQuota struct {
	tag string
	quota
}

// soldMark is a mark as it is to be written.
type soldMark struct {
	tag, name string
	mark
}

func newJournal() *journal {
	return &journal{urgent: newBatch(), lazy: newBatch(), kick: make(chan struct{}, 1)}
}

func newBatch() *batch {
	return &batch{quotas: map[string]soldQuota{}, done: make(chan struct{})}
}

func (b *batch) empty() bool { return len(b.quotas) == 0 && len(b.marks) == 0 }

// started notes when the batch got its first record.
func (b *batch) started() {
	if b.empty() {
		b.since = time.Now()
	}
}

// sells tells whether op is to be kept, and whether its caller waits for that.
// Shadow limits refuse nobody, and nobody waits for them.
func (op *Op) sells() (kept, urgent bool) {
	return op.Kind == Quota, op.Kind == Quota && !op.Soft && !op.Shadow
}

// charged is told of a step that charged, under its locks.
func (j *journal) charged(ops []Op, cells []cell, at moment) {
	if j == nil {
		return
	}
	kept, urgent, repeated := false, false, false
	for i := range ops {
		k, u := ops[i].sells()
		kept = kept || (k && cells[i].write)
		urgent = urgent || (u && cells[i].write)
		repeated = repeated || (u && cells[i].known)
	}
	if !kept && !repeated {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if repeated {
		cells[0].batch = j.latest()
	}
	if !kept {
		return
	}
	b := j.batch(urgent, cells)
	if b == j.closed {
		return
	}
	for i := range ops {
		op, c := &ops[i], &cells[i]
		if op.Kind != Quota || !c.write {
			continue
		}
		j.keep(b, op, c)
		if len(op.ID) > 0 {
			name := string(appendMarkKey(nil, op.Key, op.ID))
			b.marks = append(b.marks, soldMark{tagOf(name, op.Tag), name, mark{at.now, c.words[0]}})
		}
	}
}

// settled is told of a correction under id, under its locks.
func (j *journal) settled(id []byte, ops []Op, cells []cell, at moment) {
	if j == nil {
		return
	}
	kept, urgent := false, false
	for i := range ops {
		k, u := ops[i].sells()
		kept = kept || (k && cells[i].entry != nil)
		urgent = urgent || (u && cells[i].entry != nil)
	}
	if !kept {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.batch(urgent, cells)
	if b == j.closed {
		return
	}
	for i := range ops {
		if ops[i].Kind == Quota && cells[i].entry != nil {
			j.keep(b, &ops[i], &cells[i])
		}
	}
	if len(id) > 0 {
		name := string(appendMarkKey(nil, ops[0].Key, id))
		b.marks = append(b.marks, soldMark{tagOf(name, ops[0].Tag), name, mark{time: at.now}})
	}
}

// forgotten is told of a reset, under its locks.
func (j *journal) forgotten(ops []Op, cells []cell) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range ops {
		if ops[i].Kind != Quota {
			continue
		}
		if b, key := j.batch(true, cells), string(ops[i].Key); b != j.closed {
			b.quotas[key] = soldQuota{}
			delete(j.lazy.quotas, key)
		}
	}
}

// batch is the batch for a step. The step waits for an urgent one, whose name it
// finds in its first cell.
func (j *journal) batch(urgent bool, cells []cell) *batch {
	if j.closed != nil {
		cells[0].batch = j.closed
		return j.closed
	}
	if !urgent {
		j.lazy.started()
		return j.lazy
	}
	j.urgent.started()
	cells[0].batch = j.urgent
	select {
	case j.kick <- struct{}{}:
	default:
	}
	return j.urgent
}

// latest is the urgent batch that is not on disk and ends last, or nil: what was
// charged before may be in it.
func (j *journal) latest() *batch {
	if !j.urgent.empty() {
		return j.urgent
	}
	return j.flying
}

// keep puts a counter as it is into b, and no older word of it stays elsewhere.
func (j *journal) keep(b *batch, op *Op, c *cell) {
	e := c.shard.part(c.hash).find(c.hash, op.Key)
	if e == nil {
		return // its period was over, and it made room
	}
	sold := soldQuota{tagOf(e.key, op.Tag), quotaOf(&e.words)}
	switch _, waiting := j.urgent.quotas[e.key]; {
	case b == j.urgent:
		delete(j.lazy.quotas, e.key)
		b.quotas[e.key] = sold
	case waiting:
		j.urgent.quotas[e.key] = sold
	default:
		b.quotas[e.key] = sold
	}
}

// tagOf is the tag as a part of a key that holds it, which needs no memory.
func tagOf(key string, tag []byte) string {
	if i := strings.Index(key, text(tag)); i >= 0 {
		return key[i : i+len(tag)]
	}
	return string(tag)
}

// await waits until what the step has charged is on disk.
func (j *journal) await(ctx context.Context, cells []cell) error {
	if j == nil || len(cells) == 0 || cells[0].batch == nil {
		return nil
	}
	b := cells[0].batch
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return fmt.Errorf("%w: charged, but not known to be on disk: %w", ErrUnavailable, ctx.Err())
	}
}

// cut takes a batch away to be written, and begins another.
func (j *journal) cut(urgent bool) *batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	if urgent {
		b := j.urgent
		j.urgent, j.flying = newBatch(), b
		return b
	}
	b := j.lazy
	j.lazy = newBatch()
	return b
}

// finish ends a batch that was cut. What could not be written stays, but for what
// has a later word and for marks that no longer count, and is written with the next
// flush.
func (j *journal) finish(b *batch, err error, at moment) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.putBack(b, at)
	}
	if j.flying == b {
		j.flying = nil
	}
	b.err = err
	close(b.done)
}

func (j *journal) putBack(b *batch, at moment) {
	if j.lazy.empty() || b.since.Before(j.lazy.since) {
		j.lazy.since = b.since
	}
	for key, sold := range b.quotas {
		_, urgent := j.urgent.quotas[key]
		if _, lazy := j.lazy.quotas[key]; !lazy && !urgent {
			j.lazy.quotas[key] = sold
		}
	}
	for _, m := range b.marks {
		if m.knows(at.now) {
			j.lazy.marks = append(j.lazy.marks, m)
		}
	}
}

// close makes every later step fail that has something to keep.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = newBatch()
	j.closed.err = errClosed
	close(j.closed.done)
}

// waiting is how many counters are not on disk, and since when.
func (j *journal) waiting() (counters int, since time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, b := range []*batch{j.urgent, j.lazy} {
		counters += len(b.quotas)
		if !b.empty() && (since.IsZero() || b.since.Before(since)) {
			since = b.since
		}
	}
	return counters, since
}
