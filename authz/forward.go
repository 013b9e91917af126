package authz

import (
	"bytes"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"sluice/policies"
)

// forwardPath is where forward-auth proxies ask: Caddy and Traefik there, telling of
// the client's request in X-Forwarded-*, Envoy below it, with that request's own
// method and path.
const forwardPath = "/authz"

// isForward tells whether a target is forwardPath, or below it.
func isForward(target []byte) bool {
	rest, ours := bytes.CutPrefix(target, []byte(forwardPath))
	return ours && (len(rest) == 0 || rest[0] == '/' || rest[0] == '?')
}

// forward answers a proxy that passes the client's headers on. So none of them is
// believed but those that the proxy itself writes: every X-Sluice-* is ignored, and
// who asks must be one of the policy's trusted proxies. The service decides its own
// limits alone: access rules and edge limits are NGINX's. A request has no id here,
// since a client could write one and be charged once for many.
func (h *handler) forward(ctx *fasthttp.RequestCtx) {
	defer h.rescueApp(ctx)
	b := h.engine.state.Load()
	if b == nil {
		appProblem(ctx, http.StatusServiceUnavailable, "there is no policy yet")
		return
	}
	x := h.exchanges.Get().(*exchange)
	defer func() { x.request.Reset(); h.exchanges.Put(x) }()
	x.request.Reset()
	if status, problem := b.readForward(&x.request, ctx); problem != "" {
		appProblem(ctx, status, problem)
		return
	}
	if x.request.forwarded.preflight {
		ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
		return
	}
	h.decide(x)
	h.denials.note(&x.decision)
	x.decision.writeForward(ctx)
}

// forwarded marks a question of forwardPath.
type forwarded struct{ asked, preflight bool }

// readForward makes a question of what a proxy sends; what is wrong with it is
// returned in words, with a status that lets nobody pass.
func (b *bound) readForward(r *Request, ctx *fasthttp.RequestCtx) (status int, problem string) {
	peer, ok := peerAddr(ctx.RemoteAddr())
	if !ok || !anyContains(b.policy.Client.Trusted, peer) {
		return http.StatusForbidden, "who asks here is a proxy that client_ip.trusted_proxies names; this one is not among them"
	}
	head := &ctx.Request.Header
	r.Mode, r.forwarded.asked = policies.FailClosed, true
	r.Method, r.Host = head.Method(), head.Host()
	r.URI = head.RequestURI()[len(forwardPath):]
	if len(r.URI) == 0 || r.URI[0] == '?' {
		var one bool
		if r.Method, one = only(head, "X-Forwarded-Method"); !one {
			return http.StatusBadRequest, "want one X-Forwarded-Method of the proxy's"
		}
		if r.URI, one = only(head, "X-Forwarded-Uri"); !one {
			return http.StatusBadRequest, "want one X-Forwarded-Uri of the proxy's, or the client's path behind " + forwardPath
		}
		if host, one := only(head, "X-Forwarded-Host"); one {
			r.Host = host
		}
	}
	if _, ok := policies.NormalizePath(nil, r.URI); !ok {
		return http.StatusBadRequest, "the client's path cannot be read"
	}
	r.IP = []byte(b.forwardedAddr(peer, head).String())
	r.forwarded.preflight = string(r.Method) == http.MethodOptions && len(head.Peek(fasthttp.HeaderOrigin)) > 0 &&
		len(head.Peek("Access-Control-Request-Method")) > 0
	r.Retry = retries(head)
	r.Idempotency, _ = only(head, "Idempotency-Key")
	b.readValues(r, head)
	return 0, ""
}

func peerAddr(a net.Addr) (netip.Addr, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}, false
	}
	return tcp.AddrPort().Addr().Unmap().WithZone(""), true
}

// only is a header that came once, and says something.
func only(h *fasthttp.RequestHeader, name string) ([]byte, bool) {
	values := h.PeekAll(name)
	if len(values) != 1 || len(values[0]) == 0 {
		return nil, false
	}
	return values[0], true
}

// forwardedAddr walks to the client as NGINX does.
func (b *bound) forwardedAddr(peer netip.Addr, h *fasthttp.RequestHeader) netip.Addr {
	name := string(b.policy.Client.Header)
	if name == "" || b.policy.Client.ProxyProtocol {
		name = "X-Forwarded-For"
	}
	var values []string
	for _, v := range h.PeekAll(name) {
		values = append(values, string(v))
	}
	return b.policy.ClientAddress(peer, values)
}

