package limit

import (
	"context"
	"slices"
	"time"
)

// hurry has a share asked for ahead of use.
func (l *Leased) hurry(s *share) {
	if !s.queued.CompareAndSwap(false, true) {
		return
	}
	select {
	case l.kick <- s:
	default:
		s.queued.Store(false)
	}
}

// ahead asks for the shares that will soon be used up.
func (l *Leased) ahead(ctx context.Context) {
	for {
		select {
		case s := <-l.kick:
			// Who asks already asks for all; and a failure is the decision's that then
			// finds nothing to spend.
			if s.tryAcquire() {
				_ = l.refill(ctx, s)
				s.release()
			}
			s.queued.Store(false)
		case <-ctx.Done():
			return
		}
	}
}

// refill asks for a share. Whoever asks has acquired it.
func (l *Leased) refill(ctx context.Context, s *share) error {
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	op, asked := s.op(), l.now()
	wanted := s.wants(&op, asked)
	if wanted == 0 {
		return nil
	}
	ask := op.shared()
	ask.Share = wanted - 1
	var states [1]State
	refused, err := l.inner.Take(ctx, []Op{ask}, states[:])
	if err != nil {
		return err
	}
	s.hear(&op, &states[0], ask.Share, states[0].Share+ask.Cost, asked, refused < 0)
	return nil
}

// op asks for one unit under the numbers of the share.
func (s *share) op() Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Op{Tag: s.tag, Key: s.key, Kind: Rate, Cost: 1, Refill: s.refill, Burst: s.burst, Reserve: s.reserve, Leased: true}
}

// sweeps drops shares that nobody uses until the store is closed.
func (l *Leased) sweeps(ctx context.Context) {
	ticker := time.NewTicker(leasedSweep)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.sweep()
		case <-ctx.Done():
			return
		}
	}
}

// sweep drops shares that were not used since the last one. By then, what they hold
// is void.
func (l *Leased) sweep() {
	for i := range l.shards {
		shard := &l.shards[i]
		shard.mu.Lock()
		for key, shares := range shard.keys {
			kept := slices.Clone(shares)
			kept = slices.DeleteFunc(kept, func(s *share) bool { return !s.active.Swap(false) })
			l.keys.Add(int64(len(kept) - len(shares)))
			if len(kept) == 0 {
				delete(shard.keys, key)
			} else if len(kept) < len(shares) {
				shard.keys[key] = kept
			}
		}
		shard.mu.Unlock()
	}
}
