package limit

import (
	"fmt"
	"sync/atomic"
	"time"
	_ "time/tzdata" // containers often have no time zones
)

// Period is how long a quota lasts: it is a unit of the calendar, not a length.
type Period uint8

// The periods of quotas.
const (
	Hour Period = iota
	Day
	Week
	Month
)

// Calendar tells when the periods of a quota begin: at the full hours, days, weeks
// and months of a time zone. It is safe for concurrent use, and fast for times
// in one period.
//
// A day begins at midnight; when the clocks jump over midnight, at the jump; when
// midnight comes twice, the first time. An hour lasts an hour, but where clocks
// change by a part of one: there the change begins another.
type Calendar struct {
	period Period
	zone   *time.Location
	anchor int
	last   atomic.Pointer[Bounds]
}

// Bounds are four beginnings of periods around a time: of the period before, of
// its own, and of the next two. In microseconds since 1970.
type Bounds [4]int64

// Start is when the period itself begins.
func (b Bounds) Start() time.Time { return time.UnixMicro(b[1]) }

// End is when it ends and the next begins.
func (b Bounds) End() time.Time { return time.UnixMicro(b[2]) }

// NewCalendar makes a calendar. anchor is the day of the month, 1 to 31, on which
// months begin, or the last of a month that is shorter; or the day of the week on
// which weeks do, 1 to 7 from Monday. Hours and days ignore it. It panics with
// "BUG:" when a number is out of its range or zone is nil.
func NewCalendar(period Period, zone *time.Location, anchor int) *Calendar {
	if zone == nil || period > Month || (period == Week && (anchor < 1 || anchor > 7)) || (period == Month && (anchor < 1 || anchor > 31)) {
		panic(fmt.Sprintf("BUG: no calendar of period %d, zone %v, anchor %d", period, zone, anchor))
	}
	return &Calendar{period: period, zone: zone, anchor: anchor}
}

// Bounds are the beginnings of periods around t.
func (c *Calendar) Bounds(t time.Time) Bounds { return *c.around(t.UnixMicro()) }

// around is Bounds without a copy. The time of the last call is often in the
// same period.
func (c *Calendar) around(now int64) *Bounds {
	if b := c.last.Load(); b != nil && b[1] <= now && now < b[2] {
		return b
	}
	b := new(Bounds)
	if c.period == Hour {
		*b = c.hours(now)
	} else {
		*b = c.days(now)
	}
	c.last.Store(b)
	return b
}

// index finds the period of now, in a count where each begins no earlier than
// the one before; of several that begin together, the last.
func (c *Calendar) index(now int64) int {
	y, m, d := time.UnixMicro(now).In(c.zone).Date()
	i := 0
	switch c.period {
	case Day:
		i = civilDay(y, m, d)
	case Week:
		i = (civilDay(y, m, d) + 7) / 7 // about
	default:
		i = y*12 + int(m)
	}
	for c.start(i) > now {
		i--
	}
	for c.start(i+1) <= now {
		i++
	}
	return i
}

// days are the bounds of all periods that are made of days.
func (c *Calendar) days(now int64) (b Bounds) {
	i := c.index(now)
	b[1], b[2] = c.start(i), c.start(i+1)
	for before := i; b[0] == 0 || b[0] >= b[1]; {
		before--
		b[0] = c.start(before)
	}
	for after := i + 1; b[3] <= b[2]; {
		after++
		b[3] = c.start(after)
	}
	return b
}

// start is when period i begins.
func (c *Calendar) start(i int) int64 {
	switch c.period {
	case Day:
		return c.midnight(1970, 1, 1+i)
	case Week: // day 0 was a Thursday
		return c.midnight(1970, 1, 1+7*i-4+c.anchor)
	}
	m := i - 1 // from 0
	year, month := m/12, time.Month(m%12+1)
	last := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return c.midnight(year, month, min(c.anchor, last))
}

// midnight is the first moment of a day, in microseconds. time.Date does not say
// which of two midnights it means, nor what it does without one.
func (c *Calendar) midnight(year int, month time.Month, day int) int64 {
	utc := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	before, after := c.offset(utc.Add(-24*time.Hour)), c.offset(utc.Add(24*time.Hour))
	earlier, later := utc.Add(-max(before, after)), utc.Add(-min(before, after))
	switch {
	case c.offset(earlier) == max(before, after):
		return earlier.UnixMicro()
	case c.offset(later) == min(before, after):
		return later.UnixMicro()
	}
	jump, _ := later.In(c.zone).ZoneBounds()
	return jump.UnixMicro()
}

// offset is how far the zone's clocks are ahead of UTC at t.
func (c *Calendar) offset(t time.Time) time.Duration {
	_, seconds := t.In(c.zone).Zone()
	return time.Duration(seconds) * time.Second
}

// hours are the bounds of hours.
func (c *Calendar) hours(now int64) (b Bounds) {
	start, end := c.hour(time.UnixMicro(now))
	before, _ := c.hour(start.Add(-time.Microsecond))
	_, after := c.hour(end)
	return Bounds{before.UnixMicro(), start.UnixMicro(), end.UnixMicro(), after.UnixMicro()}
}

// hour is the hour of t. A change of the clocks by whole hours falls between two
// hours and needs no thought; any other cuts one in two.
func (c *Calendar) hour(t time.Time) (start, end time.Time) {
	offset := c.offset(t)
	start = t.Add(offset).Truncate(time.Hour).Add(-offset)
	end = start.Add(time.Hour)
	since, until := t.In(c.zone).ZoneBounds()
	if !since.IsZero() && since.After(start) && (c.offset(since.Add(-1))-offset)%time.Hour != 0 {
		start = since
	}
	if !until.IsZero() && until.Before(end) && (c.offset(until)-offset)%time.Hour != 0 {
		end = until
	}
	return start, end
}

// civilDay counts days since 1970-01-01.
func civilDay(y int, m time.Month, d int) int {
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}
