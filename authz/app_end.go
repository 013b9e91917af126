package authz

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/valyala/fasthttp"
)

// askedFor says for whom something was taken, as take was told; needed when two have
// taken something by one name.
type askedFor struct {
	Tenant string `json:"tenant"`
	Key    string `json:"key"`
	User   string `json:"user"`
	IP     string `json:"ip"`
}

func (f *askedFor) asker() asker {
	return asker{tenant: f.Tenant, key: keyHash(f.Key), user: f.User, ip: f.IP}
}

// releaseQuestion is the body of POST /v1/release.
type releaseQuestion struct {
	askedFor
	Request string `json:"request"`
	Route   string `json:"route"`
	Status  *int   `json:"status"`
	Cost    *int64 `json:"cost"`
}

// severalFit is what to say besides.
const severalFit = "several requests have this name; want the route, and tenant or key, user and ip as they were taken"

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
	known, err := h.engine.end(Completion{ID: q.Request, Status: status, cost: q.Cost, by: q.asker()}, q.Route)
	switch {
	case errors.Is(err, errSeveral):
		appProblem(ctx, http.StatusConflict, severalFit)
	case err != nil:
		appProblem(ctx, http.StatusServiceUnavailable, "the store did not take it; a place that is held comes free by itself")
	case !known:
		appProblem(ctx, http.StatusNotFound, "this instance holds nothing for that request and route, or gave it back before")
	default:
		ctx.Response.SetStatusCode(http.StatusNoContent)
	}
}

// costQuestion is the body of POST /v1/cost.
type costQuestion struct {
	askedFor
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
	outcome, cost := h.engine.Report(Report{ID: q.Request, Route: q.Route, Cost: *q.Cost, by: q.asker()})
	switch outcome {
	case ReportSettled, ReportAgain:
		writeApp(ctx, http.StatusOK, "application/json", costAnswer{q.Request, cost, outcome == ReportAgain})
	case ReportOther:
		appProblem(ctx, http.StatusConflict, fmt.Sprintf("a cost of %d was reported before, and stays", cost))
	case ReportLate:
		appProblem(ctx, http.StatusGone, "the time for the report is over: the estimate stays")
	case ReportSeveral:
		appProblem(ctx, http.StatusConflict, severalFit)
	case ReportNotTaken:
		appProblem(ctx, http.StatusServiceUnavailable, "the store did not take it; want it said again")
	default:
		appProblem(ctx, http.StatusNotFound, "no request of this instance waits for a report by that name; with several instances ask the one that decided")
	}
}
