package gentest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Authz stands in for the service. It allows everything, until Answer says
// something else, and remembers what it was asked.
type Authz struct {
	Addr string

	mu     sync.Mutex
	asked  []http.Header
	paths  []string
	answer func(path string, h http.Header) Answer
}

// Answer is what the stand-in answers.
type Answer struct {
	Code    int               // 204 when zero
	Headers map[string]string // besides X-Sluice-Decision, which the code gives
	Bare    bool              // no X-Sluice-Decision: not the service at all
	Wait    time.Duration     // before it answers
}

// Deny is a denial with a true status and headers.
func Deny(status int, headers ...string) Answer {
	a := Answer{Code: 403, Headers: map[string]string{"X-Sluice-Status": strconv.Itoa(status)}}
	for i := 0; i+1 < len(headers); i += 2 {
		a.Headers[headers[i]] = headers[i+1]
	}
	return a
}

// StartAuthz starts a stand-in for the service on a free port, or on the
// address given.
func StartAuthz(t testing.TB, addr ...string) *Authz {
	t.Helper()
	a := &Authz{}
	a.Addr = serve(t, http.HandlerFunc(a.serve), addr...)
	return a
}

// Answers sets how questions are answered from now on.
func (a *Authz) Answers(f func(path string, h http.Header) Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

// Asked returns the paths and headers of the questions since the last call.
func (a *Authz) Asked() (paths []string, headers []http.Header) {
	a.mu.Lock()
	defer a.mu.Unlock()
	paths, headers = a.paths, a.asked
	a.paths, a.asked = nil, nil
	return paths, headers
}

func (a *Authz) serve(w http.ResponseWriter, r *http.Request) {
	h := r.Header.Clone()
	h.Set("Method", r.Method)
	h.Set("Body-Length", strconv.FormatInt(r.ContentLength, 10))
	a.mu.Lock()
	a.paths, a.asked = append(a.paths, r.URL.Path), append(a.asked, h)
	answer := a.answer
	a.mu.Unlock()
	var out Answer
	if answer != nil {
		out = answer(r.URL.Path, h)
	}
	time.Sleep(out.Wait)
	if out.Code == 0 {
		out.Code = 204
	}
	if !out.Bare {
		decision := "allow"
		if out.Code >= 300 {
			decision = "deny"
		}
		w.Header().Set("X-Sluice-Decision", decision)
	}
	for k, v := range out.Headers {
		w.Header().Set(k, v)
	}
	if out.Code != 204 {
		w.Header().Set("Content-Length", "0")
	}
	w.WriteHeader(out.Code)
}

// App stands in for the application. It answers with what it was sent; the
// parameters status and header of the query choose its answer.
type App struct {
	Addr string

	mu       sync.Mutex
	requests []http.Header
}

// StartApp starts a stand-in for the application on a free port.
func StartApp(t testing.TB) *App {
	t.Helper()
	a := &App{}
	a.Addr = serve(t, http.HandlerFunc(a.serve))
	return a
}

// Requests returns the headers of the requests since the last call.
func (a *App) Requests() []http.Header {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.requests
	a.requests = nil
	return r
}

func (a *App) serve(w http.ResponseWriter, r *http.Request) {
	// A body that ends early is the client's matter.
	n, _ := io.Copy(io.Discard, r.Body)
	h := r.Header.Clone()
	h.Set("Host", r.Host)
	a.mu.Lock()
	a.requests = append(a.requests, h)
	a.mu.Unlock()
	q := r.URL.Query()
	if r.Header.Get("Upgrade") == "websocket" {
		upgrade(w)
		return
	}
	if wait, err := time.ParseDuration(q.Get("wait")); err == nil {
		time.Sleep(wait)
	}
	w.Header().Set("RateLimit", "the application's")
	if redirect := q.Get("redirect"); redirect != "" {
		w.Header().Set("X-Accel-Redirect", redirect)
	}
	if status, err := strconv.Atoi(q.Get("status")); err == nil {
		w.WriteHeader(status)
	}
	// The client may be gone.
	_, _ = fmt.Fprintf(w, "app %s %s body=%d\n", r.Method, r.RequestURI, n)
}

// upgrade switches protocols and echoes one line.
func upgrade(w http.ResponseWriter) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	_ = rw.Flush()
	line, err := rw.ReadString('\n')
	if err != nil {
		return
	}
	_, _ = rw.WriteString("echo " + line)
	_ = rw.Flush()
}

// serve runs a handler until the test ends.
func serve(t testing.TB, h http.Handler, addr ...string) string {
	t.Helper()
	where := "127.0.0.1:0"
	if len(addr) > 0 {
		where = addr[0]
	}
	l, err := net.Listen("tcp", where)
	if err != nil {
		t.Fatalf("cannot listen on %s: %v", where, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		// It ends when the test closes it.
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}
