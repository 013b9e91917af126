package authz

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

const (
	// adminConns are how many connections the admin port has room for: a flood of
	// them must not take the file descriptors of decisions.
	adminConns = 128
	// adminHead and adminBody are the largest head and body of a request, in bytes.
	adminHead, adminBody = 16 << 10, 64 << 10
	// adminHeadTimeout is how long a head may take, and adminReadTimeout a request.
	adminHeadTimeout, adminReadTimeout = 5 * time.Second, 10 * time.Second
	// adminWriteTimeout is longer than reading a large policy takes.
	adminWriteTimeout = time.Minute
	adminIdleTimeout  = time.Minute
	// adminGrace is how long answers under way may take when the service ends.
	adminGrace = 2 * time.Second
	// adminScrapes are how many scrapes may be under way at once.
	adminScrapes = 4
)

// AdminOptions are the choices of an Admin.
type AdminOptions struct {
	Engine *Engine
	// Reloader is what POST /-/reload uses.
	Reloader *Reloader
	// Registry is what /metrics shows.
	Registry *prometheus.Registry
	// Tokens are who may do what; nil: nobody has one.
	Tokens *Tokens
	// Store is the kind of the store, never its URL.
	Store   string
	Version string
	// Audit gets every change before it is made; nil: Log does.
	Audit *Audit
	// Log gets what changes, and by whom; nil: slog.Default.
	Log *slog.Logger
	// Explain tells a request's way, as JSON, with the counters as they are; nil:
	// nobody does. Its error may be a Mistake.
	Explain func(ExplainAsked) (any, error)
}

// Admin is the port for those who watch and run the service. Decisions do not
// need it: when it is away, they go on.
type Admin struct {
	AdminOptions
	mux      *http.ServeMux
	patterns []string // that mux has
	started  time.Time
	serving  atomic.Bool // decisions are answered
	stopping atomic.Bool
	refusals prometheus.Counter
	warned   atomic.Int64 // when a refusal was logged, Unix seconds

	mu        sync.Mutex
	listeners map[string]string
}

// NewAdmin makes an admin port. It is not ready until Serving is called.
func NewAdmin(o AdminOptions) *Admin {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Tokens == nil {
		o.Tokens = new(Tokens)
	}
	if o.Audit == nil {
		o.Audit = &Audit{log: o.Log}
	}
	a := &Admin{AdminOptions: o, mux: http.NewServeMux(), started: time.Now(), listeners: map[string]string{}}
	a.refusals = prometheus.NewCounter(prometheus.CounterOpts{Name: "sluice_admin_refused_total", Help: "Requests of the admin port from those who may not make them."})
	o.Registry.MustRegister(a.refusals)
	a.Handle("GET /metrics", promhttp.HandlerFor(o.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: adminScrapes}))
	a.Handle("GET /-/status", http.HandlerFunc(a.status))
	a.Handle("POST /-/reload", http.HandlerFunc(a.reload))
	a.Handle("GET /openapi.yaml", http.HandlerFunc(a.describe))
	a.operations()
	if o.Explain != nil {
		a.Handle("POST "+explainPath, http.HandlerFunc(a.explain))
	}
	return a
}

// Handle adds a handler for a pattern of http.ServeMux, before Serve. GET and
// HEAD are for those who may read, and so is explainPath; all other methods for
// those who may write. Caller tells who it is.
func (a *Admin) Handle(pattern string, h http.Handler) {
	a.mux.Handle(pattern, h)
	a.patterns = append(a.patterns, pattern)
}

// Listening says where something listens, for /-/status.
func (a *Admin) Listening(what string, addr net.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners[what] = addr.Network() + ":" + addr.String()
}

// Serving says that decisions are answered at an address.
func (a *Admin) Serving(addr net.Addr) {
	a.Listening("authz", addr)
	a.serving.Store(true)
}

// Stopping says that no more connections are taken: whoever balances load should
// send none.
func (a *Admin) Stopping() { a.stopping.Store(true) }

// Handler is everything the port answers.
func (a *Admin) Handler() http.Handler {
	open := http.NewServeMux()
	open.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, http.StatusOK, map[string]bool{"ok": true}) })
	open.HandleFunc("GET /readyz", a.ready)
	open.Handle("/", guard{a.Tokens, a.refused}.wrap(problems(a.mux)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		r.Body = http.MaxBytesReader(w, r.Body, adminBody)
		open.ServeHTTP(w, r)
	})
}

