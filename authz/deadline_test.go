package authz

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/directory"
	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

const deadlinePolicy = `
identity: {sources: [{api_key: {header: X-Api-Key}}], missing: {plan: anonymous}, invalid: {deny: 401}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 1000/s, burst: 1000000}}}
  pro:
    limits:
      fast: {per: tenant, rate: 1000/s, burst: 1000000}
      shared: {per: tenant, rate: 1/h, burst: 1000000, sync: leased}
      sold: {per: tenant, quota: 100000000/month}
      used: {per: tenant, quota: 100000000/day, accounting: soft}
routes:
  - {name: open, match: {prefix: /open}}
  - {name: closed, match: {prefix: /closed}, on_store_down: closed}
  - {name: local, match: {prefix: /local}, on_store_down: local}
`

const (
	patience       = 20 * time.Millisecond
	deadlineAskers = 32
	deadlineTurns  = 12
	deadlineKeys   = 2000
)

// Nobody waits longer for a Redis that is away than the deadline of his decision, one
// in a hundred by 5 ms. There is no breaker here, so that everybody waits: for a
// tenant to be looked up, for a share, for a place in a batch, for a connection. The
// same callers wait in turn for a timer of the deadline: the machine is as slow for
// the one as for the other. C091
func TestDeadlineHolds(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*deadlineSite){
		"killed":     func(s *deadlineSite) { s.server.Kill() },
		"stopped":    func(s *deadlineSite) { _ = s.server.Process().Signal(syscall.SIGSTOP) },
		"black hole": func(s *deadlineSite) { s.proxy.Requests(limittest.Hold) },
		"slow":       func(s *deadlineSite) { s.proxy.Replies(limittest.Slow) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newDeadlineSite(t)
			for end := time.Now().Add(10 * time.Second); s.decide("closed", "X-Api-Key: sk_acme").Verdict != Allow; {
				if time.Now().After(end) {
					t.Fatal("it does not begin")
				}
			}
			away(s)
			// Where the machine stands still for a moment, it may do so for one of both.
			var said []string
			for good := 0; good < 3; {
				ours, theirs := s.round()
				if ours <= theirs+5*time.Millisecond {
					good++
				}
				said = append(said, fmt.Sprintf("%v against %v", ours, theirs))
				if len(said) == 15 {
					t.Fatalf("one decision in a hundred took, and of waits for a timer: %q", said)
				}
			}
			if s.undecided.Load() == 0 {
				t.Error("nothing met the outage")
			}
		})
	}
}

// timedStore is a store that tells how long it was given.
type timedStore struct {
	limit.Store
	left time.Duration
}

func (s *timedStore) Take(ctx context.Context, ops []limit.Op, states []limit.State) (int, error) {
	if due, ok := ctx.Deadline(); ok {
		s.left = time.Until(due)
	}
	return s.Store.Take(ctx, ops, states)
}

// The deadline is the whole decision's: what the look-up of a tenant has used, the
// store is not given again.
func TestDeadlineIsOne(t *testing.T) {
	t.Parallel()
	s := newDeadlineSite(t)
	s.proxy.Replies(limittest.Slow)
	store := &timedStore{Store: newMemory()}
	s.engine.store, s.engine.deadline, s.engine.directory.Deadline = store, time.Minute, time.Minute
	if d := s.decide("closed", "X-Api-Key: sk_acme"); d.Verdict != Allow {
		t.Fatalf("%v: %v", d.Verdict, d.Err)
	}
	// Its two replies take 15 ms each.
	if store.left <= 0 || store.left > time.Minute-30*time.Millisecond {
		t.Errorf("the store was given %v of a minute", store.left)
	}
}

// Whoever waits for the answer to the same question does so within his own deadline,
// and does not ask again.
func TestVisitsThatMeetTooLate(t *testing.T) {
	t.Parallel()
	s, store := newAskedSite(t, "routes: [{name: rest, match: {prefix: /}, on_store_down: closed, limits: {few: {per: ip, rate: 1/h, burst: 5}}}]")
	s.engine.deadline = patience
	hold := make(chan struct{})
	store.hold.Store(&hold)
	release := sync.OnceFunc(func() { close(hold) })
	defer time.AfterFunc(20*time.Second, release).Stop() // should the second wait after all
	first := make(chan *Decision, 1)
	go func() { first <- s.decide("rest", visit("r1")) }()
	for store.takes.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if d := s.decide("rest", visit("r1")); d.Err != errLate || d.Verdict != Deny || d.Reason != ReasonStoreDown {
		t.Errorf("the second: %v, %v, %v", d.Verdict, d.Reason, d.Err)
	}
	release()
	if d := <-first; d.Verdict != Allow {
		t.Errorf("the first: %v, %v", d.Verdict, d.Err)
	}
	if d := s.decide("rest", visit("r1")); d.Verdict != Allow || store.takes.Load() != 1 {
		t.Errorf("the third: %v, %v; the store was asked %d times", d.Verdict, d.Err, store.takes.Load())
	}
}

