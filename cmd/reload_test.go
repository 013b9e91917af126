package cmd

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// Fifty reloads under load, by request and by file: no question is left without
// an answer, and no goroutine, connection, watch or series stays behind. C092
func TestReloadsUnderLoad(t *testing.T) {
	dir, policy := adminSite(t)
	s := serveIn(t, dir)
	secret, err := os.ReadFile(filepath.Join(dir, "sluice.token"))
	if err != nil {
		t.Fatal(err)
	}
	var asked, bad atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	for range 4 {
		load.Go(func() {
			c := &http.Client{Transport: &http.Transport{}}
			defer c.CloseIdleConnections()
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := c.Get("http://" + s.addr + "/_sluice/open/rest")
				if err != nil || resp.StatusCode != 204 && resp.StatusCode != 403 || resp.Header.Get("X-Sluice-Degraded") != "" {
					bad.Add(1)
				}
				if err == nil {
					resp.Body.Close()
				}
				asked.Add(1)
			}
		})
	}
	reload := func(i int) {
		write(t, policy, strings.Replace(adminPolicy, "100/s", fmt.Sprintf("%d/s", 100+i%2), 1))
		a := ask(t, http.DefaultClient, "POST", s.admin+"/-/reload", "Authorization", "Bearer "+strings.TrimSpace(string(secret)))
		if a.status != 200 {
			t.Errorf("reload %d: %d %s", i, a.status, a.body)
		}
	}
	for i := range 5 {
		reload(i)
	}
	goroutines, files, series := s.gauges(t)
	for i := range 50 {
		reload(i)
		time.Sleep(5 * time.Millisecond)
	}
	grown := func() string {
		g, f, n := s.gauges(t)
		if g > goroutines+3 || f > files+3 || n > series+5 {
			return fmt.Sprintf("goroutines %v to %v, files %v to %v, series %d to %d", goroutines, g, files, f, series, n)
		}
		return ""
	}
	for deadline := time.Now().Add(5 * time.Second); grown() != "" && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if what := grown(); what != "" {
		t.Error(what)
	}
	close(stop)
	load.Wait()
	if bad.Load() > 0 || asked.Load() < 100 {
		t.Errorf("%d of %d questions got no good answer", bad.Load(), asked.Load())
	}
}
