package authz

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice/authz/memo"
)

const (
	// maxAccounts is how many tenants have labels of their own in metrics.
	maxAccounts = 100
	// accountSlots, leftSlots and sharedSlots are the sizes of tables: an account
	// has room for some 85 triples of route, limit and reason, and for 21 limits.
	accountSlots, leftSlots, sharedSlots = 128, 32, 4096
	// denialHeat is how much more a refused request says about a tenant than one
	// that passed.
	denialHeat = 8
	// coolEvery is how often what tenants did is made to count half.
	coolEvery = time.Minute
)

// account is what metrics know of a tenant, or of those who share one.
type account struct {
	name    string
	refuses *tally      // by refusal
	left    *tally      // by limit; nil for those who share
	meter   *meter      // of the tenant in the policy in force, or found; nil: he is in neither
	found   *foundMeter // of a tenant of the directory
}

// meter finds a tenant's account, and tells how busy he is. It belongs to a policy,
// or to a tenant of the directory.
type meter struct {
	heat    atomic.Uint32
	denied  atomic.Uint64 // requests
	account atomic.Pointer[account]
}

// accounts are those of the busiest tenants; all others share one. A tenant
// who becomes more than twice as busy as one of them takes his place when metrics
// are read next: that one's series end, and what was counted for the other
// stays with the others.
type accounts struct {
	others, nobody *account                 // tenants without an account; requests without a tenant
	found          *memo.Table[*foundMeter] // of the directory; nil: there is none

	mu     sync.Mutex
	bound  *bound // the policy whose meters these are
	named  map[string]*account
	cooled time.Time
}

func (a *accounts) init() {
	a.named = map[string]*account{}
	a.others, a.nobody = newAccount(otherName, sharedSlots), newAccount("", sharedSlots)
}

func newAccount(name string, slots int) *account {
	a := &account{name: labelText(name), refuses: newTally(slots)}
	for r := range reasons {
		if r.ofLimit() {
			a.refuses.reserve(refusalKey(labelOther, labelOther, r, false))
			a.refuses.reserve(refusalKey(labelOther, labelOther, r, true))
		}
	}
	return a
}

// ofLimit tells whether the reason is one that a limit refuses for.
func (r Reason) ofLimit() bool {
	switch r {
	case ReasonRate, ReasonWindow, ReasonQuota, ReasonConcurrency, ReasonRetries, ReasonTooLarge, ReasonOverload, ReasonEdgeRate:
		return true
	}
	return false
}

// refused counts a refusal.
func (a *account) refused(key uint64) {
	r := refusalOf(key)
	a.refuses.add(key, refusalKey(labelOther, labelOther, r.reason, r.shadow), 1)
}

// of is the account that a decision counts for.
func (a *accounts) of(d *Decision) *account {
	if d.meter == nil {
		if d.Tenant == "" {
			return a.nobody
		}
		return a.others
	}
	heat := uint32(1)
	if d.Verdict == Deny {
		heat += denialHeat
	}
	d.meter.heat.Add(heat)
	if own := d.meter.account.Load(); own != nil {
		return own
	}
	return a.others
}

// adopt gives the tenants of a policy their accounts again, and free ones to
// the first who have none.
func (a *accounts) adopt(b *bound) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bound = b
	for _, own := range a.named {
		own.found, own.meter = nil, nil
	}
	for i := range b.meters {
		if own := a.named[b.policy.Tenants[i].ID]; own != nil {
			own.meter = &b.meters[i]
			own.meter.account.Store(own)
		}
	}
	a.meet()
	for i := range b.meters {
		if b.meters[i].account.Load() == nil && !a.open(candidate{name: b.policy.Tenants[i].ID, meter: &b.meters[i]}) {
			return
		}
	}
}

// candidate is a tenant who may get an account.
type candidate struct {
	name  string
	plan  string
	meter *meter
	found *foundMeter // nil: he is in the policy
	heat  uint32
}

// open gives a tenant an account, if one is free, or if one belongs to somebody
// who is gone or less than half as busy.
func (a *accounts) open(c candidate) bool {
	if c.name == otherName {
		return true // he could not be told from the others
	}
	if own := a.named[c.name]; own != nil { // he is in the policy and in the directory
		c.meter.account.Store(own)
		return true
	}
	if len(a.named) >= maxAccounts && !a.evict(c.heat) {
		return false
	}
	own := newAccount(c.name, accountSlots)
	own.left, own.meter, own.found = newTally(leftSlots), c.meter, c.found
	a.named[c.name] = own
	c.meter.account.Store(own)
	return true
}

// evict ends the account of the least busy.
func (a *accounts) evict(heat uint32) bool {
	coldest, least := "", ^uint32(0)
	for name, own := range a.named {
		if own.meter == nil {
			delete(a.named, name)
			return true
		}
		if h := own.meter.heat.Load(); h < least || h == least && name < coldest {
			coldest, least = name, h
		}
	}
	if heat/2 <= least {
		return false
	}
	a.named[coldest].meter.account.Store(nil)
	delete(a.named, coldest)
	return true
}

// rank gives accounts to those who have become busy. It is called when metrics
// are read.
func (a *accounts) rank(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.bound
	if b == nil {
		return
	}
	a.meet()
	cool := now.Sub(a.cooled) >= coolEvery
	if cool {
		a.cooled = now
	}
	var waiting []candidate
	for c := range b.metered() {
		if c.heat > 0 && c.meter.account.Load() == nil {
			waiting = append(waiting, c)
		}
		if cool {
			c.meter.heat.Add(-(c.heat - c.heat/2)) // what comes meanwhile is kept
		}
	}
	slices.SortFunc(waiting, func(x, y candidate) int { return cmp.Compare(y.heat, x.heat) })
	for _, c := range waiting[:min(len(waiting), maxAccounts)] {
		if !a.open(c) {
			return
		}
	}
}

// metered are all tenants who have meters: those of the policy, then those of the
// directory who have asked.
func (b *bound) metered() iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		for i := range b.meters {
			t := &b.policy.Tenants[i]
			if !yield(candidate{name: t.ID, plan: b.policy.Plans[t.Plan].Name, meter: &b.meters[i], heat: b.meters[i].heat.Load()}) {
				return
			}
		}
		if b.found == nil {
			return
		}
		for e := range b.found.All() {
			f := e.Value
			t := f.tenant.Load()
			if !yield(candidate{name: t.ID, plan: string(t.Spec.Plan), meter: &f.meter, found: f, heat: f.meter.heat.Load()}) {
				return
			}
		}
	}
}

// list is every account, the shared ones last.
func (a *accounts) list() []*account {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*account
	for _, own := range a.named {
		list = append(list, own)
	}
	slices.SortFunc(list, func(x, y *account) int { return cmp.Compare(x.name, y.name) })
	return append(list, a.others, a.nobody)
}
