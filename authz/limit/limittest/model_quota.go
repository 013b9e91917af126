package limittest

import (
	"time"

	"sluice/authz/limit"
)

// modelQuota is a quota: units inside it, and units of overage.
type modelQuota struct {
	start, end   time.Time
	inside, over int64
}

func (q modelQuota) roll(op limit.Op, now time.Time) modelQuota {
	b := op.Calendar.Bounds(now)
	if !q.end.IsZero() && !q.start.Before(b.Start()) {
		return q
	}
	return modelQuota{start: b.Start(), end: b.End()}
}

// split says how many of some units the quota has room for, and how many more
// the overage has.
func (q modelQuota) split(op limit.Op, units int64) (inside, over int64) {
	if op.Max == limit.Unlimited {
		return units, 0
	}
	inside = min(units, max(0, min(op.Max, limit.MaxCount)-q.inside))
	return inside, min(units-inside, max(0, op.Overage-q.over))
}

func (q modelQuota) charged(op limit.Op) modelQuota {
	inside, over := q.split(op, op.Cost)
	q.inside += inside
	q.over += over
	return q
}

func (q modelQuota) settled(op limit.Op, delta int64) modelQuota {
	if op.Stamp != q.start.UnixMicro() {
		return q
	}
	if delta > 0 {
		_, over := q.split(op, delta)
		q.over += over
		q.inside += delta - over
		return q
	}
	give := func(from *int64, most int64) {
		back := min(-delta, max(0, most))
		*from -= back
		delta += back
	}
	if op.Max != limit.Unlimited {
		give(&q.inside, q.inside-op.Max) // past the end
	}
	give(&q.over, q.over)
	give(&q.inside, q.inside)
	return q
}

func (q modelQuota) state(op limit.Op, now time.Time) limit.State {
	inside, over := q.split(op, op.Cost)
	s := limit.State{
		Fits:      inside+over == op.Cost,
		Used:      q.inside + q.over,
		Over:      q.over,
		Remaining: max(0, op.Max-q.inside),
		Reset:     q.end.Sub(now),
		Stamp:     q.start.UnixMicro(),
	}
	if op.Max == limit.Unlimited {
		s.Remaining = limit.Unlimited
	}
	if !s.Fits {
		s.Wait = s.Reset
		if op.Cost > op.Max+op.Overage {
			s.Wait = limit.Never
		}
	}
	return s
}
