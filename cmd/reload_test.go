package cmd

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sluice/authz/limit/limittest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// gauges are the numbers of a service that must not grow with reloads.
func (s *service) gauges(t *testing.T) (goroutines, files float64, series int) {
	t.Helper()
	for _, line := range strings.Split(ask(t, http.DefaultClient, "GET", s.admin+"/metrics").body, "\n") {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "go_goroutines":
			_, _ = fmt.Sscan(value, &goroutines)
		case "process_open_fds":
			_, _ = fmt.Sscan(value, &files)
		}
		if strings.HasPrefix(line, "sluice_") {
			series++
		}
	}
	return goroutines, files, series
}

// reloaded are two policies that follow each other: numbers, routes, plans, limits and
// tenants come and go.
func reloaded() [2]string {
	more := strings.NewReplacer(
		"100/s", "101/s",
		"plans: {free: {}}", "plans: {free: {}, more: {limits: {month: {per: tenant, quota: 1000000/month, accounting: soft}}}}\ntenants: [{id: extra, plan: more, keys: [{id: extra, sha256: aff85b06e3327cdb725a9e56ca5ddc5a72a358d21f38b621e3f4dbf2ccef43bc}]}]",
		"routes: [", "routes: [{name: export, match: {prefix: /export}, limits: {slow: {per: ip, window: 100000000/1h}}}, ",
	)
	return [2]string{adminPolicy, more.Replace(adminPolicy)}
}

// Fifty reloads under load, by request and by file: no question is left without
// an answer, and no goroutine, connection, watch or series stays behind. C092
func TestReloadsUnderLoad(t *testing.T) {
	for name, start := range map[string]func(*testing.T, string) (s *service, connections func() int){
		"embedded": func(t *testing.T, dir string) (*service, func() int) {
			return serveIn(t, dir, "--store", "embedded:sluice.db"), func() int { return 0 }
		},
		"redis": func(t *testing.T, dir string) (*service, func() int) {
			server := limittest.StartServer(t)
			return serveIn(t, dir, "--store", "redis://"+server.Addr), func() int { return connectionsOf(t, server) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, policy := adminSite(t)
			s, connections := start(t, dir)
			end := s.storm(t)
			secret, err := os.ReadFile(filepath.Join(dir, "sluice.token"))
			if err != nil {
				t.Fatal(err)
			}
			policies := reloaded()
			reload := func(i int) {
				write(t, policy, policies[i%2])
				a := ask(t, http.DefaultClient, "POST", s.admin+"/-/reload", "Authorization", "Bearer "+strings.TrimSpace(string(secret)))
				if a.status != 200 {
					t.Errorf("reload %d: %d %s", i, a.status, a.body)
				}
				time.Sleep(5 * time.Millisecond)
			}
			for i := range 11 {
				reload(i)
			}
			goroutines, files, series := s.gauges(t)
			connected := connections()
			for i := range 50 {
				reload(i + 1)
			}
			grown := func() string {
				g, f, n := s.gauges(t)
				c := connections()
				if g > goroutines+3 || f > files+3 || n > series+5 || c > connected+3 {
					return fmt.Sprintf("goroutines %v to %v, files %v to %v, series %d to %d, connections to Redis %d to %d", goroutines, g, files, f, series, n, connected, c)
				}
				return ""
			}
			for deadline := time.Now().Add(5 * time.Second); grown() != "" && time.Now().Before(deadline); {
				time.Sleep(50 * time.Millisecond)
			}
			if what := grown(); what != "" {
				t.Error(what)
			}
			end()
		})
	}
}

// storm asks until the function it returns is called; all must be decided.
func (s *service) storm(t *testing.T) (end func()) {
	var asked, bad atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for i := range 4 {
		load.Go(func() {
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				// One of the policies has the route export and the key, the other has neither.
				req, _ := http.NewRequest(http.MethodGet, "http://"+s.addr+"/_sluice/open/"+[]string{"rest", "export"}[i%2], nil)
				req.Header.Set("X-Sluice-Ip", "192.0.2.1")
				if i >= 2 {
					req.Header.Set("X-Api-Key", "sk_demo_acme_web")
				}
				resp, err := c.Do(req)
				switch {
				case err != nil:
					bad.Add(1)
				case resp.StatusCode == 401 && i >= 2:
				case resp.StatusCode != 204 && resp.StatusCode != 403, i%2 == 0 && resp.Header.Get("X-Sluice-Degraded") != "":
					bad.Add(1)
				}
				if err == nil {
					resp.Body.Close()
				}
				asked.Add(1)
			}
		})
	}
	return func() {
		close(stop)
		load.Wait()
		if bad.Load() > 0 || asked.Load() < 100 {
			t.Errorf("%d of %d questions got no good answer", bad.Load(), asked.Load())
		}
	}
}

// connectionsOf is how many connections a Redis has, besides the one that asks.
func connectionsOf(t *testing.T, server *limittest.Server) int {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	list, err := client.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n") - 1
}