// Serve answers on a listener until ctx ends, and closes it.
func (a *Admin) Serve(ctx context.Context, ln net.Listener) error {
	server := &http.Server{
		Handler:           a.Handler(),
		MaxHeaderBytes:    adminHead,
		ReadHeaderTimeout: adminHeadTimeout,
		ReadTimeout:       adminReadTimeout,
		WriteTimeout:      adminWriteTimeout,
		IdleTimeout:       adminIdleTimeout,
		ErrorLog:          slog.NewLogLogger(a.Log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(netutil.LimitListener(ln, adminConns)) }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot serve the admin port on %q: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), adminGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return server.Close()
	}
	return nil
}

// isReady tells whether the service should be asked. A store that is away does
// not count: on_store_down decides then, by this instance as by any other, and
// if all said they are not ready, nobody would identify anybody.
func (a *Admin) isReady() bool {
	return a.serving.Load() && !a.stopping.Load() && a.Engine.Policy() != nil
}

func (a *Admin) ready(w http.ResponseWriter, _ *http.Request) {
	answer := struct {
		Ready    bool   `json:"ready"`
		Why      string `json:"why,omitempty"`
		Degraded bool   `json:"store_degraded"`
	}{Ready: a.isReady(), Degraded: a.Engine.storeTrouble.now(time.Now())}
	status := http.StatusOK
	if !answer.Ready {
		status = http.StatusServiceUnavailable
		switch {
		case a.stopping.Load():
			answer.Why = "it is stopping"
		case !a.serving.Load():
			answer.Why = "it is starting"
		default:
			answer.Why = "no policy is in force"
		}
	}
	WriteJSON(w, status, answer)
}

func (a *Admin) status(w http.ResponseWriter, _ *http.Request) {
	now := time.Now()
	a.mu.Lock()
	listeners := map[string]string{}
	for what, addr := range a.listeners {
		listeners[what] = addr
	}
	a.mu.Unlock()
	WriteJSON(w, http.StatusOK, Status{
		Version: a.Version, Started: a.started.UTC(), Uptime: int64(now.Sub(a.started) / time.Second),
		Ready: a.isReady(), Policy: a.Engine.policyStatus(), Reload: a.Reloader.report(),
		Skew: a.Engine.skewStatus(), Store: a.Engine.storeStatus(a.Store, now),
		Forward: a.Engine.forwardStatus(), Databases: a.Engine.databases(), Listeners: listeners, Panics: a.Engine.counters.panics.Load(),
	})
}

func (a *Admin) reload(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		WriteBodyProblem(w, err)
		return
	}
	a.Log.Info("reloading", "by", Caller(r))
	var err error
	if audit := a.change(r, AuditEntry{Action: "reload"}, func() error { err = a.Reloader.Reload(); return err }); audit != nil && err == nil {
		a.fail(w, audit)
		return
	}
	if err != nil {
		writeProblem(w, Problem{
			Status: http.StatusUnprocessableEntity, Detail: err.Error() + "; the last good policy serves",
			Findings: findings(a.Reloader.Status().Findings),
		})
		return
	}
	WriteJSON(w, http.StatusOK, a.Engine.policyStatus())
}

// refused counts who was turned away, and logs one a second: whoever guesses
// tokens must not fill the log. Nothing of what he sent is in it.
func (a *Admin) refused(r *http.Request, status int) {
	a.refusals.Inc()
	if last, now := a.warned.Load(), time.Now().Unix(); last != now && a.warned.CompareAndSwap(last, now) {
		a.Log.Warn("admin: refused", "status", status, "peer", r.RemoteAddr)
	}
}

// WriteBodyProblem answers somebody whose body could not be read.
func WriteBodyProblem(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		WriteProblem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit))
		return
	}
	WriteProblem(w, http.StatusBadRequest, "the body could not be read")
}

// problems turns the mux's own answers, 404 and 405 in plain text, into problems.
func problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		var probe muxAnswer
		mux.ServeHTTP(&probe, r)
		if allow := probe.Header().Get("Allow"); allow != "" {
			w.Header().Set("Allow", allow)
		}
		detail := "no such page"
		if probe.status == http.StatusMethodNotAllowed {
			detail = "no such method here"
		}
		WriteProblem(w, max(probe.status, http.StatusBadRequest), detail)
	})
}

// muxAnswer hears what a mux says when it has no handler.
type muxAnswer struct {
	header http.Header
	status int
}

func (p *muxAnswer) Header() http.Header {
	if p.header == nil {
		p.header = http.Header{}
	}
	return p.header
}
func (p *muxAnswer) Write(b []byte) (int, error) { return len(b), nil }
func (p *muxAnswer) WriteHeader(status int)      { p.status = status }
