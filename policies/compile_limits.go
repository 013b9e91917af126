package policies

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// What holds when the file does not say.
const (
	defaultLease  = time.Minute
	defaultAnchor = 1
)

func compileLimits(specs map[Name]LimitSpec, inPlan bool) []Limit {
	var limits []Limit
	for _, name := range sortedKeys(specs) {
		limits = append(limits, compileLimit(string(name), specs[name], inPlan))
	}
	return limits
}

func compileLimit(name string, s LimitSpec, inPlan bool) Limit {
	l := Limit{
		Name:     name,
		Kind:     s.Kind(),
		Per:      s.Per,
		InPlan:   inPlan,
		Shadow:   s.Mode == LimitShadow,
		Requests: s.Count != nil && s.Count.Requests,
		Status:   429,
	}
	if s.Count != nil {
		l.Statuses = s.Count.Statuses
	}
	if s.Status != nil {
		l.Status = int(*s.Status)
	}
	switch l.Kind {
	case KindRate:
		l.compileRate(&s)
	case KindWindow:
		l.Window, l.Algorithm = *s.Window, orDefault(s.Algorithm, AlgorithmSliding)
	case KindQuota:
		l.compileQuota(&s)
	case KindConcurrency:
		l.Requests = true
		l.Concurrency, l.Lease = int64(*s.Concurrency), defaultLease
		if s.Lease != nil {
			l.Lease = time.Duration(*s.Lease)
		}
	case KindRetries:
		l.Requests = true
		l.setRetries(*s.Retries)
	}
	l.ID = l.id()
	return l
}

func (l *Limit) compileRate(s *LimitSpec) {
	l.Rate = *s.Rate
	if s.Burst != nil {
		l.Burst = int64(*s.Burst)
	}
	if s.Wait != nil {
		l.Wait = time.Duration(*s.Wait)
	}
	if s.Reserve != nil {
		l.Reserve = Shares{High: percent(s.Reserve.High), Normal: percent(s.Reserve.Normal)}
	}
	l.Leased = s.Sync == SyncLeased
}

func percent(p *Percent) int {
	if p == nil {
		return 0
	}
	return int(*p)
}

func (l *Limit) compileQuota(s *LimitSpec) {
	if s.Status == nil {
		l.Status = 402
	}
	l.Quota, l.Zone, l.AnchorDay = *s.Quota, time.UTC, defaultAnchor
	if s.Timezone != "" {
		l.Zone = s.Timezone.location()
	}
	if s.AnchorDay != nil {
		l.AnchorDay = *s.AnchorDay
	}
	if s.Overage != nil {
		l.Overage = int64(*s.Overage)
	}
	l.Soft = s.Accounting == AccountingSoft
	for _, share := range s.Notify {
		l.Notify = append(l.Notify, int(share))
	}
}

// location is the time zone. A Timezone holds only names that load.
func (z Timezone) location() *time.Location {
	zone, err := time.LoadLocation(string(z))
	if err != nil {
		panic("BUG: no time zone " + string(z))
	}
	return zone
}

// setRetries makes a budget: 60/m is a bucket of 60 that a minute fills.
func (l *Limit) setRetries(r Rate) {
	const unit = 1_000_000
	l.Rate, l.Burst = r, max(1, r.Micro/unit)
}

// Kind tells which kind of limit this is, empty when the file says none.
func (s *LimitSpec) Kind() LimitKind {
	switch {
	case s.Rate != nil:
		return KindRate
	case s.Window != nil:
		return KindWindow
	case s.Quota != nil:
		return KindQuota
	case s.Concurrency != nil:
		return KindConcurrency
	case s.Retries != nil:
		return KindRetries
	}
	return ""
}

// id is the part of a counter's key that the limit gives: its name, and a hash
// of what makes it another counter.
func (l *Limit) id() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|plan=%t|requests=%t%v", l.Kind, l.InPlan, l.Requests, l.Statuses)
	for _, d := range l.Per {
		fmt.Fprintf(&b, "|%s=%q", d.Kind, d.Name)
		if d.Capture != nil {
			fmt.Fprintf(&b, "~%q", d.Capture.Source)
		}
	}
	switch l.Kind {
	case KindWindow:
		fmt.Fprintf(&b, "|%s of %s", l.Algorithm, l.Window.Length)
	case KindQuota:
		fmt.Fprintf(&b, "|%s in %s from %d", l.Quota.Period, l.Zone, l.AnchorDay)
	}
	sum := sha256.Sum256([]byte(b.String()))
	return l.Name + "-" + hex.EncodeToString(sum[:4])
}

// tenantLimits are a plan's limits with a tenant's numbers and grants; the
// plan's own slice when there are none.
func tenantLimits(limits []Limit, t *TenantSpec) []Limit {
	if len(t.Overrides) == 0 && len(t.Grants) == 0 {
		return limits
	}
	limits = slices.Clone(limits)
	for i := range limits {
		name := Name(limits[i].Name)
		limits[i].override(t.Overrides[name])
		limits[i].Grants = grantsFor(name, t.Grants)
	}
	return limits
}

// override lays a tenant's numbers over the plan's.
func (l *Limit) override(o OverrideSpec) {
	if o.Rate != nil {
		l.Rate = *o.Rate
	}
	if o.Burst != nil {
		l.Burst = int64(*o.Burst)
	}
	if o.Wait != nil {
		l.Wait = time.Duration(*o.Wait)
	}
	if o.Window != nil {
		l.Window = *o.Window
	}
	if o.Quota != nil {
		l.Quota = *o.Quota
	}
	if o.Overage != nil {
		l.Overage = int64(*o.Overage)
	}
	if o.Concurrency != nil {
		l.Concurrency = int64(*o.Concurrency)
	}
	if o.Retries != nil {
		l.setRetries(*o.Retries)
	}
}

func grantsFor(limit Name, specs []GrantSpec) []Grant {
	var grants []Grant
	for _, g := range specs {
		if g.Limit == limit {
			grants = append(grants, Grant{Add: int64(*g.Add), From: g.From, Until: g.Until})
		}
	}
	slices.SortStableFunc(grants, func(a, b Grant) int { return a.From.Compare(b.From) })
	return grants
}

// Compare orders days of the calendar.
func (d Date) Compare(o Date) int {
	return cmp.Or(cmp.Compare(d.Year, o.Year), cmp.Compare(d.Month, o.Month), cmp.Compare(d.Day, o.Day))
}
