package gen

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/gen/gentest"
)

// took asks so many times at once, and returns how long each request that
// passed took, in order, and how many did not pass.
func (s *stack) took(n int, path string) (passed []time.Duration, refused int) {
	s.t.Helper()
	type result struct {
		status int
		took   time.Duration
	}
	results := make(chan result, n)
	for range n {
		go func() {
			began := time.Now()
			results <- result{s.get(path).status, time.Since(began)}
		}()
	}
	for range n {
		switch r := <-results; r.status {
		case 200:
			passed = append(passed, r.took)
		case 429:
			refused++
		default:
			s.t.Errorf("%s is %d", path, r.status)
		}
	}
	slices.Sort(passed)
	return passed, refused
}

// TestDelay: a burst is so many, however many of them are held: none, all but
// the first, or those after the first N.
func TestDelay(t *testing.T) {
	t.Parallel()
	s := start(t, `version: 1
edge:
  limits:
    none: {per: ip, rate: 2/s, burst: 4, routes: [none]}
    all: {per: ip, rate: 2/s, burst: 4, delay: all, routes: [all]}
    two: {per: ip, rate: 2/s, burst: 4, delay: 2, routes: [two]}
routes:
  - {name: none, match: {prefix: /none}}
  - {name: all, match: {prefix: /all}}
  - {name: two, match: {prefix: /two}}
`)
	for path, held := range map[string]int{"/none": 0, "/all": 3, "/two": 2} {
		passed, refused := s.took(6, path)
		if len(passed) != 4 || refused != 2 {
			t.Fatalf("%s let %d pass and refused %d; want 4 and 2", path, len(passed), refused)
		}
		for i, took := range passed {
			// Those that are held wait half a second more each.
			least := time.Duration(max(0, i-(3-held))) * 500 * time.Millisecond
			if took < least-20*time.Millisecond || took > least+450*time.Millisecond {
				t.Errorf("%s: number %d of those that passed took %v; want about %v", path, i+1, took, least)
			}
		}
	}
	s.noWarnings()
}

// TestNodes: what several NGINX share is divided, and rounded up.
func TestNodes(t *testing.T) {
	t.Parallel()
	files := rendered(t, "version: 1\nedge: {nodes: 3, limits: {a: {per: ip, rate: 10/s, burst: 7}, b: {per: ip, rate: 1/s, burst: 1}, c: {per: ip, connections: 50}}}\n")
	for name, want := range map[string][]string{
		"sluice/http.conf":       {" rate=200r/m;", " rate=20r/m;"},
		"sluice/routes/all.conf": {" burst=2 nodelay;", " 17;"},
	} {
		for _, w := range want {
			if !strings.Contains(string(files[name]), w) {
				t.Errorf("%s lacks %q:\n%s", name, w, files[name])
			}
		}
	}
	for rate, want := range map[string]string{"1/s": "1", "3/s": "1", "30/m": "2", "7/m": "9", "6/m": "10", "1/m": "60"} {
		files := rendered(t, "version: 1\nedge: {limits: {a: {per: ip, rate: "+rate+", burst: 1}}}\n")
		if line := "set $sluice_edge_retry " + want + ";"; !strings.Contains(string(files["sluice/routes/all.conf"]), line) {
			t.Errorf("%s: the route lacks %q", rate, line)
		}
	}
}

// TestReload: a limit with another key is another zone, which NGINX can load
// beside the old one; one with another rate keeps its counters.
func TestReload(t *testing.T) {
	t.Parallel()
	policy := func(per string, rate int) string {
		return fmt.Sprintf("version: 1\nclient_ip: {trusted_proxies: [127.0.0.1]}\nedge: {limits: {one: {per: %s, rate: %d/m, burst: 2}}}\n", per, rate)
	}
	mark := func(f Files, name string) {
		f["nginx.conf"] = []byte(strings.Replace(string(f["nginx.conf"]), "include sluice/locations.conf;", `location = /which { return 200 "`+name+`"; } include sluice/locations.conf;`, 1))
	}
	s := startWith(t, policy("ip", 1), func(f Files, _ string) { mark(f, "first") })
	zones := func(f Files) string {
		var out []string
		for line := range strings.Lines(string(f["sluice/http.conf"])) {
			if strings.HasPrefix(line, "limit_req_zone $") {
				out = append(out, strings.Fields(line)[2])
			}
		}
		return strings.Join(out, " ")
	}
	load := func(name, policy string) Files {
		t.Helper()
		files, err := Render(compiled(t, policy), Options{Version: "test", CacheDir: s.cacheDir, Full: true, Listen: []string{s.addr}, Authz: []string{s.authz.Addr}, Upstreams: []string{s.app.Addr}})
		if err != nil {
			t.Fatal(err)
		}
		mark(files, name)
		gentest.WriteFiles(t, s.nginx.Dir, files)
		s.nginx.Reload()
		// Workers of before accept connections until they hear that they are to end.
		for deadline, row := time.Now().Add(5*time.Second), 0; row < 20; time.Sleep(10 * time.Millisecond) {
			if row++; s.get("/which").body != name {
				row = 0
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s was not loaded: %s", name, s.nginx.ErrorLog())
			}
		}
		return files
	}
	if got := s.statuses(3, "/"); !slices.Equal(got, []int{200, 200, 429}) {
		t.Fatalf("before anything is loaded anew: %v", got)
	}
	faster := load("faster", policy("ip", 2))
	if zones(faster) != zones(s.files) {
		t.Errorf("another rate made another zone: %s, %s", zones(s.files), zones(faster))
	}
	if got := s.get("/"); got.status != 429 {
		t.Errorf("after another rate the counter is gone: %d", got.status)
	}
	other := load("other", policy("[ip, server]", 2))
	if zones(other) == zones(s.files) {
		t.Errorf("another key kept the zone %s", zones(other))
	}
	if got := s.statuses(3, "/"); !slices.Equal(got, []int{200, 200, 429}) {
		t.Errorf("after another key: %v", got)
	}
	load("back", policy("ip", 2))
	s.noWarnings()
}

