package trial

import (
	"container/heap"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/authz"
	"sluice/policies"
	"sluice/policies/edge"
)

// flight is a request under way. Flights are used again.
type flight struct {
	next     *flight // of those that are free
	req      *Request
	done     func(*Outcome)
	uri      string // of the request before a credential was put into it
	header   []edge.Field
	visit    edge.Visit
	question authz.Request
	decision authz.Decision
	address  []byte
	id       []byte
	asked    bool
	status   int // of the application
	costs    map[string]string
	cost     *int64 // as Request.Cost

	would, wouldLimit string // at the edge
}

func (t *Trial) take() *flight {
	f := t.free
	if f == nil {
		return &flight{}
	}
	t.free = f.next
	return f
}

func (t *Trial) put(f *flight) {
	f.next, t.free = t.free, f
	f.req, f.done, f.uri, f.header, f.asked, f.status, f.costs = nil, nil, "", nil, false, 0, nil
	f.would, f.wouldLimit, f.cost = "", "", nil
}

// settles tells whether the service waits for the end of this request.
func (f *flight) settles(c *policies.Compiled) bool {
	return f.asked && (f.cost != nil || c.Settles()) && f.decision.Verdict != authz.Deny
}

// noteShadow keeps what would have refused at the edge. The first counts.
func (f *flight) noteShadow() {
	v := &f.visit
	switch {
	case f.would != "":
	case v.Would != "":
		f.would, f.wouldLimit = edge.Access.String(), v.Would
	case v.Shadow:
		f.would, f.wouldLimit = v.Verdict.String(), v.Limit
	}
}

// tell fills the outcome and hands it out.
func (t *Trial) tell(f *flight, by By, status int) {
	o := &t.out
	v := &f.visit
	*o = Outcome{
		Request: f.req, At: t.now, Denied: by != ByNobody, Status: status, By: by,
		Would: f.would, WouldLimit: f.wouldLimit, EdgeDelay: v.Delay,
		Location: v.Location, Client: v.Counted, Rule: v.Rule, Exempt: v.Exempt, Asked: f.asked, flight: f, trial: t,
	}
	if f.req.Key != nil {
		f.req.URI, f.req.Header, f.req.Cert = f.uri, f.header, ""
	}
	switch by {
	case ByAccess:
		o.Reason, o.Limit = v.Verdict.String(), v.Rule
	case ByEdge:
		o.Reason, o.Limit = v.Verdict.String(), v.Limit
		o.Wait, o.RetryAfter = v.Wait, t.edge.RetryAfter(v)
	}
	if f.asked {
		o.fill(&f.decision)
	}
	if f.req.Trace != nil {
		t.trace(f, o)
	}
	f.done(o)
}

// fill takes over what the service said.
func (o *Outcome) fill(d *authz.Decision) {
	o.Route, o.Tenant, o.Key, o.Plan, o.Priority, o.Cost = d.Route, d.Tenant, d.Key, d.Plan, d.Priority, d.Cost
	o.Hold, o.Degraded, o.Err = d.Delay, d.FailMode, d.Err
	switch {
	case d.Verdict == authz.Deny:
		o.Reason, o.Limit = d.Reason.String(), d.Limit
		o.Wait, o.RetryAfter = max(0, d.Wait), d.RetryAfter()
	case d.Reason == authz.ReasonShadow && o.Would == "":
		o.Would, o.WouldLimit = d.Refused().String(), d.Limit
	}
}

// Charges are what every limit of the service said, in the order of enforcement.
func (o *Outcome) Charges(dst []authz.Charge) []authz.Charge {
	if !o.Asked {
		return dst
	}
	return o.flight.decision.Charges(dst)
}

// Header are the headers of ours that the client gets: of limits on answers of
// the service, the others on denials.
func (o *Outcome) Header() []edge.Field {
	t := o.trial
	var out []edge.Field
	put := func(name, value string) {
		if value != "" {
			out = append(out, edge.Field{Name: name, Value: value})
		}
	}
	if o.Asked {
		var resp fasthttp.Response
		resp.Header.DisableNormalizing() // names are as they are written
		o.flight.decision.Write(&resp)
		for _, name := range t.told {
			put(name, string(resp.Header.Peek(name)))
		}
		put(policies.HeaderDegraded, string(resp.Header.Peek(policies.HeaderDegraded)))
		if o.Denied {
			put("WWW-Authenticate", string(resp.Header.Peek("WWW-Authenticate")))
			put("Retry-After", string(resp.Header.Peek("Retry-After")))
		}
		if o.Denied || t.policy.Mode == policies.ModeShadow { // which tells what it would have refused
			put(policies.HeaderLimit, string(resp.Header.Peek(policies.HeaderLimit)))
			put(policies.HeaderReason, string(resp.Header.Peek(policies.HeaderReason)))
		}
		return out
	}
	for _, f := range t.edge.Header(&o.flight.visit) {
		put(f.Name, f.Value)
	}
	return out
}

// event is something that falls due.
type event struct {
	at     time.Time
	serial int // of two at one time the earlier made comes first
	flight *flight
	goesOn bool // after limit_req; else it ends
}

// events is a heap of them.
type events []event

func (e events) Len() int { return len(e) }

func (e events) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	if e[i].goesOn != e[j].goesOn {
		return e[j].goesOn // who leaves makes room
	}
	return e[i].serial < e[j].serial
}

func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push and Pop are heap's.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop removes the last.
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (e *events) push(x event) { heap.Push(e, x) }
func (e *events) pop() event   { return heap.Pop(e).(event) }
