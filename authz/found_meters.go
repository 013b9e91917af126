package authz

import (
	"sync/atomic"
	"time"

	"sluice/authz/directory"
	"sluice/authz/memo"
)

// foundMeter is the meter of a tenant of the directory. It belongs to no policy, and
// lasts until another tenant needs its place.
type foundMeter struct {
	tenant atomic.Pointer[directory.Tenant] // as he was when he last asked
	meter  meter
}

// foundFor is how long a meter keeps its place against those of others.
const foundFor = time.Hour

// meterOf is the meter of a tenant of the directory. It allocates when he has none.
func (b *bound) meterOf(t *directory.Tenant, now time.Time) *meter {
	if e := b.found.Find(&t.Hash); e != nil {
		if e.Value.tenant.Load() != t {
			e.Value.tenant.Store(t)
		}
		return &e.Value.meter
	}
	f := &foundMeter{}
	f.tenant.Store(t)
	b.found.Add(&memo.Entry[*foundMeter]{Key: t.Hash, Until: now.Add(foundFor), Value: f}, now)
	return &f.meter
}

// meet gives tenants of the directory the accounts in their names that nobody has, and
// frees those of tenants who have lost their meters.
func (a *accounts) meet() {
	if a.found == nil {
		return
	}
	for _, own := range a.named {
		if own.found == nil {
			continue
		}
		hash := own.found.tenant.Load().Hash
		if e := a.found.Find(&hash); e == nil || e.Value != own.found {
			own.found, own.meter = nil, nil
		}
	}
	for e := range a.found.All() {
		f := e.Value
		if own := a.named[f.tenant.Load().ID]; own != nil && own.meter == nil {
			own.found, own.meter = f, &f.meter
			f.meter.account.Store(own)
		}
	}
}
