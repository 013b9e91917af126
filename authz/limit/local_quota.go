package limit

import "time"

// localQuota is what is known of a quota, and what was counted of it here.
type localQuota struct {
	key, tag []byte
	calendar *Calendar
	known    quota
	own      int64 // units since known
	sending  int64 // of them on their way, under id
	id       []byte
	tried    time.Time
}

// Learn notes the totals of quotas, as the store has just told them.
func (l *Local) Learn(ops []Op, states []State) {
	for i := range ops {
		if op := &ops[i]; op.Kind == Quota {
			l.learn(op, &states[i])
		}
	}
}

func (l *Local) learn(op *Op, s *State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.quotas[string(op.Key)]
	if q == nil {
		if q = l.newQuota(op); q == nil {
			return
		}
	}
	q.calendar = op.Calendar
	if s.Stamp < q.known.start || s.Stamp == q.known.start && s.Used < q.known.used {
		return // answers overtake each other
	}
	if s.Stamp != q.known.start {
		q.own, q.sending, q.id = 0, 0, nil
		delete(l.owing, q)
	}
	end := l.o.Now().UnixMicro() + s.Reset.Microseconds()
	q.known = quota{start: s.Stamp, end: end, used: s.Used, over: s.Over}
}

// newQuota makes room for another quota; nil when there is none. l.mu is held.
func (l *Local) newQuota(op *Op) *localQuota {
	if len(l.quotas) >= max(l.o.MaxKeys/10, 1) {
		l.sweep()
		if len(l.quotas) >= max(l.o.MaxKeys/10, 1) {
			return nil
		}
	}
	q := &localQuota{key: append([]byte(nil), op.Key...), calendar: op.Calendar}
	q.tag = q.key
	if len(op.Tag) > 0 {
		q.tag = append([]byte(nil), op.Tag...)
	}
	l.quotas[string(q.key)] = q
	return q
}

// sweep forgets quotas whose period is over. l.mu is held.
func (l *Local) sweep() {
	now := l.o.Now().UnixMicro()
	for key, q := range l.quotas {
		if q.known.end <= now && !l.owing[q] {
			delete(l.quotas, key)
		}
	}
}

// quota is the entry of a quota, in the period of now. l.mu is held. One that finds
// no room counts for this decision alone.
func (l *Local) quota(op *Op, now int64) *localQuota {
	q := l.quotas[string(op.Key)]
	if q == nil {
		if q = l.newQuota(op); q == nil {
			q = &localQuota{key: op.Key, tag: op.Tag}
		}
	}
	q.calendar = op.Calendar
	if rolled := q.known.roll(op.Calendar.around(now), now); rolled.start != q.known.start {
		q.known, q.own, q.sending, q.id = rolled, 0, 0, nil
		delete(l.owing, q)
	}
	return q
}

// state is what is told of the quota before a charge.
func (q *localQuota) state(op *Op, now, part int64) State {
	sum := q.known
	if q.own > 0 {
		spent := *op
		spent.Cost = q.own
		sum.charge(&spent)
	}
	if op.Max == Unlimited {
		return sum.state(op, now, true)
	}
	room := max(0, op.max()-q.known.inside()) + max(0, op.overage()-q.known.over)
	share := (room + part - 1) / part
	s := sum.state(op, now, q.own+op.Cost <= share)
	s.Remaining = min(s.Remaining, max(0, share-q.own))
	return s
}
