package cmd

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"sluice/authz/limit/limittest"
)

// TestExactlyABucket: 64 clients at once on a bucket of 100, and exactly 100
// pass, whoever keeps it.
func TestExactlyABucket(t *testing.T) {
	for _, tc := range []struct {
		name     string
		redis    bool
		services int
	}{{"memory, one service", false, 1}, {"redis, one service", true, 1}, {"redis, three services", true, 3}} {
		t.Run(tc.name, func(t *testing.T) {
			url := "memory"
			if tc.redis {
				url = "redis://" + limittest.StartRedis(t)
			}
			stores := make([]string, tc.services)
			for i := range stores {
				stores[i] = url
			}
			s := startStack(t, stores...)
			if passed := storm(t, s.http1+"/v1/items", 64, 5); passed != 100 {
				t.Errorf("%d of 320 requests passed a bucket of 100", passed)
			}
		})
	}
}

// storm sends requests of one key from many clients and counts what passes; all
// others must be 429.
func storm(t *testing.T, url string, clients, each int) int64 {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	var passed atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range each {
				req, _ := http.NewRequest("GET", url, nil)
				req.Header.Set("X-API-Key", globexKey)
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				switch {
				case resp.StatusCode == 200 && resp.Header.Get("X-Sluice-Degraded") == "":
					passed.Add(1)
				case resp.StatusCode != 429:
					t.Errorf("status %d, degraded %q", resp.StatusCode, resp.Header.Get("X-Sluice-Degraded"))
				}
			}
		})
	}
	wg.Wait()
	return passed.Load()
}

func testChargedOnce(t *testing.T, s *stack, c *http.Client) {
	address := []string{"X-Forwarded-For", "192.0.2.50"}
	if got := left(t, ask(t, c, "GET", s.http1+"/v1/items", address...)); got != 9 {
		t.Fatalf("first request: %d left; want 9", got)
	}
	// A directory's index, try_files and its fallback redirect inside NGINX.
	for i, path := range []string{"/files/", "/files/index.html", "/files/none"} {
		a := ask(t, c, "GET", s.http1+path, address...)
		if a.status != 200 || left(t, a) != 8-i {
			t.Errorf("%s: status %d, %d left; want 200, %d", path, a.status, left(t, a), 8-i)
		}
	}
	// C013: one charge for a handshake, none for what is said afterwards.
	conn := s.dial(t)
	fmt.Fprint(conn, "GET /v1/ws HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.50\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("handshake: %v, %v; want 101", resp, err)
	}
	for range 3 {
		fmt.Fprint(conn, "ping\n")
		if line, err := reader.ReadString('\n'); err != nil || line != "ping\n" {
			t.Fatalf("echo: %q, %v", line, err)
		}
	}
	if got := left(t, ask(t, c, "HEAD", s.http1+"/v1/items", address...)); got != 4 {
		t.Errorf("after the handshake and a HEAD %d are left; want 4", got)
	}
}
