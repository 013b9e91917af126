package authz

import (
	"github.com/valyala/fasthttp"

	"sluice/policies"
	"sluice/policies/denial"
)

// writeForward answers a proxy that is no NGINX: with the true status, and with the
// body that NGINX would give the client. It is never 200 for a denial, not for gRPC
// either: to these proxies that is an allow.
func (d *Decision) writeForward(ctx *fasthttp.RequestCtx, id []byte, words *denial.Writer, accept, acceptLanguage string) {
	resp := &ctx.Response
	d.writer.header = &resp.Header
	w := &d.writer
	d.writeReason(w)
	d.writeLimits(w)
	resp.Header.Del("X-Accel-Expires")
	w.text(fasthttp.HeaderCacheControl, "no-store")
	if d.Verdict != Deny {
		d.writeToApp(w, id)
		w.header = nil
		return
	}
	w.text(policies.HeaderDecision, "deny")
	w.text(fasthttp.HeaderVary, "Accept, Accept-Language")
	about := denial.Denial{Status: d.Status, Reason: d.Reason.String(), Limit: d.Limit}
	if d.Wait > 0 {
		about.Retry = d.retryAfter()
	}
	body := words.Write(about, accept, acceptLanguage)
	w.text(fasthttp.HeaderContentLanguage, string(body.Language))
	w.header = nil
	ctx.SetStatusCode(d.Status)
	ctx.SetContentType(body.Type)
	ctx.SetBody(body.Text)
}

// writeToApp tells the application who asks, and the id under which it may tell of the
// request's end, in headers that are always there, so that
// a client's own under these names are overwritten where the proxy copies them.
func (d *Decision) writeToApp(w *writer, id []byte) {
	w.text(policies.HeaderDecision, "allow")
	w.text(policies.HeaderTenant, d.Tenant)
	w.text(policies.HeaderPlan, d.Plan)
	w.text(policies.HeaderPriority, string(d.Priority))
	w.text(policies.HeaderRequest, string(id))
}
