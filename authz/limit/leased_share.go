package limit

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// share is what an instance holds of one leased rate, for one reserve, and what it
// knows of it.
type share struct {
	tag, key []byte
	reserve  int64
	busy     chan struct{} // holds one while somebody asks
	queued   atomic.Bool   // waits to be asked for
	active   atomic.Bool   // set by use and cleared by the sweep

	mu     sync.Mutex // guards what follows
	refill Refill     // the numbers under which all this was taken
	burst  int64
	life   int64 // microseconds, of what is taken under these numbers
	gone   bool  // nothing more is taken in
	lots   [4]lot
	wanted int64 // units since it was asked for
	asked  int64 // when that was
	size   int64 // what was then thought to be wanted in one life
	told   State // what the store said last
	heard  int64 // when it was asked that
	pause  int64 // until when there is nothing to ask for
}

// lot is units that were taken together, and when they are void.
type lot struct{ left, until int64 }

func newShare(op *Op) *share {
	return &share{
		tag: bytes.Clone(op.Tag), key: bytes.Clone(op.Key), reserve: op.Reserve, busy: make(chan struct{}, 1),
		refill: op.Refill, burst: op.Burst, life: ShareLife(op).Microseconds(),
	}
}

func (s *share) acquire(ctx context.Context) error {
	if s.tryAcquire() {
		return nil
	}
	select {
	case s.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unavailable(ctx, ctx.Err())
	}
}

func (s *share) tryAcquire() bool {
	select {
	case s.busy <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *share) release() { <-s.busy }

// adopt brings what is held under op's numbers: what was taken under others is void.
// s.mu is held.
func (s *share) adopt(op *Op) {
	if s.refill == op.Refill && s.burst == op.Burst {
		return
	}
	s.refill, s.burst, s.life = op.Refill, op.Burst, ShareLife(op).Microseconds()
	s.lots, s.told = [4]lot{}, State{}
	s.wanted, s.asked, s.size, s.heard, s.pause = 0, 0, 0, 0, 0
}

// void ends a share: nothing that is on its way comes in.
func (s *share) void() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.lots = true, [4]lot{}
}

// left is what can be spent at now. s.mu is held.
func (s *share) left(now int64) (sum int64) {
	for i := range s.lots {
		if l := &s.lots[i]; now >= l.until {
			*l = lot{}
		} else {
			sum += l.left
		}
	}
	return sum
}

// holds is what can be spent at now.
func (s *share) holds(op *Op, now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refill != op.Refill || s.burst != op.Burst {
		return 0
	}
	return s.left(now)
}

// want counts what is asked for, had or not.
func (s *share) want(op *Op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopt(op)
	if op.Cost <= s.burst {
		s.wanted += op.Cost
	}
}

// spend takes op's cost from what is held, the oldest first. until is when it would
// have been void; low asks for more ahead of use.
func (s *share) spend(op *Op, state *State, now int64) (until int64, spent, low bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopt(op)
	left := s.left(now)
	if left < op.Cost {
		return 0, false, false
	}
	until = s.draw(op.Cost)
	left -= op.Cost
	*state = s.state(left, now)
	return until, true, left <= s.size/4 && now >= s.pause && s.size > 0
}

// draw takes units that are there, and tells when the first of them would have been
// void. s.mu is held.
func (s *share) draw(units int64) (until int64) {
	for units > 0 {
		oldest := -1
		for i := range s.lots {
			if s.lots[i].left > 0 && (oldest < 0 || s.lots[i].until < s.lots[oldest].until) {
				oldest = i
			}
		}
		l := &s.lots[oldest]
		if until == 0 {
			until = l.until
		}
		n := min(units, l.left)
		l.left -= n
		units -= n
	}
	return until
}

// add puts units to what is held. When there is no place for another lot they join
// one, and all are void when the first of them would have been. s.mu is held.
func (s *share) add(units, until int64) {
	if units <= 0 || s.gone {
		return
	}
	place := 0
	for i := range s.lots {
		switch l := &s.lots[i]; {
		case l.left > 0 && l.until == until:
			l.left += units
			return
		case l.left < s.lots[place].left:
			place = i
		}
	}
	l := &s.lots[place]
	if l.left > 0 {
		until = min(until, l.until)
	}
	*l = lot{l.left + units, until}
}

// giveBack returns what was taken for op and not used.
func (s *share) giveBack(op *Op, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refill == op.Refill && s.burst == op.Burst {
		s.add(op.Cost, until)
	}
}

// refuses tells what is known without asking: that there is not enough.
func (s *share) refuses(op *Op, state *State, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopt(op)
	if now >= s.pause || op.Cost <= s.told.Remaining {
		return false
	}
	*state = s.state(0, now)
	state.Fits, state.Remaining = false, max(state.Remaining, s.left(now))
	state.Wait = s.wait(op, now)
	return true
}

// wait is the time until op fits, by what the store said last, and is asked again.
// s.mu is held.
func (s *share) wait(op *Op, now int64) time.Duration {
	if op.Cost > SharedBurst(op)-op.Reserve {
		return Never
	}
	fill, rest := mulDiv((op.Cost-s.told.Remaining)*Unit, s.refill.Period, s.refill.Micro)
	if rest {
		fill++
	}
	return micros(max(s.pause-now, fill-(now-s.heard)))
}

// state is what is told of the rate while the store is not asked: what it said last,
// and what is held. s.mu is held.
func (s *share) state(left, now int64) State {
	return State{
		Fits:      true,
		Remaining: s.told.Remaining + left,
		Reset:     max(0, s.told.Reset-micros(now-s.heard)),
	}
}

// wants is how many units to ask for beside the cost at hand: three quarters of what
// was wanted lately in one life, and no more than may be held. The store is about to
// be asked.
func (s *share) wants(op *Op, now int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.adopt(op)
	demand, _ := mulDiv(s.wanted, s.life, max(1, now-s.asked))
	if s.asked == 0 {
		demand = 0
	}
	s.size = min(min(demand, MaxBurst)*3/4, 4*max(s.size, 1), LargestShare(op))
	s.wanted, s.asked = 0, now
	if s.life == 0 {
		return 0
	}
	return max(0, min(s.size, LargestShare(op)-s.left(now)))
}

// hear takes what the store said when it was asked for op, and beside its cost for
// wanted units, at asked. charged tells that it took what it had.
func (s *share) hear(op *Op, answer *State, wanted, extra, asked int64, charged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refill != op.Refill || s.burst != op.Burst {
		return // a reload came between: what was taken is void
	}
	s.told, s.heard = *answer, asked
	s.told.Share = 0
	if charged {
		s.add(extra, asked+s.life)
	}
	if !answer.Fits || charged {
		s.pause = 0
	}
	if (!answer.Fits && answer.Wait != Never) || (charged && answer.Share < wanted) {
		s.pause = asked + s.life/2
	}
}
