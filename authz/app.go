package authz

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"

	"github.com/valyala/fasthttp"

	"sluice/authz/limit"
	"sluice/policies"
)

const (
	// appPrefix is where applications speak to the service; NGINX's questions are
	// under policies.AuthPrefix.
	appPrefix = "/v1/"
	// maxAppBody is the most that one may say, in bytes.
	maxAppBody = 8 << 10
	// maxAppCost is the largest cost that one may name: that of a policy.
	maxAppCost = 1_000_000
)

// appRequest is who asks by POST /v1/take, and for how much.
type appRequest struct {
	tenant, user []byte
	key          []byte // an API key
	cost         int64  // 0: the route's
}

func (a *appRequest) named() bool { return len(a.tenant) > 0 || len(a.key) > 0 }

// identifyApp is who an application says that it asks for. It is believed as NGINX
// is: whoever may connect speaks for every client.
func (b *bound) identifyApp(a *appRequest, c client, d *Decision) (identity, bool) {
	if len(a.key) > 0 {
		id, ok := b.identifyKey(a.key, c, d)
		id.user = a.user
		return id, ok
	}
	p := b.newPerson(a.tenant, a.user)
	return b.identifyPerson(&p, c, d)
}

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

// releaseQuestion is the body of POST /v1/release.
type releaseQuestion struct {
	Request string `json:"request"`
	Route   string `json:"route"`
	Status  *int   `json:"status"`
	Cost    *int64 `json:"cost"`
}

// costQuestion is the body of POST /v1/cost.
type costQuestion struct {
	Request string `json:"request"`
	Route   string `json:"route"`
	Cost    *int64 `json:"cost"`
}

// costAnswer is its answer.
type costAnswer struct {
	Request string `json:"request"`
	Cost    int64  `json:"cost"`
	Again   bool   `json:"again,omitempty"` // it was reported before
}

// app answers an application: POST /v1/take asks for a route by its name, as a
// worker or before a call to somebody else's API; /v1/release tells that what was
// taken has ended; /v1/cost tells what a request has cost.
//
// Whoever may connect is believed, and on a desk that is every page in the browser,
// too: what a browser sends is refused. It says where its page is from whenever it
// posts, also to a name that was made to point here.
func (h *handler) app(ctx *fasthttp.RequestCtx) {
	defer h.rescueApp(ctx)
	answer, known := map[string]func(*fasthttp.RequestCtx){
		appPrefix + "take":    h.appTake,
		appPrefix + "release": h.appRelease,
		appPrefix + "cost":    h.appCost,
	}[string(ctx.Path())]
	switch {
	case !known:
		appProblem(ctx, http.StatusNotFound, "no such page; want "+appPrefix+"take, "+appPrefix+"release or "+appPrefix+"cost")
	case !ctx.IsPost():
		ctx.Response.Header.Set(fasthttp.HeaderAllow, http.MethodPost)
		appProblem(ctx, http.StatusMethodNotAllowed, "no such method here; want POST")
	case fromPage(&ctx.Request.Header):
		appProblem(ctx, http.StatusForbidden, "this is for programs; a page in a browser asks its own application")
	default:
		answer(ctx)
	}
}

// fromPage tells whether a browser asks for a page.
func fromPage(h *fasthttp.RequestHeader) bool {
	return len(h.PeekAll(fasthttp.HeaderOrigin)) > 0 || len(h.PeekAll("Sec-Fetch-Site")) > 0
}

// rescueApp answers when something panicked: fasthttp would let that end the
// process. No decision comes of it.
func (h *handler) rescueApp(ctx *fasthttp.RequestCtx) {
	if p := recover(); p != nil {
		h.engine.panicked(p, policies.FailClosed, new(Decision))
		ctx.Response.Reset()
		appProblem(ctx, http.StatusInternalServerError, "a mistake of the service's; its log has it")
	}
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

// appRelease ends what was taken.
func (h *handler) appRelease(ctx *fasthttp.RequestCtx) {
	var q releaseQuestion
	if !readApp(ctx, &q) {
		return
	}
	status := http.StatusOK
	if q.Status != nil {
		status = *q.Status
	}
	if q.Request == "" || status < 100 || status > 599 || q.Cost != nil && *q.Cost < 0 {
		appProblem(ctx, http.StatusBadRequest, "want request and route, as they were taken (what a proxy asked for has no route), a status of 100 to 599 and a cost from 0 if there are any")
		return
	}
	known, err := h.engine.end(Completion{ID: q.Request, Status: status, cost: q.Cost}, q.Route)
	switch {
	case err != nil:
		appProblem(ctx, http.StatusServiceUnavailable, "the store did not take it; a place that is held comes free by itself")
	case !known:
		appProblem(ctx, http.StatusNotFound, "this instance holds nothing for that request and route, or gave it back before")
	default:
		ctx.Response.SetStatusCode(http.StatusNoContent)
	}
}

// appCost settles a cost.
func (h *handler) appCost(ctx *fasthttp.RequestCtx) {
	var q costQuestion
	if !readApp(ctx, &q) {
		return
	}
	if q.Request == "" || q.Cost == nil || *q.Cost < 0 {
		appProblem(ctx, http.StatusBadRequest, "want request, as the application got it in X-Sluice-Request, and cost, a whole number from 0")
		return
	}
	outcome, cost := h.engine.Report(Report{ID: q.Request, Route: q.Route, Cost: *q.Cost})
	switch outcome {
	case ReportSettled, ReportAgain:
		writeApp(ctx, http.StatusOK, "application/json", costAnswer{q.Request, cost, outcome == ReportAgain})
	case ReportOther:
		appProblem(ctx, http.StatusConflict, fmt.Sprintf("a cost of %d was reported before, and stays", cost))
	case ReportLate:
		appProblem(ctx, http.StatusGone, "the time for the report is over: the estimate stays")
	case ReportNotTaken:
		appProblem(ctx, http.StatusServiceUnavailable, "the store did not take it; want it said again")
	default:
		appProblem(ctx, http.StatusNotFound, "no request of this instance waits for a report by that name; with several instances ask the one that decided, "+
			"and with several reports for one request say the route")
	}
}

// readApp reads a body: one JSON object, with known keys alone.
func readApp(ctx *fasthttp.RequestCtx, into any) bool {
	dec := json.NewDecoder(bytes.NewReader(ctx.PostBody()))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the object")
		}
	}
	if err == nil {
		return true
	}
	// What was sent may hold a key, and json quotes it in some of its errors.
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	detail := "the body is not the JSON object that is wanted here"
	switch {
	case errors.As(err, &syntax):
		detail = fmt.Sprintf("the body is no JSON: see byte %d", syntax.Offset)
	case errors.As(err, &kind):
		detail = fmt.Sprintf("%s is a %s; want a %s", kind.Field, kind.Value, kind.Type)
	}
	appProblem(ctx, http.StatusBadRequest, detail)
	return false
}

func appProblem(ctx *fasthttp.RequestCtx, status int, detail string) {
	writeApp(ctx, status, "application/problem+json", Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail})
}

func writeApp(ctx *fasthttp.RequestCtx, status int, contentType string, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		panic("BUG: an answer cannot be JSON: " + err.Error())
	}
	ctx.Response.SetStatusCode(status)
	ctx.Response.Header.SetContentType(contentType)
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	ctx.Response.SetBody(append(data, '\n'))
}
