package authz

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
	"sluice/policies"
)

// safeBuffer is a buffer that a server may log to while a test reads it.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// running is a server of a test's own.
type running struct {
	addr net.Addr
	log  *safeBuffer
	stop func() error // waits for the server's end
}

func start(t *testing.T, e *Engine, o ServeOptions) *running {
	t.Helper()
	r := &running{log: new(safeBuffer)}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	o.Log = slog.New(slog.NewJSONHandler(r.log, nil))
	ready := make(chan net.Addr, 1)
	o.Ready = func(a net.Addr) { ready <- a }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, e, o) }()
	select {
	case r.addr = <-ready:
	case err := <-done:
		cancel()
		t.Fatalf("Serve: %v", err)
	}
	r.stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// exchange writes bytes and reads one answer. It fails after five seconds.
func (r *running) exchange(t *testing.T, text string) (*http.Response, net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial(r.addr.Network(), r.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatalf("no answer to %.80q: %v", text, err)
	}
	return resp, conn, reader
}

func memoryEngine(t *testing.T, policy string, store limit.Store) *Engine {
	t.Helper()
	e := New(store, Options{Log: slog.New(slog.DiscardHandler)})
	if err := e.Swap(compile(t, policy)); err != nil {
		t.Fatal(err)
	}
	return e
}

func newMemory() *limit.Memory { return limit.NewMemory(limit.MemoryOptions{}) }

const ask = "GET /_sluice/open/rest HTTP/1.1\r\nHost: a\r\nX-Sluice-Ip: 192.0.2.1\r\nX-Sluice-Method: GET\r\n"

