package cmd

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/authz/limit/limittest"
	"sluice/gen/gentest"
)

// What a request has cost is known when it has ended: the application says it in a
// header, which NGINX hides from the client and tells the service, or by itself.
func TestCosts(t *testing.T) {
	for _, store := range []string{"embedded", "redis"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			dir, app, listen := t.TempDir(), startApp(t), gentest.FreePort(t)
			url := "embedded:" + filepath.Join(dir, "sluice.db")
			if store == "redis" {
				url = "redis://" + limittest.StartRedis(t)
			}
			policy := filepath.Join(dir, "policy.yaml")
			write(t, policy, `version: 1
limits: {units: {per: ip, quota: 1000/month}}
routes:
  - {name: files, match: {prefix: /files}, cost: 5, cost_from: {response_header: X-Cost, max: 50}}
  - {name: tokens, match: {prefix: /tokens}, cost: 5, cost_from: {response_header: X-Tokens, max: 50}}
  - {name: chat, match: {prefix: /chat}, cost: 10, cost_from: {report: 10m, max: 400}}
  - {name: look, match: {prefix: /}}
responses: {headers: [ratelimit-3]}
`)
			service := startService(t, policy, url)
			run(t, "render", policy, "--out", dir, "--full", "--upstream", app.addr, "--listen", listen,
				"--authz", service.addr, "--datagrams", service.datagrams, "--cache-dir", gentest.CacheDir(t))
			gentest.Start(t, dir, "nginx.conf", listen)
			http1, _ := clients()
			used := 0
			// spend looks, which costs a unit itself, until so much more is used.
			spend := func(what string, units int) {
				t.Helper()
				used += units
				for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
					used++
					a := ask(t, http1, http.MethodGet, "http://"+listen+"/")
					if got := 1000 - remaining(t, a); got == used {
						return
					} else if time.Now().After(end) {
						t.Fatalf("%s: %d units are used, want %d", what, got, used)
					}
				}
			}
			get := func(path string) answer {
				t.Helper()
				a := ask(t, http1, http.MethodGet, "http://"+listen+path)
				if a.status != 200 || a.header.Get("X-Cost") != "" && strings.HasPrefix(path, "/files") {
					t.Errorf("%s: status %d, X-Cost %q; want 200, hidden", path, a.status, a.header.Get("X-Cost"))
				}
				return a
			}
			get("/files/a?cost=20")
			spend("a header", 20)
			get("/files/a?cost=0")
			spend("nothing", 0)
			get("/files/a?cost=5000")
			spend("too much", 50)
			get("/files/a")
			spend("no header", 5)
			get("/tokens/a?cost=20") // that is another route's header
			spend("another header", 5)
			if a := get("/?cost=20"); a.header.Get("X-Cost") != "20" {
				t.Error("a header of a route without cost_from is hidden")
			}
			used++

			get("/chat")
			id := app.header("X-Sluice-Request")
			spend("the estimate", 10)
			report(t, service, `{"request":"`+id+`","cost":37}`, 200)
			spend("a report", 27)
			report(t, service, `{"request":"`+id+`","cost":37}`, 200)
			report(t, service, `{"request":"`+id+`","cost":1}`, 409)
			report(t, service, `{"request":"another","cost":1}`, 404)
			spend("no other report", 0)
		})
	}
}

// remaining is what RateLimit-Remaining says.
func remaining(t *testing.T, a answer) int {
	t.Helper()
	var n int
	if _, err := fmt.Sscan(a.header.Get("RateLimit-Remaining"), &n); err != nil {
		t.Fatalf("status %d, RateLimit-Remaining %q", a.status, a.header.Get("RateLimit-Remaining"))
	}
	return n
}

// report posts a cost to the service.
func report(t *testing.T, s *service, body string, want int) {
	t.Helper()
	resp, err := http.Post("http://"+s.addr+"/v1/cost", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		t.Errorf("%s: status %d, want %d", body, resp.StatusCode, want)
	}
}
