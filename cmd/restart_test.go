package cmd

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sluice/gen/gentest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const restartPolicy = `version: 1
limits:
  sold: {per: global, quota: 1000000000/month, accounting: soft}
responses: {headers: [x-ratelimit]}
`

// Five restarts under load, with the store in a file: the questions wait, each is
// answered by this process or the next one, and each is counted once.
func TestRestartLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, restartPolicy)
	m := newManager(t)
	args := []string{policy, "--store", "embedded:" + filepath.Join(dir, "sluice.db"), "--admin", ""}
	s := m.start(t, args...)

	var asked, bad atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for client := range 8 {
		load.Go(func() {
			c := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
			defer c.CloseIdleConnections()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				req, _ := http.NewRequest(http.MethodGet, "http://"+m.listen+"/_sluice/open/all", nil)
				req.Header.Set("X-Sluice-Ip", "192.0.2.1")
				req.Header.Set("X-Sluice-Request", fmt.Sprintf("%016d%016d", client, n))
				asked.Add(1)
				resp, err := c.Do(req)
				if err != nil {
					bad.Add(1)
					t.Errorf("no answer: %v", err)
					continue
				}
				resp.Body.Close()
				if resp.StatusCode != 204 || resp.Header.Get("X-Sluice-Degraded") != "" {
					bad.Add(1)
					t.Errorf("status %d, degraded %q", resp.StatusCode, resp.Header.Get("X-Sluice-Degraded"))
				}
			}
		})
	}
	for range 5 {
		before := asked.Load()
		for asked.Load() < before+200 {
			time.Sleep(time.Millisecond)
		}
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
		m.await(t, s, "STOPPING=1")
		if err := s.wait(); err != nil {
			t.Errorf("it ended with %v:\n%s", err, s.log.text())
		}
		s = m.start(t, args...)
	}
	close(stop)
	load.Wait()

	a := ask(t, http.DefaultClient, http.MethodGet, "http://"+m.listen+"/_sluice/open/all", "X-Sluice-Ip", "192.0.2.1")
	if got, want := a.header.Get("X-Ratelimit-Remaining"), fmt.Sprint(1_000_000_000-asked.Load()-1); got != want {
		t.Errorf("%s are left after %d requests; want %s", got, asked.Load()+1, want)
	}
	if bad.Load() > 0 {
		t.Errorf("%d of %d requests got no good answer", bad.Load(), asked.Load())
	}
}

const restartSite = `version: 1
client_ip: {trusted_proxies: [127.0.0.1], header: X-Forwarded-For}
limits:
  all: {per: global, quota: 1000000000/month, accounting: soft}
routes:
  - {name: paid, match: {prefix: /paid}, on_store_down: closed, limits: {sold: {per: global, quota: 300/month}}}
  - {name: busy, match: {prefix: /busy}, limits: {speed: {per: global, rate: 1/d, burst: 300}}}
  - {name: rest, match: {prefix: /}}
`

const restartNGINX = `user root; worker_processes 2; pid nginx.pid; error_log error.log warn;
events { worker_connections 1024; }
http {
  client_body_temp_path temp_body; proxy_temp_path temp_proxy; fastcgi_temp_path temp_fastcgi; uwsgi_temp_path temp_uwsgi; scgi_temp_path temp_scgi;
  access_log off;
  include sluice/real_ip.conf;
  include sluice/http.conf;
  upstream app { server APP; keepalive 8; }
  server {
    listen HTTP;
    include sluice/server.conf;
    location /paid { include sluice/routes/paid.conf; proxy_pass http://app; }
    location /busy { include sluice/routes/busy.conf; proxy_pass http://app; }
    location /     { include sluice/routes/rest.conf; proxy_pass http://app; }
  }
}
`