func TestServeOverKeptAliveConnections(t *testing.T) {
	r := start(t, memoryEngine(t, shop, newMemory()), ServeOptions{})
	resp, conn, reader := r.exchange(t, ask+"\r\n")
	for i := range 10 {
		want := 204
		if i > 2 {
			want = 403
		}
		if resp.StatusCode != want || resp.Close || resp.StatusCode == 403 && resp.ContentLength != 0 {
			t.Fatalf("answer %d: status %d, close %t, length %d; want %d on a connection that is kept", i, resp.StatusCode, resp.Close, resp.ContentLength, want)
		}
		if _, err := io.WriteString(conn, ask+"\r\n"); err != nil {
			t.Fatal(err)
		}
		var err error
		if resp, err = http.ReadResponse(reader, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsNoQuestion(t *testing.T) {
	r := start(t, memoryEngine(t, shop, newMemory()), ServeOptions{})
	f := func(request string, want int) {
		t.Helper()
		if resp, _, _ := r.exchange(t, request); resp.StatusCode != want {
			t.Errorf("%.60q: status %d, want %d", request, resp.StatusCode, want)
		}
	}
	f("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 404)
	f("GET /_sluice/rest HTTP/1.1\r\nHost: a\r\n\r\n", 404)
	f("GET /_sluice/ajar/rest HTTP/1.1\r\nHost: a\r\n\r\n", 404)
	f("GET /_sluice/open/ HTTP/1.1\r\nHost: a\r\n\r\n", 404)
	f("GET /_sluice/open/a/b HTTP/1.1\r\nHost: a\r\n\r\n", 404)
	f("GET /_sluice/open/rest?x=/ HTTP/1.1\r\nHost: a\r\nX-Sluice-Ip: 192.0.2.1\r\n\r\n", 204)
	f("HEAD /_sluice/open/rest HTTP/1.1\r\nHost: a\r\nX-Sluice-Ip: 192.0.2.1\r\n\r\n", 204)
	f("POST /_sluice/open/rest HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 405)
	f("GET /_sluice/open/rest HTTP/1.1\r\nHost: a\r\nX-Big: "+strings.Repeat("x", 70<<10)+"\r\n\r\n", 431)
	f("GET /_sluice/open/rest HTTP/1.1\r\nHost: a\r\nX-Large: "+strings.Repeat("x", 60<<10)+"\r\nX-Sluice-Ip: 192.0.2.1\r\n\r\n", 204)
}

// A question may announce a body that never comes: it is answered at once.
func TestBodiesAreNotAwaited(t *testing.T) {
	r := start(t, memoryEngine(t, shop, newMemory()), ServeOptions{})
	for _, announced := range []string{
		"Content-Length: 50\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length: 50\r\nExpect: 100-continue\r\n",
		"Content-Length: 1000000000000\r\n", "Content-Length: 50\r\nContent-Type: multipart/form-data; boundary=b\r\n",
	} {
		start := time.Now()
		request := strings.Replace(ask, "192.0.2.1", "198.51.100."+fmt.Sprint(len(announced)), 1) + announced + "\r\n"
		resp, _, _ := r.exchange(t, request)
		if took := time.Since(start); resp.StatusCode != 204 || took > 2*time.Second || !resp.Close {
			t.Errorf("%q: status %d after %s, close %t; want 204 at once, and the end of the connection", announced, resp.StatusCode, took, resp.Close)
		}
	}
}

// Of many clients at once exactly as many pass as the bucket holds.
func TestBurstIsExactOverHTTP(t *testing.T) {
	clock := limittest.NewClock()
	store := limit.NewMemory(limit.MemoryOptions{Now: clock.Now})
	burstIsExact(t, []*running{start(t, memoryEngine(t, hundred, store), ServeOptions{})})
}

func TestBurstIsExactOverInstancesAndRedis(t *testing.T) {
	addr := limittest.StartRedis(t)
	clock := limittest.NewClock()
	var instances []*running
	for range 3 {
		store, err := limit.OpenRedis("redis://"+addr, limit.RedisOptions{Now: clock.Now, Grace: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		instances = append(instances, start(t, memoryEngine(t, hundred, store), ServeOptions{}))
	}
	burstIsExact(t, instances)
}

const hundred = "limits: {l: {per: ip, rate: 1/h, burst: 100}}\nroutes: [{name: rest, match: {prefix: /}}]\n"

func burstIsExact(t *testing.T, instances []*running) {
	t.Helper()
	var passed, denied, other atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for j := range 10 {
				addr := instances[(i+j)%len(instances)].addr.String()
				req, _ := http.NewRequest("GET", "http://"+addr+"/_sluice/closed/rest", nil)
				req.Header.Set(policies.HeaderIP, "192.0.2.1")
				resp, err := client.Do(req)
				switch {
				case err != nil:
					other.Add(1)
					continue
				case resp.StatusCode == 204:
					passed.Add(1)
				case resp.StatusCode == 403 && resp.Header.Get(policies.HeaderStatus) == "429":
					denied.Add(1)
				default:
					other.Add(1)
				}
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	if passed.Load() != 100 || denied.Load() != 540 {
		t.Errorf("%d passed, %d denied, %d neither; want 100, 540, 0", passed.Load(), denied.Load(), other.Load())
	}
}

// Who is no peer is not answered, and leaves a line in the log.
func TestPeers(t *testing.T) {
	r := start(t, memoryEngine(t, shop, newMemory()), ServeOptions{Peers: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	conn, err := net.Dial("tcp", r.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = io.WriteString(conn, ask+"\r\n")
	if n, err := conn.Read(make([]byte, 1)); n != 0 || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a stranger was answered: %d bytes, %v", n, err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(r.log.String(), `"peer":"127.0.0.1"`) {
		t.Errorf("log:\n%s", r.log)
	}
}

func TestLoopbackIsThePeer(t *testing.T) {
	r := start(t, memoryEngine(t, shop, newMemory()), ServeOptions{Listen: "[::1]:0"})
	if resp, _, _ := r.exchange(t, ask+"\r\n"); resp.StatusCode != 204 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// What is in flight when the service is told to stop is answered, and then
// nothing is.
func TestStopAnswersWhatIsInFlight(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	e := memoryEngine(t, shop, failing{func(context.Context) error {
		close(asked)
		<-release
		return limit.ErrUnavailable
	}})
	r := start(t, e, ServeOptions{})
	status := make(chan int, 1)
	go func() {
		resp, err := http.Get("http://" + r.addr.String() + "/_sluice/open/rest")
		if err != nil {
			status <- -1
			return
		}
		resp.Body.Close()
		status <- resp.StatusCode
	}()
	<-asked
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	for range 500 { // until the listener is closed
		conn, err := net.Dial("tcp", r.addr.String())
		if err != nil {
			break
		}
		conn.Close()
		time.Sleep(10 * time.Millisecond)
	}
	close(release)
	if got := <-status; got != 204 {
		t.Errorf("the request in flight got %d, want 204", got)
	}
	if err := <-stopped; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if !strings.Contains(r.log.String(), `"msg":"stopped"`) || !strings.Contains(r.log.String(), `"degraded_store_down":1`) {
		t.Errorf("log:\n%s", r.log)
	}
}

// The log names every denial until there are too many in a second; the others
// are counted.
func TestDenialsInAStorm(t *testing.T) {
	r := start(t, memoryEngine(t, shop, newMemory()), ServeOptions{DenialsPerSecond: 5})
	client := &http.Client{}
	for range 300 {
		req, _ := http.NewRequest("GET", "http://"+r.addr.String()+"/_sluice/open/search", nil)
		req.Header.Set("X-Api-Key", "sk_a")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	client.CloseIdleConnections()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	log := r.log.String()
	if n := strings.Count(log, `"msg":"denied"`); n < 5 || n > 60 {
		t.Errorf("%d lines, want a few:\n%.2000s", n, log)
	}
	if !strings.Contains(log, `"msg":"denials not written"`) {
		t.Errorf("nothing tells of the others:\n%s", log)
	}
	for _, want := range []string{`"tenant":"globex","key":"globex-a"`, `"route":"search"`, `"limit":"speed","cost":5,"left":`, `"reason":"rate"`, `"status":429`} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log", want)
		}
	}
}
