package authz

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/valyala/fasthttp"

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
