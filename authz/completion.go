package authz

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/authz/limit"
)

// settleDeadline is how long a correction may take: nobody waits for it.
const settleDeadline = time.Second

// Completion is the end of a request, as NGINX tells it.
type Completion struct {
	ID     string            // $request_id
	Path   string            // of the question: /_sluice/open/NAME
	Status int               // of the answer, as the client got it; 0 when he was gone
	Costs  map[string]string // headers of the application that tell a cost, by name

	cost *int64 // what the application says itself
	by   asker  // for whom it was, as far as the application says
}

// left tells whether the client went away before there was an answer.
func (c *Completion) left() bool { return c.Status == 0 || c.Status == 499 }

// remember keeps what the end of the request, or a report of its cost, will settle.
// It allocates: only requests with such limits come here.
func (e *Engine) remember(req *Request, r *boundRoute, d *Decision) {
	x := &pending{route: r, location: string(req.Route), asker: askerOf(req, d), since: d.now, local: d.local}
	told := r.CostHeader != "" || r.CostReport > 0
	for i, rule := range d.rules {
		priced := told && !rule.limit.Requests && rule.op.Kind != limit.Concurrency
		// A limit in shadow charges only what fitted.
		if !rule.limit.Settles() && !priced || !d.states[i].Fits {
			continue
		}
		op := d.ops[i]
		op.Tag, op.Key, op.ID = slices.Clone(op.Tag), slices.Clone(op.Key), slices.Clone(op.ID)
		op.Stamp = d.states[i].Stamp
		x.parts = append(x.parts, part{rule: rule, op: op, charged: op.Cost, priced: priced})
	}
	if len(x.parts) == 0 || len(req.ID) == 0 {
		return
	}
	if early, ok := e.pendings.add(string(req.ID), x, d.now); ok {
		// The client went away while we decided: NGINX has told so already.
		go func() { _, _ = e.settle(x, early) }()
	}
}

// completionName names a charge by the request and the location that asked.
func completionName(id, route string) string { return id + "/" + route }

// Complete settles what a request charged, now that it has ended: leases are
// freed, what its status does not count is given back, and a cost that the
// application told is charged instead of the estimate. It tells whether this
// instance had let the request pass. An error is the store's: the lease then
// expires by itself, and the charge stays.
func (e *Engine) Complete(c Completion) (known bool, err error) {
	var question Request
	if !question.readPath([]byte(c.Path)) {
		return false, nil
	}
	return e.end(c, string(question.Route))
}

// errSeveral is why an end is nobody's.
var errSeveral = errors.New("several requests have this name, and it is not said for whom it was")

func (e *Engine) end(c Completion, route string) (known bool, err error) {
	x, several := e.pendings.end(c, route, e.now())
	if several {
		return false, errSeveral
	}
	if x == nil {
		return false, nil
	}
	return e.settle(x, c)
}

// settle settles a request that has ended, once.
func (e *Engine) settle(x *pending, c Completion) (first bool, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return false, nil
	}
	x.ended = true
	cost, told := x.route.tellsCost(c.Costs)
	if c.cost != nil && x.route.CostHeader != "" {
		cost, told = min(*c.cost, x.route.CostMax), true
	}
	var ops []limit.Op
	var deltas []int64
	for i := range x.parts {
		p := &x.parts[i]
		owed := p.charged
		if told && p.priced {
			owed = cost
		}
		if !p.rule.limit.Counts(c.Status) {
			owed, p.void = 0, true
		}
		if owed != p.charged || p.op.Kind == limit.Concurrency {
			ops, deltas = append(ops, p.op), append(deltas, owed-p.charged)
			p.charged = owed
		}
	}
	if len(ops) == 0 {
		return true, nil
	}
	return true, e.correct(x, nil, ops, deltas)
}

// correct settles where it was charged.
func (e *Engine) correct(x *pending, name []byte, ops []limit.Op, deltas []int64) error {
	if x.local {
		return e.local.Settle(ops, deltas)
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleDeadline)
	defer cancel()
	return e.store.Settle(ctx, name, ops, deltas)
}

// tellsCost is the cost that an answer's header tells, at most what the policy
// allows. Without one, or when it is no whole number, the estimate stays.
func (r *boundRoute) tellsCost(costs map[string]string) (int64, bool) {
	text, ok := costs[r.CostHeader]
	if !ok || r.CostHeader == "" {
		return 0, false
	}
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return r.CostMax, true // more digits than a number has
	}
	return min(n, r.CostMax), true
}

// Report is what the application says a request has cost.
type Report struct {
	ID    string // $request_id, which the application gets in X-Sluice-Request
	Route string // the location that asked; may be empty when one alone is reported about
	Cost  int64  // units, 0 or more

	by asker // for whom it was, as far as that is said
}

// ReportOutcome is what became of a Report.
type ReportOutcome int

// What may become of a Report.
const (
	ReportSettled  ReportOutcome = iota // the difference is charged or given back
	ReportAgain                         // the same was reported before
	ReportOther                         // another cost was reported before: it stays
	ReportUnknown                       // no request of this instance that waits for one
	ReportLate                          // its time is over: the estimate stays
	ReportSeveral                       // several requests have this name
	ReportNotTaken                      // the store did not take it; it may be said again
)

// Report settles the cost of a request whose route has `cost_from: {report: ...}`,
// once. The cost that it settled on, at most the policy's max, is returned too.
func (e *Engine) Report(r Report) (ReportOutcome, int64) {
	x, several := e.pendings.reported(&r)
	switch {
	case several:
		return ReportSeveral, 0
	case x == nil:
		return ReportUnknown, 0
	}
	cost := min(r.Cost, x.route.CostMax)
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.told && x.cost == cost:
		return ReportAgain, cost
	case x.told:
		return ReportOther, x.cost
	case e.now().Sub(x.since) > x.route.CostReport:
		return ReportLate, 0
	}
	var ops []limit.Op
	var deltas []int64
	for i := range x.parts {
		if p := &x.parts[i]; p.priced && !p.void && p.charged != cost {
			ops, deltas = append(ops, p.op), append(deltas, cost-p.charged)
		}
	}
	// The name makes it happen once if the store did it and its answer was lost.
	if len(ops) > 0 && e.correct(x, reportName(r.ID, x), ops, deltas) != nil {
		return ReportNotTaken, 0
	}
	for i := range x.parts {
		if p := &x.parts[i]; p.priced && !p.void {
			p.charged = cost
		}
	}
	x.told, x.cost = true, cost
	return ReportSettled, cost
}

// reportName names a report for the store.
func reportName(id string, x *pending) []byte {
	return appendHash([]byte("cost/"), x.asker.appendTo([]byte(id+"/"+x.route.Name)))
}