// TestStreams: on HTTP/2 every open stream counts as a connection (C043), and
// the file says so.
func TestStreams(t *testing.T) {
	t.Parallel()
	s := startWith(t, "version: 1\nedge: {limits: {conns: {per: ip, connections: 2}}}\n", func(f Files, listen string) {
		f["nginx.conf"] = []byte(strings.Replace(string(f["nginx.conf"]), "listen "+listen, "listen "+listen+" http2", 1))
	})
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &protocols}, Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	statuses := make(chan int, 5)
	for range 5 {
		go func() {
			resp, err := client.Get("http://" + s.addr + "/?wait=400ms")
			if err != nil {
				statuses <- 0
				return
			}
			_ = resp.Body.Close()
			statuses <- resp.StatusCode
		}()
	}
	var got []int
	for range 5 {
		got = append(got, <-statuses)
	}
	if count(got, 200) != 2 || count(got, 429) != 3 {
		t.Errorf("five streams with two connections: %v", got)
	}
	if !strings.Contains(string(s.files["sluice/http.conf"]), "On HTTP/2 every open stream counts") {
		t.Error("http.conf does not say what counts on HTTP/2")
	}
}

// TestHugeKeys: where a site takes headers of any size, a value too long for
// NGINX to count by is counted by the client's address.
func TestHugeKeys(t *testing.T) {
	t.Parallel()
	s := startWith(t, `version: 1
edge:
  limits:
    one: {per: {header: X-Key}, rate: 1/m, burst: 1, routes: [one]}
    cookie: {per: [{cookie: c}, server], rate: 1/m, burst: 1, routes: [cookie]}
    query: {per: {query: q, capture: '^k(.*)'}, rate: 1/m, burst: 1, routes: [query]}
    conn: {per: {header: X-Key}, connections: 1, routes: [conn]}
routes: [{name: one, match: {prefix: /one}}, {name: cookie, match: {prefix: /cookie}}, {name: query, match: {prefix: /query}}, {name: conn, match: {prefix: /conn}}]
`, func(f Files, _ string) {
		f["nginx.conf"] = []byte(strings.Replace(string(f["nginx.conf"]), "server_tokens off;", "server_tokens off; large_client_header_buffers 8 128k; proxy_pass_request_headers off;", 1))
	})
	for i, size := range []int{255, 256, 5000, 65535, 65536, 70000} {
		huge := strings.Repeat("k", size)
		for path, headers := range map[string][]string{"/one": {"X-Key", huge}, "/cookie": {"Cookie", "c=" + huge}} {
			if got, want := s.get(path, headers...).status, map[bool]int{true: 200, false: 429}[i == 0]; got != want {
				t.Errorf("%s with a value of %d bytes is %d; want %d", path, size, got, want)
			}
		}
		if got, want := s.do("GET", "/query?q="+huge[:min(size, 60000)], nil).status, map[bool]int{true: 200, false: 429}[i == 0]; got != want {
			t.Errorf("/query with a value of %d bytes is %d; want %d", size, got, want)
		}
		results := make(chan int, 2)
		for range 2 {
			go func() { results <- s.get("/conn?wait=200ms", "X-Key", huge).status }()
		}
		if got := []int{<-results, <-results}; count(got, 200) != 1 || count(got, 429) != 1 {
			t.Errorf("/conn twice with a value of %d bytes is %v", size, got)
		}
	}
	s.noWarnings()
}

// TestPerServer: servers that share the files count apart, by their own names
// and not by what clients call them.
func TestPerServer(t *testing.T) {
	t.Parallel()
	s := start(t, `version: 1
edge: {limits: {one: {per: server, rate: 1/m, burst: 1}, all: {per: global, rate: 1000/s, burst: 1000}}}
routes: [{name: a, match: {hosts: [a.example], prefix: /}}, {name: b, match: {hosts: ["*.b.example"], prefix: /}}, {name: rest, match: {prefix: /}}]
`)
	for _, f := range []struct {
		host string
		want int
	}{{"a.example", 200}, {"A.Example", 429}, {"x.b.example", 200}, {"y.b.example", 429}, {"one.test", 200}, {"two.test", 429}} {
		if got := s.get("/", "Host", f.host); got.status != f.want {
			t.Errorf("%s is %d; want %d", f.host, got.status, f.want)
		}
	}
	s.noWarnings()
}
