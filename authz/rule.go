package authz

import (
	"fmt"
	"math/big"
	"strconv"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

// rule is a limit made ready.
type rule struct {
	limit *policies.Limit
	id    []byte // LIMIT in keys
	label uint32 // its name in metrics
	owned bool   // counters belong to tenants, or to addresses without one
	dims  []dim
	// op is what the store is asked, but for what the request says.
	op      limit.Op
	named   bool     // op wants the request's ID
	reserve reserves // by priority
	grants  []grant  // of a quota, sorted by their beginning
	reason  Reason   // of a refusal
	name    string   // as a structured-field string
	item    string   // of RateLimit-Policy: name, quota and window; without both for a quota
}

// reserves are the units of a bucket that a request of low and of normal
// priority leaves to those above it. High takes all.
type reserves struct{ low, normal int64 }

func (r *reserves) of(p policies.Priority) int64 {
	switch p {
	case policies.PriorityHigh:
		return 0
	case policies.PriorityLow:
		return r.low
	}
	return r.normal
}

// grant adds units to a quota from one moment to another.
type grant struct {
	from, until time.Time
	add         int64
}

// newRule makes a limit ready.
func newRule(l *policies.Limit, sources []source) (rule, error) {
	r := rule{limit: l, id: []byte(l.ID), owned: l.InPlan, name: quoted(l.Name)}
	if !r.bindKind() {
		return rule{}, fmt.Errorf("cannot enforce limit %q: kind %q is not known to the service", l.Name, l.Kind)
	}
	for _, d := range l.Per {
		part, known := newDim(d, sources)
		if !known {
			return rule{}, fmt.Errorf("cannot enforce limit %q: dimension %q is not known to the service", l.Name, d.Kind)
		}
		switch d.Kind {
		case policies.DimTenant:
			r.owned = true // TAG says it
		case policies.DimGlobal:
		case policies.DimKey, policies.DimUser, policies.DimScope:
			r.owned = true
			r.dims = append(r.dims, part)
		default:
			r.dims = append(r.dims, part)
		}
	}
	r.item = r.policyItem()
	return r, nil
}

func (r *rule) bindKind() bool {
	l := r.limit
	r.op = limit.Op{Shadow: l.Shadow}
	switch l.Kind {
	case policies.KindRate:
		r.reason = ReasonRate
		r.bindBucket(limit.Rate)
		r.op.MaxWait, r.op.Leased = l.Wait, l.Leased
	case policies.KindRetries:
		r.reason = ReasonRetries
		r.bindBucket(limit.Retries)
	case policies.KindWindow:
		r.reason = ReasonWindow
		r.op.Kind, r.op.Max, r.op.Length = windowKind(l.Algorithm), l.Window.Limit, l.Window.Length
	case policies.KindQuota:
		r.reason = ReasonQuota
		r.bindQuota()
	case policies.KindConcurrency:
		r.reason = ReasonConcurrency
		r.op.Kind, r.op.Max, r.op.Length = limit.Concurrency, l.Concurrency, l.Lease
		r.named = true
	default:
		return false
	}
	return true
}

func (r *rule) bindBucket(kind limit.Kind) {
	l := r.limit
	r.op.Kind, r.op.Burst = kind, l.Burst
	r.op.Refill = limit.NewRefill(l.Rate.Micro, l.Rate.Per)
	r.reserve = reserves{
		low:    percentOf(l.Burst, l.Reserve.High+l.Reserve.Normal),
		normal: percentOf(l.Burst, l.Reserve.High),
	}
}

// percentOf rounds up: what is kept for others is never less than promised.
func percentOf(n int64, percent int) int64 { return (n*int64(percent) + 99) / 100 }

func windowKind(a policies.Algorithm) limit.Kind {
	switch a {
	case policies.AlgorithmFixed:
		return limit.FixedWindow
	case policies.AlgorithmLog:
		return limit.LogWindow
	}
	return limit.SlidingWindow
}

func (r *rule) bindQuota() {
	l := r.limit
	r.op.Kind, r.op.Max, r.op.Overage = limit.Quota, l.Quota.Limit, l.Overage
	if l.Quota.Unlimited {
		r.op.Max = limit.Unlimited
	}
	r.op.Calendar = limit.NewCalendar(period(l.Quota.Period), l.Zone, l.AnchorDay)
	r.named, r.op.Soft = true, l.Soft
	for _, g := range l.Grants {
		r.grants = append(r.grants, grant{from: midnight(g.From, 0, l.Zone), until: midnight(g.Until, 1, l.Zone), add: g.Add})
	}
}

// midnight is when a day begins, so many days later, in a time zone.
func midnight(d policies.Date, later int, zone *time.Location) time.Time {
	return time.Date(d.Year, d.Month, d.Day+later, 0, 0, 0, 0, zone)
}

func period(p policies.Period) limit.Period {
	switch p {
	case policies.PeriodHour:
		return limit.Hour
	case policies.PeriodDay:
		return limit.Day
	case policies.PeriodWeek:
		return limit.Week
	}
	return limit.Month
}

// granted is the quota with the grants that touch now.
func (r *rule) granted(now time.Time) int64 {
	sum := r.op.Max
	for i := range r.grants {
		if g := &r.grants[i]; !now.Before(g.from) && now.Before(g.until) {
			sum = limit.SumCounts(sum, g.add)
		}
	}
	return sum
}

// policyItem is the limit in RateLimit-Policy: "speed";q=200;w=4. The window is
// how long an empty bucket takes to fill, or the window's length, in seconds,
// rounded up; a bucket that holds nothing, and leases, have none. A quota's
// numbers are those of the moment: see appendItem.
func (r *rule) policyItem() string {
	switch {
	case r.op.Kind == limit.Quota:
		return r.name
	case r.op.Limit() == 0 || r.op.Kind == limit.Concurrency:
		return r.name + ";q=" + strconv.FormatInt(r.op.Limit(), 10)
	}
	w := wholeSeconds(r.op.Length)
	if r.op.Length == 0 {
		w = fillSeconds(r.limit)
	}
	return r.name + ";q=" + strconv.FormatInt(r.op.Limit(), 10) + ";w=" + strconv.FormatInt(w, 10)
}

// appendItem appends the limit to RateLimit-Policy. max is the op's limit at the
// time now, grants included.
func (r *rule) appendItem(dst []byte, max int64, now time.Time) []byte {
	dst = append(dst, r.item...)
	if r.op.Kind != limit.Quota {
		return dst
	}
	bounds := r.op.Calendar.Bounds(now)
	dst = strconv.AppendInt(append(dst, ";q="...), max, 10)
	return strconv.AppendInt(append(dst, ";w="...), wholeSeconds(bounds.End().Sub(bounds.Start())), 10)
}

// fillSeconds is burst / rate, rounded up, at most what a structured field holds.
func fillSeconds(l *policies.Limit) int64 {
	const most = 999_999_999_999_999
	micro := new(big.Int).Mul(big.NewInt(l.Burst), big.NewInt(limit.Unit))
	nanos := micro.Mul(micro, big.NewInt(int64(l.Rate.Per)))
	perSecond := new(big.Int).Mul(big.NewInt(l.Rate.Micro), big.NewInt(int64(time.Second)))
	seconds, rest := nanos.QuoRem(nanos, perSecond, new(big.Int))
	if rest.Sign() > 0 {
		seconds.Add(seconds, big.NewInt(1))
	}
	if !seconds.IsInt64() || seconds.Int64() > most {
		return most
	}
	return seconds.Int64()
}

// quoted is a name as a structured-field string.
func quoted(name string) string {
	out := []byte{'"'}
	for i := range len(name) {
		if name[i] == '"' || name[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, name[i])
	}
	return string(append(out, '"'))
}
