package authz

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// maxHead is how large the head of a question may be, in bytes. NGINX sends
	// what its own buffers held; a larger head would be answered 431, which no
	// configuration of ours takes for an allow.
	maxHead = 64 << 10
	// readTimeout is how long the rest of a head may take once it has begun, and
	// how long a new connection may say nothing.
	readTimeout = 5 * time.Second
	// idleTimeout is longer than NGINX keeps idle connections (60 s), so that it
	// is NGINX who closes them, and no question meets a closed one.
	idleTimeout = 90 * time.Second
	// maxHeld is how many answers may be under way at once before nothing more is
	// held for tokens to come.
	maxHeld = 4096
	// writeTimeout bounds a peer that does not read its answers.
	writeTimeout = 5 * time.Second
	// defaultGrace is how long Serve waits for requests in flight.
	defaultGrace = 10 * time.Second
)

// ServeOptions are the choices of Serve.
type ServeOptions struct {
	// Listen is unix:PATH or HOST:PORT. It is not used when Listener is set.
	Listen string
	// Listener is where to accept; Serve closes it.
	Listener net.Listener
	// Peers are who may ask over TCP; nil: LoopbackPeers.
	Peers []netip.Prefix
	// Ready is called once with the address, when connections are accepted.
	Ready func(net.Addr)
	// Log gets one line for each denial, and what happens to the server; nil:
	// slog.Default.
	Log *slog.Logger
	// DenialsPerSecond is how many denials are written in a second; the rest is
	// counted in a line of its own. 100 if 0.
	DenialsPerSecond int
	// Grace is how long requests in flight may take when ctx ends; 10 s if 0.
	Grace time.Duration
}

// Serve answers NGINX until ctx ends. It then accepts no more, answers what is
// in flight, and writes the log lines that wait. The error is that of listening,
// or tells what was cut off.
func Serve(ctx context.Context, e *Engine, o ServeOptions) error {
	log := o.Log
	if log == nil {
		log = slog.Default()
	}
	ln := o.Listener
	if ln == nil {
		var err error
		if ln, err = Listen(ctx, o.Listen); err != nil {
			return err
		}
	}
	denials := newDenialLog(log, o.DenialsPerSecond)
	defer denials.close()
	h := newHandler(e, denials)
	server := newServer(h, log)
	peers := o.Peers
	if peers == nil {
		peers = LoopbackPeers()
	}
	failed := make(chan error, 1)
	go func() {
		failed <- server.Serve(&peerListener{Listener: ln, peers: peers, refused: denials.stranger})
	}()
	log.Info("serving", "listen", ln.Addr().String(), "network", ln.Addr().Network())
	if lacks := e.forwardStatus().NotApplied; len(lacks) > 0 {
		log.Info("a proxy that asks at "+forwardPath+" has less than NGINX", "not_applied", lacks)
	}
	if o.Ready != nil {
		o.Ready(ln.Addr())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve on %q: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	return h.farewell(server, ln, failed, o.Grace, log)
}

func newServer(h *handler, log *slog.Logger) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      h.serve,
		ConnState:                    h.connected,
		HeaderReceived:               dropBody,
		ReadBufferSize:               maxHead,
		WriteBufferSize:              4 << 10,
		ReadTimeout:                  readTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxRequestBodySize:           1,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultDate:                true,
		NoDefaultContentType:         true,
		CloseOnShutdown:              true,
		LazyRequestTime:              true,
		SecureErrorLogMessage:        true,
		Logger:                       serverLog{log},
	}
}

// dropBody answers a question that announces a body as if it had none: the
// subrequest inherits the client's Content-Length, not the body. What may follow
// is not read, so the connection ends with the answer. Applications may say
// something.
func dropBody(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	if bytes.HasPrefix(h.RequestURI(), []byte(appPrefix)) {
		return fasthttp.RequestConfig{MaxRequestBodySize: maxAppBody}
	}
	if n := h.ContentLength(); n > 0 || n == -1 {
		h.SetContentLength(0)
		h.Del(fasthttp.HeaderExpect)
		h.SetConnectionClose()
	}
	return fasthttp.RequestConfig{}
}

// handler answers questions with an engine.
type handler struct {
	engine    *Engine
	denials   *denialLog
	exchanges sync.Pool // of *exchange
	held      atomic.Int64
	conns     atomic.Int64 // that are open
	leaving   atomic.Bool  // each answer is its connection's last
}

// connected counts connections.
func (h *handler) connected(_ net.Conn, state fasthttp.ConnState) {
	switch state {
	case fasthttp.StateNew:
		h.conns.Add(1)
	case fasthttp.StateClosed, fasthttp.StateHijacked:
		h.conns.Add(-1)
	}
}

// exchange is one question and its answer; it is used again and again.
type exchange struct {
	request  Request
	decision Decision
}

func newHandler(e *Engine, denials *denialLog) *handler {
	return &handler{engine: e, denials: denials, exchanges: sync.Pool{New: func() any { return new(exchange) }}}
}

func (h *handler) serve(ctx *fasthttp.RequestCtx) {
	if h.leaving.Load() {
		ctx.Response.SetConnectionClose()
	}
	if bytes.HasPrefix(ctx.Request.Header.RequestURI(), []byte(appPrefix)) {
		h.app(ctx)
		return
	}
	if isForward(ctx.Request.Header.RequestURI()) {
		h.forward(ctx)
		return
	}
	if !ctx.IsGet() && !ctx.IsHead() {
		ctx.Response.SetStatusCode(fasthttp.StatusMethodNotAllowed)
		ctx.Response.Header.Set(fasthttp.HeaderAllow, "GET, HEAD")
		return
	}
	x := h.exchanges.Get().(*exchange)
	if x.request.Read(&ctx.Request.Header) {
		h.answer(x, &ctx.Response)
	} else {
		ctx.Response.SetStatusCode(fasthttp.StatusNotFound)
	}
	// The request's views end with this call, and a pool keeps what it is given.
	x.request.Reset()
	h.exchanges.Put(x)
}

func (h *handler) answer(x *exchange, resp *fasthttp.Response) {
	defer h.rescue(x, resp)
	h.decide(x)
	x.decision.Write(resp)
	h.denials.note(&x.decision)
}

// rescue answers when writing an answer panicked: fasthttp would let that end
// the process. Decide has a net of its own.
func (h *handler) rescue(x *exchange, resp *fasthttp.Response) {
	if p := recover(); p != nil {
		h.engine.panicked(p, x.request.Mode, &x.decision)
		resp.Reset()
		x.decision.Write(resp)
	}
}

// decide makes the decision, and holds it for tokens that it took ahead. The
// connection's goroutine waits, at most policies.MaxWait; how many may is bounded.
func (h *handler) decide(x *exchange) {
	defer h.held.Add(-1)
	x.request.NoRoom = h.held.Add(1) > maxHeld
	h.engine.Decide(&x.request, &x.decision)
	if x.decision.Delay > 0 {
		time.Sleep(x.decision.Delay)
	}
}

// serverLog gives fasthttp's own lines to the log. They are about connections,
// and without the content of requests (SecureErrorLogMessage).
type serverLog struct{ log *slog.Logger }

// Printf implements fasthttp.Logger.
func (l serverLog) Printf(format string, args ...any) {
	l.log.Warn("connection", "problem", fmt.Sprintf(format, args...))
}
