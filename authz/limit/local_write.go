package limit

import (
	"context"
	"fmt"
	"time"
)

// run writes what is owed until Close.
func (l *Local) run(ctx context.Context) {
	ticker := time.NewTicker(l.o.WriteEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = l.Write(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Write offers the store what was counted here. The first failure ends it, and is
// returned: the rest is kept.
func (l *Local) Write(ctx context.Context) error {
	for {
		op, q := l.next()
		if q == nil {
			return nil
		}
		var state [1]State
		call, cancel := context.WithTimeout(ctx, time.Second)
		began := time.Now()
		_, err := l.store.Take(call, []Op{op}, state[:])
		cancel()
		l.wrote(q, &op, &state[0], began, err)
		if err != nil {
			return err
		}
	}
}

// next is a quota that owes, and the op that pays: it asks for no room.
func (l *Local) next() (Op, *localQuota) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now().UnixMicro()
	for q := range l.owing {
		switch {
		case q.known.end <= now, q.own <= 0:
			q.own, q.sending, q.id = 0, 0, nil
			delete(l.owing, q)
			continue
		case q.sending > 0 && !q.tried.IsZero() && time.Since(q.tried) > giveUpAfter:
			q.paid()
			continue
		case q.sending == 0:
			q.sending = min(q.own, MaxBurst)
			q.id = fmt.Appendf(nil, "local/%s%016x", l.prefix[:], l.serial.Add(1))
			q.tried = time.Time{}
		}
		return Op{Tag: q.tag, Key: q.key, ID: q.id, Kind: Quota, Cost: q.sending, Max: Unlimited, Calendar: q.calendar}, q
	}
	return Op{}, nil
}

// paid takes what was sent for written.
func (q *localQuota) paid() {
	q.own -= q.sending
	q.known.used += q.sending
	q.sending, q.id = 0, nil
}

// wrote hears how a write went.
func (l *Local) wrote(q *localQuota, op *Op, s *State, began time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil:
		if q.tried.IsZero() && !untouched(err) {
			q.tried = began
		}
	case string(q.id) == string(op.ID):
		q.paid()
		if s.Stamp == q.known.start {
			q.known.used = max(q.known.used, s.Used)
		}
		if q.own <= 0 {
			delete(l.owing, q)
		}
	}
}

// Owed is how many units the store has not got yet.
func (l *Local) Owed() (units int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q := range l.owing {
		units += q.own
	}
	return units
}
