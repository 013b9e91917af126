package authz

import (
	"bytes"
	"crypto/rand"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"sluice/policies"
	"sluice/policies/edge"
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
// who asks must be one of the policy's trusted proxies. What NGINX does before it
// asks is done here (gate.go). A request gets an id of ours, by which the application
// tells of its end: a client could write one and be charged once for many.
func (h *handler) forward(ctx *fasthttp.RequestCtx) {
	defer h.rescueApp(ctx)
	b := h.engine.state.Load()
	if b == nil {
		appProblem(ctx, http.StatusServiceUnavailable, "there is no policy yet")
		return
	}
	var p passage
	if status, problem := b.readForward(&p.from, ctx); problem != "" {
		appProblem(ctx, status, problem)
		return
	}
	x := h.exchanges.Get().(*exchange)
	defer func() { x.request.Reset(); h.exchanges.Put(x) }()
	x.request.Reset()
	s := h.engine.gateOf(b, h.engine.places.Load())
	h.pass(s, &p, x)
	h.denials.note(&x.decision)
	x.decision.writeForward(ctx, x.request.ID, s.words, p.from.Get(fasthttp.HeaderAccept), p.from.Get(fasthttp.HeaderAcceptLanguage))
}

// pass decides about a request: the gate, and then the limits as for NGINX. Where
// NGINX would ask nothing, nothing is asked.
func (h *handler) pass(s *gateState, p *passage, x *exchange) {
	if !h.enter(s, p, &x.decision) {
		return
	}
	if !h.shape(p.visit.Delay) {
		h.engine.turnAway(s, &p.visit, ReasonOverload, http.StatusServiceUnavailable, &x.decision)
		return
	}
	if _, asks := s.model.Asks(&p.visit); !asks {
		x.decision.reset(s.bound)
		return
	}
	p.tell(s, &x.request)
	h.decide(x)
}

// shape holds a request for as long as limit_req would. It tells whether there was
// room for one more to be held.
func (h *handler) shape(delay time.Duration) bool {
	if delay <= 0 {
		return true
	}
	defer h.held.Add(-1)
	if h.held.Add(1) > maxHeld {
		return false
	}
	time.Sleep(delay)
	return true
}

// tell makes the question that NGINX would ask about a visit.
func (p *passage) tell(s *gateState, r *Request) {
	v := &p.visit
	r.Reset()
	r.Mode, r.forwarded = policies.FailClosed, true
	r.Method, r.URI, r.Host = []byte(p.from.Method), []byte(p.from.URI), []byte(v.Host)
	if v.Client.IsValid() {
		r.IP = []byte(v.Client.String())
	}
	if s.bound.settles {
		r.ID = []byte(rand.Text())
	}
	for _, f := range s.model.Tell(nil, v) {
		r.Set(fieldName("", f.Name), []byte(f.Value))
	}
}

// readForward reads what a proxy says of a client's request; what is wrong with it
// is returned in words, with a status that lets nobody pass.
func (b *bound) readForward(r *edge.Request, ctx *fasthttp.RequestCtx) (status int, problem string) {
	if !b.trusts(ctx.RemoteAddr()) {
		return http.StatusForbidden, "who asks here is a proxy that client_ip.trusted_proxies names; this one is not among them"
	}
	head := &ctx.Request.Header
	uri := head.RequestURI()[len(forwardPath):]
	below := len(uri) > 0 && uri[0] == '/'
	method, host := head.Method(), head.Host()
	if !below {
		var one [3]bool
		method, one[0] = only(head, "X-Forwarded-Method")
		uri, one[1] = only(head, "X-Forwarded-Uri")
		host, one[2] = only(head, "X-Forwarded-Host")
		if one != [3]bool{true, true, true} {
			return http.StatusBadRequest, "want one X-Forwarded-Method, X-Forwarded-Uri and X-Forwarded-Host each of the proxy's, or the client's path behind " + forwardPath
		}
	}
	if _, ok := policies.NormalizePath(nil, uri); !ok || uri[0] != '/' {
		return http.StatusBadRequest, "the client's path cannot be read"
	}
	r.Method, r.URI, r.Host = string(method), string(uri), string(host)
	return b.readClient(r, head, below)
}

// readClient reads the client's headers, and who connected to the proxy.
func (b *bound) readClient(r *edge.Request, head *fasthttp.RequestHeader, below bool) (status int, problem string) {
	hops := texts(head.PeekAll(fasthttp.HeaderXForwardedFor))
	peer, rest, ok := policies.LastHop(hops)
	if ok && below && anyContains(b.policy.Client.Trusted, peer.Unmap()) {
		// Envoy adds its own address behind those that it has told of already.
		if before, further, more := policies.LastHop(rest); more {
			peer, rest = before, further
		}
	}
	if !ok {
		return http.StatusBadRequest, "want the address that connected to the proxy, as the last one of X-Forwarded-For"
	}
	r.Peer = peer
	lines := 0
	for name, value := range head.All() {
		if lines++; lines > maxFields {
			return http.StatusRequestHeaderFieldsTooLarge, "the client sent too many headers"
		}
		if !spoken(name) {
			r.Header = addField(r.Header, string(name), string(value))
		}
	}
	for _, line := range rest {
		r.Header = append(r.Header, edge.Field{Name: fasthttp.HeaderXForwardedFor, Value: line})
	}
	return 0, ""
}

// spoken tells whether a header means something here that no client may say: names
// of ours, and those that stand for what a proxy tells.
func spoken(name []byte) bool {
	ours := len(name) >= 9 && foldEqual(name[:9], "X-Sluice-")
	return ours || foldEqual(name, fasthttp.HeaderXForwardedFor) || foldEqual(name, edge.ProxyProtocol)
}

// addField adds a header. Which of two with one name counts is nobody's to choose:
// they are one value, and no credential then.
func addField(fields []edge.Field, name, value string) []edge.Field {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, name) {
			fields[i].Value += ", " + value
			return fields
		}
	}
	return append(fields, edge.Field{Name: name, Value: value})
}

func texts(values [][]byte) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

// trusts tells whether a peer may speak for clients: a trusted proxy, or whoever
// the permissions of a unix socket let connect.
func (b *bound) trusts(a net.Addr) bool {
	if a.Network() == "unix" {
		return true
	}
	tcp, ok := a.(*net.TCPAddr)
	return ok && anyContains(b.policy.Client.Trusted, tcp.AddrPort().Addr().Unmap().WithZone(""))
}

// only is a header that came once, and says something.
func only(h *fasthttp.RequestHeader, name string) ([]byte, bool) {
	values := h.PeekAll(name)
	if len(values) != 1 || len(values[0]) == 0 {
		return nil, false
	}
	return values[0], true
}
