package authz

import (
	"slices"
	"sync"
	"time"

	"sluice/authz/limit"
)

const (
	// maxPending is how many requests under way are remembered in each half: the
	// older half is forgotten when the younger is full or old. Their leases then
	// expire, and what they charged stays.
	maxPending = 100_000
	// pendingFor is how long a request is remembered at least.
	pendingFor = 15 * time.Minute
	// maxEarly is how many ends are remembered that came before their request was
	// let pass, and earlyFor how long.
	maxEarly = 10_000
	earlyFor = 10 * time.Second
)

// pending is what an allowed request charged that its end, or a report of its cost,
// will settle.
type pending struct {
	route    *boundRoute
	location string // that asked
	asker    asker
	since    time.Time
	local    bool // what stood in for the store was charged

	mu    sync.Mutex
	parts []part
	ended bool
	told  bool // the application has reported
	cost  int64
}

// part is what one limit was charged.
type part struct {
	rule    *rule
	op      limit.Op // with memory of its own
	charged int64    // as it stands
	priced  bool     // it is charged what the request costs in the end
	void    bool     // it was given back: its status does not count
}

// pendings remembers requests under way, in two halves.
type pendings struct {
	mu           sync.Mutex
	young, older half
	since        time.Time // of the younger half
	longest      time.Duration

	early      map[string]Completion // ends that came too soon
	earlySince time.Time
}

// keep makes it remember requests for as long as a policy wants.
func (p *pendings) keep(longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest = max(longest, pendingFor)
}

// add remembers a request. If its end is known already, it returns that.
func (p *pendings) add(id string, x *pending, now time.Time) (early Completion, ok bool) {
	name := completionName(id, x.location)
	p.mu.Lock()
	defer p.mu.Unlock()
	if early, ok = p.early[name]; ok {
		delete(p.early, name)
		if x.route.CostReport == 0 {
			return early, true
		}
	}
	if p.young.requests == nil || now.Sub(p.since) >= max(p.longest, pendingFor) || len(p.young.requests) >= maxPending {
		p.older, p.young, p.since = p.young, newHalf(), now
	}
	p.forget(name, id, func(o *pending) bool { return o.asker == x.asker })
	p.young.add(name, id, x)
	return early, ok
}

// end finds a request that has ended, and forgets it unless a report is awaited. Of
// several of one name it must be clear which one is meant: several otherwise.
// An end that tells of a client who went away, about a request that is not known,
// may have overtaken it: it is kept for a moment.
func (p *pendings) end(c Completion, route string, now time.Time) (x *pending, several bool) {
	name := completionName(c.ID, route)
	p.mu.Lock()
	defer p.mu.Unlock()
	x, several = meant(&c.by, p.young.requests[name], p.older.requests[name])
	if x != nil && x.route.CostReport == 0 {
		p.forget(name, c.ID, func(o *pending) bool { return o == x })
	}
	if x == nil && !several && c.left() {
		if p.early == nil || now.Sub(p.earlySince) >= earlyFor || len(p.early) >= maxEarly {
			p.early, p.earlySince = map[string]Completion{}, now
		}
		p.early[name] = c
	}
	return x, several
}

// reported finds a request that waits for a report, or has had it: by the location
// that asked, or without one by its id alone. Of several it must be clear which one
// is meant: several otherwise.
func (p *pendings) reported(r *Report) (x *pending, several bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	lists := [][]*pending{p.young.reports[r.ID], p.older.reports[r.ID]}
	if r.Route != "" {
		name := completionName(r.ID, r.Route)
		lists = [][]*pending{p.young.requests[name], p.older.requests[name]}
	}
	x, several = meant(&r.by, lists...)
	if x != nil && x.route.CostReport == 0 {
		x = nil
	}
	return x, several
}

// forget forgets the requests of a name for which is holds.
func (p *pendings) forget(name, id string, is func(*pending) bool) {
	for _, h := range []half{p.young, p.older} {
		drop(h.requests, name, is)
		drop(h.reports, id, func(x *pending) bool { return completionName(id, x.location) == name && is(x) })
	}
}

func drop(lists map[string][]*pending, key string, is func(*pending) bool) {
	list, ok := lists[key]
	if !ok {
		return
	}
	if list = slices.DeleteFunc(list, is); len(list) > 0 {
		lists[key] = list
	} else {
		delete(lists, key)
	}
}

// meant is the one request among those of a name that is meant.
func meant(by *asker, lists ...[]*pending) (x *pending, several bool) {
	for _, list := range lists {
		for _, o := range list {
			switch {
			case !o.asker.is(by):
			case x != nil:
				return nil, true
			default:
				x = o
			}
		}
	}
	return x, false
}

// half is what was remembered in one stretch of time.
type half struct {
	requests map[string][]*pending // by completionName
	reports  map[string][]*pending // those that want a report, by id
}

func newHalf() half { return half{map[string][]*pending{}, map[string][]*pending{}} }

func (h *half) add(name, id string, x *pending) {
	h.requests[name] = append(h.requests[name], x)
	if x.route.CostReport > 0 {
		h.reports[id] = append(h.reports[id], x)
	}
}
