package policies

import (
	"iter"
	"time"
)

// limitSpecs are the limits of the service as the file has them, with their
// paths: those for every request, the plans', the routes'.
func limitSpecs(p *Policy) iter.Seq2[string, LimitSpec] {
	return func(yield func(string, LimitSpec) bool) {
		each := func(path string, limits map[Name]LimitSpec) bool {
			for _, name := range sortedKeys(limits) {
				if !yield(field(path, string(name)), limits[name]) {
					return false
				}
			}
			return true
		}
		if !each("limits", p.Limits) {
			return
		}
		for _, plan := range sortedKeys(p.Plans) {
			if !each(field(field("plans", string(plan)), "limits"), p.Plans[plan].Limits) {
				return
			}
		}
		for i := range p.Routes {
			if !each(field(elem("routes", i), "limits"), p.Routes[i].Limits) {
				return
			}
		}
	}
}

// checkLimits checks the limits that stand for themselves; checkPlanLimits those
// that inherit.
func checkLimits(p *Policy, f *findings) {
	for _, name := range sortedKeys(p.Limits) {
		l := p.Limits[name]
		f.limit(field("limits", string(name)), &l, &l)
	}
	for i := range p.Routes {
		for _, name := range sortedKeys(p.Routes[i].Limits) {
			l := p.Routes[i].Limits[name]
			f.limit(field(field(elem("routes", i), "limits"), string(name)), &l, &l)
		}
	}
}

// limit checks one limit. All is everything that holds for it, own what the
// file says at this place, which is less where a plan extends another.
func (f *findings) limit(path string, all, own *LimitSpec) {
	f.one(path, all.kinds()...)
	f.need(path, key{"per", len(all.Per) > 0})
	f.per(field(path, "per"), own.Per, false)
	if s := own.Status; s != nil && *s != 402 && *s != 403 && *s != 429 {
		f.errorf(field(path, "status"), ruleStatus, "%d is no answer to too many requests; want 429, 402 for what was bought, or 403", *s)
	}
	kind := all.Kind()
	f.foreignKeys(path, kind, own)
	switch kind {
	case KindRate:
		f.bucket(path, all, own)
	case KindWindow:
		if all.Algorithm == AlgorithmLog && all.Window.Limit > maxLog && (own.Window != nil || own.Algorithm != "") {
			f.errorf(field(path, "window"), ruleLog, "a log of %d entries for each counter is too long; want at most %d, or another algorithm", all.Window.Limit, maxLog)
		}
	case KindQuota:
		f.quota(path, all, own)
	case KindConcurrency:
		if l := own.Lease; l != nil && *l < Duration(time.Second) {
			f.errorf(field(path, "lease"), ruleLease, "%s is over before most requests are; want 1s or more, longer than the longest request", *l)
		}
	}
	if c := own.Count; c != nil && (kind == KindConcurrency || kind == KindRetries) && (!c.Requests || c.Statuses != nil) {
		f.errorf(field(path, "count"), ruleCountKind, "a limit of %s counts requests and nothing else; want count left out", kind)
	}
}

// maxLog is how many requests a window with algorithm log remembers.
const maxLog = 10_000

func (s *LimitSpec) kinds() []key {
	return []key{{"rate", s.Rate != nil}, {"window", s.Window != nil}, {"quota", s.Quota != nil},
		{"concurrency", s.Concurrency != nil}, {"retries", s.Retries != nil}}
}

// foreignKeys refuses keys of another kind.
func (f *findings) foreignKeys(path string, kind LimitKind, own *LimitSpec) {
	if kind == "" {
		return
	}
	for _, group := range []struct {
		kind LimitKind
		keys func(*LimitSpec) []key
	}{
		{KindRate, func(s *LimitSpec) []key {
			return []key{{"burst", s.Burst != nil}, {"wait", s.Wait != nil}, {"sync", s.Sync != ""}, {"reserve", s.Reserve != nil}}
		}},
		{KindWindow, func(s *LimitSpec) []key { return []key{{"algorithm", s.Algorithm != ""}} }},
		{KindQuota, func(s *LimitSpec) []key {
			return []key{{"timezone", s.Timezone != ""}, {"anchor_day", s.AnchorDay != nil}, {"accounting", s.Accounting != ""},
				{"overage", s.Overage != nil}, {"notify", s.Notify != nil}}
		}},
		{KindConcurrency, func(s *LimitSpec) []key { return []key{{"lease", s.Lease != nil}} }},
	} {
		if group.kind != kind {
			f.only(path, string(group.kind), group.keys(own)...)
		}
	}
}

// bucket checks a rate.
func (f *findings) bucket(path string, all, own *LimitSpec) {
	switch {
	case all.Burst == nil:
		f.errorf(path, ruleRequired, "burst is missing; want the units that may come at once")
	case own.Burst != nil && *own.Burst < 1:
		f.errorf(field(path, "burst"), ruleBurst, "a bucket of %d holds nothing, so nothing would ever pass; want 1 or more, or an access rule with deny", *own.Burst)
	}
	f.largestBurst(path, own.Burst)
	if own.Wait != nil || own.Sync != "" || own.Mode != "" {
		f.wait(path, all.Wait, all)
	}
	if own.Reserve != nil {
		f.reserve(field(path, "reserve"), own.Reserve)
	}
}

// maxBurst is the largest bucket that every store counts exactly, in units.
const maxBurst = 1_000_000_000

func (f *findings) largestBurst(path string, burst *Count) {
	if burst != nil && *burst > maxBurst {
		f.errorf(field(path, "burst"), ruleBurst, "%d is more than a bucket can count exactly; want at most %d", *burst, int64(maxBurst))
	}
}

// wait checks how long a limit may hold a request.
func (f *findings) wait(path string, wait *Duration, l *LimitSpec) {
	at := field(path, "wait")
	switch {
	case wait == nil:
	case time.Duration(*wait) > MaxWait:
		f.errorf(at, ruleWait, "%s is too long to hold a request; want at most %s", *wait, Duration(MaxWait))
	case l.Sync == SyncLeased:
		f.errorf(at, ruleWait, "a leased limit is spent ahead in shares, so none can wait for it; want wait or sync: leased, not both")
	case l.Mode == LimitShadow:
		f.errorf(at, ruleWait, "a limit in shadow holds nobody; want wait left out until it is enforced")
	}
}

// reserve checks the shares that are kept for higher priorities.
func (f *findings) reserve(path string, r *Reserve) {
	if r.High == nil && r.Normal == nil {
		f.errorf(path, ruleRequired, "nothing is reserved; want high, normal or both")
	}
	sum := Percent(0)
	for _, share := range []struct {
		name  string
		value *Percent
	}{{"high", r.High}, {"normal", r.Normal}} {
		if share.value == nil {
			continue
		}
		sum += *share.value
		if *share.value < 1 || *share.value > 99 {
			f.errorf(field(path, share.name), ruleReserve, "%s of the bucket cannot be kept; want 1%% to 99%%", *share.value)
			return
		}
	}
	if sum > 99 {
		f.errorf(path, ruleReserve, "%s of the bucket are kept, which leaves nothing for low priority; want less than 100%% together", sum)
	}
}
