package cmd

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice/gen/gentest"
)

// stack is what the end-to-end test runs: an application, services, NGINX.
type stack struct {
	dir      string // of nginx.conf
	policy   string
	services []*service
	app      *app
	http1    string // http://HOST:PORT
	http2    string
}

// The keys of testdata/e2e/policy.yaml.
const (
	webKey    = "sk_demo_acme_web"
	batchKey  = "sk_demo_acme_batch"
	globexKey = "sk_test_globex"
)

// startStack renders the policy into a site and starts everything. Each store
// becomes a service.
func startStack(t *testing.T, stores ...string) *stack {
	t.Helper()
	// A loaded machine may take longer than the time within which NGINX and the
	// service give up: here that would only blur what is counted.
	return startStackWaiting(t, "10s", stores...)
}

// startStackWaiting is startStack with an NGINX that waits so long for the service.
func startStackWaiting(t *testing.T, wait string, stores ...string) *stack {
	t.Helper()
	s := &stack{dir: t.TempDir(), app: startApp(t)}
	s.policy = filepath.Join(s.dir, "policy.yaml")
	hash := sha256.Sum256([]byte(globexKey))
	fill(t, "testdata/e2e/policy.yaml", s.policy, "GLOBEX", hex.EncodeToString(hash[:]))
	args := []string{"render", s.policy, "--out", s.dir, "--cache-dir", gentest.CacheDir(t)}
	for _, store := range stores {
		svc := startService(t, s.policy, store)
		s.services = append(s.services, svc)
		args = append(args, "--authz", svc.addr, "--datagrams", svc.datagrams)
	}
	run(t, args...)
	ask := filepath.Join(s.dir, "sluice/ask.conf")
	fill(t, ask, ask, "200ms", wait)

	h1, h2 := gentest.FreePort(t), gentest.FreePort(t)
	s.http1, s.http2 = "http://"+h1, "http://"+h2
	fill(t, "testdata/e2e/site.conf", filepath.Join(s.dir, "nginx.conf"), "HTTP1", h1, "HTTP2", h2, "APP", s.app.addr)
	write(t, filepath.Join(s.dir, "html/files/index.html"), "index\n")
	write(t, filepath.Join(s.dir, "html/files/fallback.html"), "fallback\n")
	gentest.Start(t, s.dir, "nginx.conf", h1, h2)
	return s
}

// fill copies a file with words replaced.
func fill(t *testing.T, from, to string, oldnew ...string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, to, strings.NewReplacer(oldnew...).Replace(string(data)))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run runs the real binary, which must succeed.
func run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("sluice", args...).CombinedOutput(); err != nil {
		t.Fatalf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// service is a running `sluice serve`.
type service struct {
	addr      string
	datagrams string
	admin     string
	cmd       *exec.Cmd
	log       *logLines
}

func startService(t testing.TB, policy, store string) *service {
	t.Helper()
	return startServiceOn(t, "127.0.0.1:0", policy, store)
}

func startServiceOn(t testing.TB, listen, policy, store string, flags ...string) *service {
	t.Helper()
	cmd := exec.Command("sluice", append([]string{"serve", policy, "--listen", listen, "--store", store, "--deadline", "10s", "--datagrams", "127.0.0.1:0",
		"--admin", "127.0.0.1:0", "--token-file", filepath.Join(t.TempDir(), "token")}, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &service{cmd: cmd, log: follow(stderr)}
	t.Cleanup(s.stop)
	s.datagrams = fmt.Sprint(s.log.await(t, "hearing")["datagrams"])
	s.admin = "http://" + fmt.Sprint(s.log.await(t, "admin")["listen"])
	s.addr = fmt.Sprint(s.log.await(t, "serving")["listen"])
	return s
}

// stop ends the service as an operator does, and waits for it.
func (s *service) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.wait()
}

// wait waits until the service has ended, and all that it said is in its log: Wait
// closes the pipe.
func (s *service) wait() error {
	<-s.log.ended
	return s.cmd.Wait()
}

// logLines are the lines of a service's JSON log.
type logLines struct {
	mu    sync.Mutex
	lines []map[string]any
	raw   strings.Builder
	ended chan struct{} // closed when nobody writes any more
}

func follow(r io.Reader) *logLines {
	l := &logLines{ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			line := map[string]any{}
			_ = json.Unmarshal(scan.Bytes(), &line)
			l.mu.Lock()
			l.lines = append(l.lines, line)
			l.raw.WriteString(scan.Text() + "\n")
			l.mu.Unlock()
		}
	}()
	return l
}

func (l *logLines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.raw.String()
}

// await waits for a line with this message and returns the first.
func (l *logLines) await(t testing.TB, msg string) map[string]any {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		for _, line := range l.lines {
			if line["msg"] == msg {
				l.mu.Unlock()
				return line
			}
		}
		l.mu.Unlock()
	}
	t.Fatalf("the log has no %q:\n%s", msg, l.text())
	return nil
}

// app is the application behind NGINX: it answers what the query asks for, and
// remembers what it saw.
type app struct {
	addr string
	mu   sync.Mutex
	seen int
	last http.Header
}

func startApp(t *testing.T) *app {
	a := &app{}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	a.addr = server.Listener.Addr().String()
	return a
}

func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.seen++
	a.last = r.Header.Clone()
	a.mu.Unlock()
	if r.Header.Get("Upgrade") == "websocket" {
		a.upgrade(w)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("RateLimit", `"the-app";r=1`)
	if cost := r.URL.Query().Get("cost"); cost != "" {
		w.Header().Set("X-Cost", cost)
	}
	if d, err := time.ParseDuration(r.URL.Query().Get("sleep")); err == nil {
		time.Sleep(d)
	}
	if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
		w.WriteHeader(status)
	}
	fmt.Fprintf(w, "the app's own page\n")
}

// upgrade answers a WebSocket handshake and echoes what comes.
func (a *app) upgrade(w http.ResponseWriter) {
	conn, rw, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	_ = rw.Flush()
	_, _ = io.Copy(conn, rw)
}

// requests is how many requests reached the application.
func (a *app) requests() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}

// header is a header of the last request that reached it.
func (a *app) header(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last.Get(name)
}

// answer is a response read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends one request. Headers are name, value, name, value.
func ask(t *testing.T, client *http.Client, method, url string, headers ...string) answer {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(body)}
}

// clients are an HTTP/1.1 client and one that speaks HTTP/2 without TLS.
func clients() (http1, http2 *http.Client) {
	only2 := new(http.Protocols)
	only2.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: &http.Transport{}}, &http.Client{Transport: &http.Transport{Protocols: only2}}
}

// dial opens a bare connection to NGINX.
func (s *stack) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.http1, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}
