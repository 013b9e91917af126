package limittest

import (
	"time"

	"sluice/authz/limit"
)

// renumber is a reload that changes one limit's numbers, or changes them back.
func (p *Player) renumber(op *limit.Op) {
	switch op.Kind {
	case limit.Rate, limit.Retries:
		p.renumberBucket(op)
		return
	case limit.Quota:
		op.Overage = []int64{0, 0, 1, 10, 1000}[p.draw(5)]
	}
	most := []int64{0, 1, 2, 5, 5, 10, 100, 1000, limit.MaxLog, 1_000_000, limit.MaxCount, limit.Unlimited}
	switch op.Kind {
	case limit.LogWindow:
		most = most[:9]
	case limit.Concurrency:
		most = most[:5]
	case limit.FixedWindow, limit.SlidingWindow:
		most = most[:11]
	}
	op.Max = most[p.draw(len(most))]
	lengths := []time.Duration{time.Millisecond, 7 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, time.Hour, 24 * time.Hour, 999_983 * time.Microsecond}
	if op.Length == 0 || p.draw(3) == 0 {
		op.Length = lengths[p.draw(len(lengths))]
	}
}

// calendars are shared by all histories: they remember nothing but what is true.
var calendars = []*limit.Calendar{
	limit.NewCalendar(limit.Hour, time.UTC, 1),
	limit.NewCalendar(limit.Day, time.FixedZone("", 5*3600+1800), 1),
	limit.NewCalendar(limit.Week, time.UTC, 3),
	limit.NewCalendar(limit.Month, time.FixedZone("", -9*3600), 31),
}

func (p *Player) renumberBucket(op *limit.Op) {
	rates := []limit.Refill{
		limit.NewRefill(5*limit.Unit, time.Second),
		limit.NewRefill(100*limit.Unit, time.Second),
		limit.NewRefill(7*limit.Unit, 3*time.Second),
		limit.NewRefill(6*limit.Unit, time.Hour),
		limit.NewRefill(10_000_007*limit.Unit, 30*24*time.Hour),
		limit.NewRefill(999_999_937*limit.Unit+1, 31*24*time.Hour-time.Microsecond),
		limit.NewRefill(1, time.Second),
		limit.NewRefill(1, limit.MaxPeriod),
		limit.NewRefill(999_999_999_999_989, limit.MaxPeriod),
		limit.NewRefill(limit.MaxBurst*limit.Unit, time.Microsecond),
	}
	bursts := []int64{0, 1, 1, 3, 3, 10, 10, 10, 100, 1_000_000, limit.MaxBurst}
	op.Refill = rates[p.draw(len(rates))]
	op.Burst = bursts[p.draw(len(bursts))]
	op.Reserve, op.MaxWait, op.Share = 0, 0, 0
	if p.draw(4) == 0 {
		op.Reserve = op.Burst / int64(1+p.draw(6))
	}
	if op.Kind == limit.Rate && p.draw(2) == 0 {
		op.MaxWait = time.Duration(p.draw(2_000_001)) * time.Microsecond
		if p.draw(2) == 0 { // where it makes a difference
			op.Refill, op.Burst, op.Reserve = rates[p.draw(3)], 1+int64(p.draw(3)), 0
		}
	} else if op.Kind == limit.Rate && p.draw(2) == 0 {
		op.Share = min(1+int64(p.draw(20)), op.Burst)
	}
}