// deadlineSite is an engine on a Redis that can go away.
type deadlineSite struct {
	*site
	server    *limittest.Server
	proxy     *limittest.Proxy
	asked     atomic.Int64
	undecided atomic.Int64
}

func newDeadlineSite(t *testing.T) *deadlineSite {
	t.Helper()
	server := limittest.StartServer(t)
	s := &deadlineSite{site: newSite(t, ""), server: server, proxy: limittest.StartProxy(t, server.Addr)}
	url := "redis://" + s.proxy.Addr
	store, err := limit.OpenRedis(url, limit.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	soft := limit.NewSoft(limit.NewLeased(store, limit.LeasedOptions{Timeout: patience}), limit.SoftOptions{Timeout: patience})
	local := limit.NewLocal(store, limit.LocalOptions{})
	d, err := directory.Open(url, directory.Options{Deadline: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process().Signal(syscall.SIGCONT)
		s.proxy.Sever()
		_ = local.Close()
		_ = soft.Close() // which tells of units that it could not write
		_ = d.Close()
	})
	s.engine = New(soft, Options{Deadline: patience, Directory: d, Local: local, Log: s.engine.log})
	s.swap(deadlinePolicy)
	s.enlist()
	return s
}

// enlist puts a tenant into the directory, with many keys that nobody has read.
func (s *deadlineSite) enlist() {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.server.Addr})
	defer c.Close()
	pipe := c.Pipeline()
	pipe.HSet(s.t.Context(), "sluice:tenant:acme", "plan", "pro")
	for i := range deadlineKeys {
		name := "sk_acme"
		if i > 0 {
			name = fmt.Sprintf("sk_acme_%d", i)
		}
		sum := sha256.Sum256([]byte(name))
		pipe.HSet(s.t.Context(), "sluice:key:"+hex.EncodeToString(sum[:]), "tenant", "acme", "id", fmt.Sprintf("acme-%d", i))
	}
	if _, err := pipe.Exec(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// round has many ask at once, and tells how long one decision in a hundred took, and
// one wait in a hundred for a timer.
func (s *deadlineSite) round() (ours, theirs time.Duration) {
	var all sync.WaitGroup
	var mu sync.Mutex
	var decided, waited []time.Duration
	for range deadlineAskers {
		all.Go(func() {
			for range deadlineTurns {
				began := time.Now()
				s.askOne()
				took := time.Since(began)
				began = time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				<-ctx.Done()
				cancel()
				mu.Lock()
				decided, waited = append(decided, took), append(waited, time.Since(began))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(decided)
	slices.Sort(waited)
	return decided[len(decided)*99/100], waited[len(waited)*99/100]
}

// askOne asks as a known tenant, by a key that is to be looked up, or as nobody; each
// question is asked twice, by two at about the same time.
func (s *deadlineSite) askOne() {
	n := s.asked.Add(1) / 2
	headers := []string{ip(fmt.Sprintf("192.0.2.%d", n%200)), visit(fmt.Sprintf("r%d", n))}
	switch n % 3 {
	case 0:
		headers = append(headers, "X-Api-Key: sk_acme")
	case 1:
		headers = append(headers, fmt.Sprintf("X-Api-Key: sk_acme_%d", n/3))
	}
	route := []string{"open", "closed", "local"}[n/3%3]
	d := s.decide(route, headers...)
	if d.Err == nil {
		return
	}
	s.undecided.Add(1)
	want, status := Degraded, 0
	if route == "closed" {
		want, status = Deny, 503
	}
	if d.Verdict != want || d.Status != status {
		s.t.Errorf("%s without the store: %v, status %d", route, d.Verdict, d.Status)
	}
}
