package authz

import (
	"fmt"
	"net/http"
	"net/netip"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
	"sluice/policies"
)

// takeQuestion is the body of POST /v1/take.
type takeQuestion struct {
	Route   string `json:"route"`
	Tenant  string `json:"tenant"`
	Key     string `json:"key"`
	User    string `json:"user"`
	IP      string `json:"ip"`
	Cost    *int64 `json:"cost"`
	Request string `json:"request"`
}

// takeAnswer is the answer of POST /v1/take.
type takeAnswer struct {
	Allowed    bool        `json:"allowed"`
	Degraded   bool        `json:"degraded,omitempty"`
	Route      string      `json:"route"`
	Tenant     string      `json:"tenant,omitempty"`
	Plan       string      `json:"plan,omitempty"`
	Cost       int64       `json:"cost"`
	Limit      string      `json:"limit,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	RetryAfter int64       `json:"retry_after,omitempty"` // seconds
	Limits     []appCharge `json:"limits,omitempty"`
}

// appCharge is what one limit has left.
type appCharge struct {
	Name      string `json:"name"`
	Limit     int64  `json:"limit"`
	Remaining int64  `json:"remaining"`
	Reset     int64  `json:"reset"` // seconds
}

// appTake decides.
func (h *handler) appTake(ctx *fasthttp.RequestCtx) {
	var q takeQuestion
	if !readApp(ctx, &q) {
		return
	}
	x := h.exchanges.Get().(*exchange)
	defer func() { x.request.Reset(); h.exchanges.Put(x) }()
	x.request.Reset()
	if problem := h.fillTake(&x.request, &q); problem != "" {
		appProblem(ctx, http.StatusBadRequest, problem)
		return
	}
	h.decide(x)
	d := &x.decision
	h.denials.note(d)
	status := http.StatusOK
	if d.Verdict == Deny {
		status = d.Status
	}
	d.writer.header = &ctx.Response.Header
	d.writeLimits(&d.writer)
	if d.Verdict == Deny && d.Wait > 0 {
		d.writer.number("Retry-After", d.retryAfter())
	}
	d.writer.header = nil
	writeApp(ctx, status, "application/json", d.takeAnswer())
}

// fillTake makes a question of what an application said; what is wrong with it is
// returned in words.
func (h *handler) fillTake(r *Request, q *takeQuestion) (problem string) {
	b := h.engine.state.Load()
	r.Mode = policies.FailOpen
	if b != nil {
		named := b.policy.RouteNamed([]byte(q.Route))
		if named == nil {
			return fmt.Sprintf("route %q is not in the policy; want the name of one", q.Route)
		}
		if named.OnStoreDown == policies.FailClosed {
			r.Mode = policies.FailClosed
		}
	}
	switch {
	case q.Tenant != "" && q.Key != "":
		return "tenant and key stand together; want one of them"
	case q.Cost != nil && (*q.Cost < 1 || *q.Cost > maxAppCost):
		return fmt.Sprintf("cost is %d; want 1 to %d", *q.Cost, maxAppCost)
	case len(q.Request) > limit.MaxID:
		return fmt.Sprintf("request has %d bytes; want at most %d", len(q.Request), limit.MaxID)
	}
	if q.IP != "" {
		if _, err := netip.ParseAddr(q.IP); err != nil {
			return "ip is no address"
		}
	}
	r.Route, r.IP, r.ID = []byte(q.Route), []byte(q.IP), []byte(q.Request)
	r.app = &appRequest{tenant: []byte(q.Tenant), user: []byte(q.User), key: []byte(q.Key)}
	if q.Cost != nil {
		r.app.cost = *q.Cost
	}
	return ""
}

// takeAnswer is the decision as an application gets it.
func (d *Decision) takeAnswer() takeAnswer {
	a := takeAnswer{
		Allowed: d.Verdict != Deny, Degraded: d.FailMode, Route: d.Route, Tenant: d.Tenant, Plan: d.Plan,
		Cost: d.Cost, Limit: d.Limit,
	}
	if d.Verdict == Deny || d.Reason == ReasonShadow {
		a.Reason = d.Reason.String()
	}
	if d.Verdict == Deny {
		a.RetryAfter = d.RetryAfter()
	}
	for i := range d.ops {
		if !d.shows(i) || d.recalled && i != d.told {
			continue
		}
		reset, _ := d.resetOf(i)
		a.Limits = append(a.Limits, appCharge{d.rules[i].limit.Name, d.ops[i].Limit(), d.states[i].Remaining, wholeSeconds(reset)})
	}
	return a
}
