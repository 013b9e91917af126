package limit

// quota is what a store keeps of a quota: what was used in one period, so that new
// numbers hold at once. A quota that is not there has used nothing.
//
// quota.lua says the same in Lua.
type quota struct {
	start, end int64 // of the period, microseconds since 1970
	used       int64 // units, 0 to MaxCount, those of over included
	over       int64 // units that were counted as overage, and stay so
}

// roll brings the quota to the period of now. Time never goes back: a period that
// has begun is not left for an earlier one.
func (q quota) roll(b *Bounds, now int64) quota {
	start, end := b[1], b[2]
	switch {
	case now < b[1]:
		start, end = b[0], b[1]
	case now >= b[2]:
		start, end = b[2], b[3]
	}
	if q.end != 0 && q.start >= start {
		return q
	}
	return quota{start: start, end: end}
}

// inside is what was used of the quota itself.
func (q *quota) inside() int64 { return q.used - q.over }

// extra is how much of units would be overage.
func (q *quota) extra(op *Op, units int64) int64 {
	if op.Max == Unlimited {
		return 0
	}
	return units - min(units, max(0, op.max()-q.inside()))
}

func (q *quota) fits(op *Op) bool {
	extra := q.extra(op, op.Cost)
	return extra == 0 || (extra <= op.overage() && q.over <= op.overage()-extra)
}

// charge counts op's cost, which fits, and which may be partly overage.
func (q *quota) charge(op *Op) {
	q.over += q.extra(op, op.Cost)
	q.used = min(q.used+min(op.Cost, MaxCount), MaxCount)
	q.over = min(q.over, q.used)
}

// settle corrects the period that began at stamp, and tells whether it is still
// there. What is owed fills the quota, then the overage, and then goes past the
// end of the quota: who has bought no overage must not be billed for any. What is
// given back is taken from there in reverse, as if it had never been counted.
func (q *quota) settle(op *Op, stamp, delta int64) bool {
	if stamp != q.start {
		return false
	}
	if delta >= 0 {
		q.over += min(q.extra(op, delta), max(0, op.overage()-q.over))
		q.used = min(q.used+delta, MaxCount)
		q.over = min(q.over, q.used)
		return true
	}
	back := min(-delta, q.used)
	past := int64(0)
	if op.Max != Unlimited {
		past = min(back, max(0, q.inside()-op.max()))
	}
	q.over -= min(back-past, q.over)
	q.used -= back
	return true
}

// state is what is told of the quota after the step.
func (q *quota) state(op *Op, now int64, fits bool) State {
	s := State{
		Fits:      fits,
		Remaining: max(0, op.max()-q.inside()),
		Used:      q.used,
		Over:      q.over,
		Reset:     micros(q.end - now),
		Stamp:     q.start,
	}
	if op.Max == Unlimited {
		s.Remaining = Unlimited
	}
	switch {
	case fits:
	case op.Cost > SumCounts(op.Max, op.Overage):
		s.Wait = Never
	default:
		s.Wait = s.Reset
	}
	return s
}

func (q *quota) words() words { return words{q.start, q.end, q.used, q.over} }

func quotaOf(w *words) quota {
	return quota{start: w[0], end: w[1], used: w[2], over: w[3]}
}
