package authz

import (
	"context"
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
	// settleDeadline is how long a correction may take: nobody waits for it.
	settleDeadline = time.Second
)

// Completion is the end of a request, as NGINX tells it.
type Completion struct {
	ID     string // $request_id
	Path   string // of the question: /_sluice/open/NAME
	Status int    // of the answer, as the client got it
}

// pending is what an allowed request charged that its end will settle.
type pending struct {
	ops    []limit.Op // with memory of their own
	rules  []*rule
	deltas []int64
}

// pendings remembers requests under way, in two halves.
type pendings struct {
	mu           sync.Mutex
	young, older map[string]*pending
	since        time.Time // of the younger half
}

func (p *pendings) add(name string, x *pending, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.young == nil || now.Sub(p.since) >= pendingFor || len(p.young) >= maxPending {
		p.older, p.young, p.since = p.young, map[string]*pending{}, now
	}
	p.young[name] = x
}

// take finds a request and forgets it: the end of a request comes once.
func (p *pendings) take(name string) *pending {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, half := range []map[string]*pending{p.young, p.older} {
		if x, ok := half[name]; ok {
			delete(half, name)
			return x
		}
	}
	return nil
}

// remember keeps what the end of the request will settle. It allocates: only
// requests with such limits come here.
func (e *Engine) remember(req *Request, d *Decision) {
	x := &pending{}
	for i, r := range d.rules {
		// A limit in shadow charges only what fitted.
		if !r.limit.Settles() || !d.states[i].Fits {
			continue
		}
		op := d.ops[i]
		op.Tag, op.Key, op.ID = slices.Clone(op.Tag), slices.Clone(op.Key), slices.Clone(op.ID)
		op.Stamp = d.states[i].Stamp
		x.ops, x.rules = append(x.ops, op), append(x.rules, r)
	}
	if len(x.ops) > 0 && len(req.ID) > 0 {
		e.pendings.add(completionName(string(req.ID), string(req.Route)), x, time.Now())
	}
}

// completionName names a charge by the request and the location that asked.
func completionName(id, route string) string { return id + "/" + route }

// Complete settles what a request charged, now that it has ended: leases are
// freed, and what its status does not count is given back. It tells whether this
// instance had let the request pass. An error is the store's: the lease then
// expires by itself, and the charge stays.
func (e *Engine) Complete(c Completion) (known bool, err error) {
	var question Request
	if !question.readPath([]byte(c.Path)) {
		return false, nil
	}
	x := e.pendings.take(completionName(c.ID, string(question.Route)))
	if x == nil {
		return false, nil
	}
	for i, r := range x.rules {
		delta := int64(0)
		if !r.limit.Counts(c.Status) {
			delta = -x.ops[i].Cost
		}
		x.deltas = append(x.deltas, delta)
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleDeadline)
	defer cancel()
	return true, e.store.Settle(ctx, nil, x.ops, x.deltas)
}