// retries tells whether the client says that this is a retry, by any of the headers
// that the rendered configuration knows.
func retries(h *fasthttp.RequestHeader) bool {
	for _, name := range []string{"X-Retry-Attempt", "Retry-Attempt", "X-Stainless-Retry-Count"} {
		if n, err := strconv.ParseUint(string(h.Peek(name)), 10, 32); err == nil && n > 0 {
			return true
		}
	}
	return false
}

// readValues takes the credentials and values that the policy names out of the
// client's own headers, cookies and query, under the names that NGINX gives them.
func (b *bound) readValues(r *Request, h *fasthttp.RequestHeader) {
	set := func(prefix string, name, value []byte) {
		if field := fieldName(prefix, string(name)); b.reads(field) && r.value(field) == nil {
			r.Set(field, value)
		}
	}
	for name, value := range h.All() {
		if len(name) >= 9 && foldEqual(name[:9], "X-Sluice-") {
			continue
		}
		if len(h.PeekAll(string(name))) > 1 {
			value = []byte(policies.InvalidCredential) // which of them counts is nobody's to choose
		}
		set("", name, value)
		set(policies.HeaderValuePrefix, name, value)
	}
	for _, line := range h.PeekAll(fasthttp.HeaderCookie) {
		for pair := range bytes.SplitSeq(line, []byte(";")) {
			name, value, _ := bytes.Cut(bytes.TrimSpace(pair), []byte("="))
			set(policies.HeaderCookiePrefix, name, value)
		}
	}
	_, query, _ := bytes.Cut(r.URI, []byte("?"))
	query, _, _ = bytes.Cut(query, []byte("#"))
	for pair := range bytes.SplitSeq(query, []byte("&")) {
		name, value, _ := bytes.Cut(pair, []byte("="))
		set(policies.HeaderQueryPrefix, name, value)
	}
	set(policies.HeaderServer, nil, []byte(hostName(r.Host)))
}

// reads tells whether the policy looks at a field. A certificate is NGINX's to show.
func (b *bound) reads(field []byte) bool {
	for i := range b.sources {
		if b.sources[i].Kind != policies.SourceCert && bytes.Equal(b.sources[i].field, field) {
			return true
		}
	}
	for _, rules := range b.plans {
		if readsAny(rules, field) {
			return true
		}
	}
	for i := range b.routes {
		if readsAny(b.routes[i].rules, field) {
			return true
		}
	}
	return readsAny(b.top, field)
}

func readsAny(rules []rule, field []byte) bool {
	for i := range rules {
		for j := range rules[i].dims {
			if bytes.Equal(rules[i].dims[j].field, field) {
				return true
			}
		}
	}
	return false
}

// forwardProblem is the body of a denial.
type forwardProblem struct {
	Problem
	RetryAfter int64  `json:"retry_after,omitempty"` // seconds
	Limit      string `json:"limit,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// writeForward answers with the true status. Who asks for the application is told in
// headers that are always there, so that a client's own under these names are
// overwritten where the proxy copies them.
func (d *Decision) writeForward(ctx *fasthttp.RequestCtx) {
	resp := &ctx.Response
	d.writer.header = &resp.Header
	w := &d.writer
	d.writeReason(w)
	d.writeLimits(w)
	resp.Header.Del("X-Accel-Expires")
	if d.Verdict != Deny {
		w.text(policies.HeaderDecision, "allow")
		w.text(policies.HeaderTenant, d.Tenant)
		w.text(policies.HeaderPlan, d.Plan)
		w.text(policies.HeaderPriority, string(d.Priority))
		w.text(fasthttp.HeaderCacheControl, "no-store")
		w.header = nil
		return
	}
	w.text(policies.HeaderDecision, "deny")
	p := forwardProblem{
		Problem: Problem{Type: "about:blank", Title: http.StatusText(d.Status), Status: d.Status},
		Limit:   d.Limit, Reason: d.Reason.String(),
	}
	if d.Wait > 0 {
		p.RetryAfter = d.retryAfter()
	}
	if d.bound != nil && (d.Status == http.StatusTooManyRequests || d.Status == http.StatusPaymentRequired) {
		p.Detail = d.bound.message(p.RetryAfter)
	}
	w.header = nil
	writeApp(ctx, d.Status, "application/problem+json", p)
}

// message is the policy's own, in its first language; one that wants a time and has
// none is left out.
func (b *bound) message(retry int64) string {
	r := &b.policy.Responses
	if len(r.Languages) == 0 {
		return ""
	}
	text := r.Messages[r.Languages[0]]
	if retry <= 0 && strings.Contains(text, "{retry_after}") {
		return ""
	}
	return strings.ReplaceAll(text, "{retry_after}", strconv.FormatInt(retry, 10))
}