// Five restarts under load behind a real NGINX, over TCP and over a unix socket: no
// client notices, nothing that was sold is forgotten or sold twice, and what was
// counted in memory of buckets is no more than that.
func TestRestartBehindNGINX(t *testing.T) {
	for name, socket := range map[string]func(*testing.T) net.Listener{
		"tcp": func(t *testing.T) net.Listener { return listenOn(t, "tcp", "127.0.0.1:0") },
		"unix": func(t *testing.T) net.Listener {
			path := filepath.Join(t.TempDir(), "s")
			ln := listenOn(t, "unix", path)
			if err := os.Chmod(path, 0o660); err != nil {
				t.Fatal(err)
			}
			return ln
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			policy := filepath.Join(dir, "policy.yaml")
			write(t, policy, restartSite)
			m := newManagerOn(t, socket(t))
			args := []string{policy, "--store", "embedded:" + filepath.Join(dir, "sluice.db"), "--admin", ""}
			s := m.start(t, args...)
			front := m.nginx(t, dir, policy)

			// 900 questions of each kind while it restarts: 300 of two kinds may pass.
			var passed [3]atomic.Int64
			var asked atomic.Int64
			var load sync.WaitGroup
			for client := range 9 {
				load.Go(func() {
					c := &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
					defer c.CloseIdleConnections()
					kind := client % 3
					for range 300 {
						asked.Add(1)
						a := ask(t, c, http.MethodGet, front+[]string{"/paid", "/busy", "/"}[kind])
						switch {
						case a.header.Get("X-Sluice-Degraded") != "":
							t.Errorf("kind %d: the service was away", kind)
						case a.status == 200:
							passed[kind].Add(1)
						case kind == 0 && a.status == 402, kind == 1 && a.status == 429:
						default:
							t.Errorf("kind %d: status %d", kind, a.status)
						}
					}
				})
			}
			for i := range 5 {
				for asked.Load() < int64(200+400*i) {
					time.Sleep(time.Millisecond)
				}
				_ = s.cmd.Process.Signal(syscall.SIGTERM)
				m.await(t, s, "STOPPING=1")
				if err := s.wait(); err != nil {
					t.Errorf("it ended with %v:\n%s", err, s.log.text())
				}
				s = m.start(t, args...)
			}
			load.Wait()
			if n := passed[0].Load(); n != 300 {
				t.Errorf("%d were sold; want 300", n)
			}
			// A bucket is in memory alone: each process may let one pass.
			if n := passed[1].Load(); n < 300 || n > 900 {
				t.Errorf("%d of a bucket of 300 in six processes", n)
			}
			if n := passed[2].Load(); n != 900 {
				t.Errorf("%d of 900 without a limit passed", n)
			}
		})
	}
}

// nginx starts one that asks the manager's socket.
func (m *manager) nginx(t *testing.T, dir, policy string) (url string) {
	t.Helper()
	run(t, "render", policy, "--out", dir, "--cache-dir", gentest.CacheDir(t), "--authz", m.listen)
	file := filepath.Join(dir, "sluice/ask.conf")
	fill(t, file, file, "200ms", "10s") // see startStack
	addr := gentest.FreePort(t)
	write(t, filepath.Join(dir, "nginx.conf"), strings.NewReplacer("HTTP", addr, "APP", startApp(t).addr).Replace(restartNGINX))
	gentest.Start(t, dir, "nginx.conf", addr)
	return "http://" + addr
}

// A file has one service; the second one says so, and the first goes on.
func TestServeSecondOnFile(t *testing.T) {
	t.Parallel()
	dir, _ := adminSite(t)
	s := serveIn(t, dir, "--store", "embedded:sluice.db")
	second := exec.Command("sluice", "serve", "policy.yaml", "--listen", "127.0.0.1:0", "--store", "embedded:sluice.db", "--datagrams", "", "--admin", "")
	second.Dir = dir
	out, err := second.CombinedOutput()
	if second.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), `cannot open store "sluice.db": another process has it`) {
		t.Errorf("error %v:\n%s", err, out)
	}
	if a := ask(t, http.DefaultClient, http.MethodGet, "http://"+s.addr+"/_sluice/open/rest"); a.status != 204 {
		t.Errorf("the first one answers %d", a.status)
	}
}

// Sockets that are of no use, or open to everybody, are refused, and said which.
func TestServeHandedSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	policy := filepath.Join(dir, "policy.yaml")
	write(t, policy, restartPolicy)
	unix := func(mode os.FileMode) *net.UnixListener {
		path := filepath.Join(t.TempDir(), "s")
		ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return ln
	}
	tcp := func() *net.TCPListener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return ln.(*net.TCPListener)
	}
	f := func(want string, keep func(m *manager)) {
		t.Helper()
		m := &manager{}
		keep(m)
		out, err := m.command(policy, "--store", "memory", "--datagrams", "", "--admin", "").CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("error %v; want %q in\n%s", err, want, out)
		}
	}
	f("want SocketMode=0660", func(m *manager) { m.keep(t, "sluice.socket", unix(0o666)) })
	f("is one too many", func(m *manager) { m.keep(t, "a", tcp()); m.keep(t, "b", tcp()) })
	f("is nothing to listen on", func(m *manager) {
		file, err := os.Open(policy)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		m.files, m.names = []*os.File{file}, []string{"a"}
	})
	// Both good ones, and the admin port by its name.
	m := newManager(t)
	m.files, m.names = nil, nil
	questions, admin := unix(0o660), unix(0o600)
	path, adminPath := questions.Addr().String(), admin.Addr().String()
	m.keep(t, "sluice.socket", questions)
	m.keep(t, "admin", admin)
	m.start(t, policy, "--store", "memory", "--datagrams", "", "--token-file", filepath.Join(dir, "token"))
	for path, url := range map[string]string{path: "http://sluice/_sluice/open/all", adminPath: "http://localhost/-/status"} {
		c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}}}
		if a := ask(t, c, http.MethodGet, url); a.status/100 != 2 {
			t.Errorf("%s on %s: status %d %s", url, path, a.status, a.body)
		}
	}
}
