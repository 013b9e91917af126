package cmd

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The service is killed, or stands still, while NGINX asks it: each request is
// answered by its route's fail mode, nothing hangs, and when the service is back it
// decides again. C090
func TestServiceLostUnderLoad(t *testing.T) {
	for _, tc := range []struct {
		name       string
		lose, back func(t *testing.T, s *stack)
	}{
		{"killed", func(t *testing.T, s *stack) {
			_ = s.services[0].cmd.Process.Kill()
			_ = s.services[0].wait()
		}, func(t *testing.T, s *stack) {
			s.services[0] = startServiceOn(t, s.services[0].addr, s.policy, "memory")
		}},
		{"silent", func(t *testing.T, s *stack) {
			if err := s.services[0].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.services[0].cmd.Process.Signal(syscall.SIGCONT) })
		}, func(t *testing.T, s *stack) {
			_ = s.services[0].cmd.Process.Signal(syscall.SIGCONT)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startStackWaiting(t, "200ms", "memory")
			l := &lostLoad{stack: s, client: &http.Client{
				Transport: &http.Transport{MaxIdleConnsPerHost: 16},
				Timeout:   10 * time.Second, // is what would hang
			}}
			ended := l.start(t)
			defer ended()
			l.await(t, func() bool { return l.decided.Load() >= 50 })
			tc.lose(t, s)
			l.lost.Store(true)
			open, closed := l.open.Load(), l.closed.Load()
			l.await(t, func() bool { return l.open.Load() >= open+100 && l.closed.Load() >= closed+100 })
			l.lost.Store(false)
			tc.back(t, s)
			decided := l.decided.Load()
			l.await(t, func() bool { return l.decided.Load() >= decided+50 })
		})
	}
}

// lostLoad asks for an open route and a closed one, each time as another client.
type lostLoad struct {
	*stack
	client                *http.Client
	asked                 atomic.Int64
	lost                  atomic.Bool  // the service has been away for a while
	decided, open, closed atomic.Int64 // answers of the service, and of the fail modes
}

// start asks until the function it returns is called.
func (l *lostLoad) start(t *testing.T) (end func()) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					l.ask(t, i%2 == 0)
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(stop); all.Wait(); l.client.CloseIdleConnections() })
}

func (l *lostLoad) ask(t *testing.T, closed bool) {
	path := "/v1/items"
	if closed {
		path = "/v1/pay"
	}
	n := l.asked.Add(1)
	req, _ := http.NewRequest(http.MethodGet, l.http1+path, nil)
	req.Header.Set("X-Forwarded-For", fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255))
	lost := l.lost.Load()
	resp, err := l.client.Do(req)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	resp.Body.Close()
	degraded := resp.Header.Get("X-Sluice-Degraded") == "1"
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	switch {
	case resp.StatusCode == 200 && !degraded:
		l.decided.Add(1)
		if lost && l.lost.Load() {
			t.Errorf("%s: decided, and nobody was there who could", path)
		}
	case resp.StatusCode == 200 && degraded && !closed:
		l.open.Add(1)
	case resp.StatusCode == 503 && closed && seconds >= 1:
		l.closed.Add(1)
	default:
		t.Errorf("%s: status %d, degraded %t, Retry-After %q", path, resp.StatusCode, degraded, resp.Header.Get("Retry-After"))
	}
}

// await waits until enough was answered; NGINX leaves a service that has failed
// alone for a while.
func (l *lostLoad) await(t *testing.T, enough func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !enough(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("answered: %d by the service, %d open, %d closed", l.decided.Load(), l.open.Load(), l.closed.Load())
		}
	}
}
