package limit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// moody is a store that fails when it is told to.
type moody struct {
	limit.Store
	bad   atomic.Bool
	calls atomic.Int64
	hold  atomic.Pointer[chan struct{}]
}

func (m *moody) Take(ctx context.Context, ops []limit.Op, states []limit.State) (int, error) {
	m.calls.Add(1)
	if hold := m.hold.Load(); hold != nil {
		<-*hold
	}
	if m.bad.Load() {
		return -1, fmt.Errorf("%w: on purpose", limit.ErrUnavailable)
	}
	return m.Store.Take(ctx, ops, states)
}

type breakerSite struct {
	*limit.Breaker
	clock  *limittest.Clock
	store  *moody
	mu     sync.Mutex
	states []limit.BreakerState
}

func newBreakerSite() *breakerSite {
	s := &breakerSite{clock: limittest.NewClock()}
	s.store = &moody{Store: limit.NewMemory(limit.MemoryOptions{Now: s.clock.Now})}
	s.Breaker = limit.NewBreaker(s.store, limit.BreakerOptions{Now: s.clock.Now, Changed: func(b limit.BreakerState) {
		s.mu.Lock()
		s.states = append(s.states, b)
		s.mu.Unlock()
	}})
	return s
}

func (s *breakerSite) ask() error {
	_, err := s.Take(context.Background(), []limit.Op{large("acme")}, make([]limit.State, 1))
	return err
}

// C091: five failures in a row, and the store is left alone; callers learn at once.
func TestBreakerOpens(t *testing.T) {
	s := newBreakerSite()
	s.store.bad.Store(true)
	for i := range 5 {
		if err := s.ask(); errors.Is(err, limit.ErrBreakerOpen) || !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("failure %d: %v", i, err)
		}
	}
	for range 1000 {
		if err := s.ask(); !errors.Is(err, limit.ErrBreakerOpen) || !errors.Is(err, limit.ErrUnavailable) {
			t.Fatalf("open: %v", err)
		}
	}
	if n := s.store.calls.Load(); n != 5 || s.State() != limit.BreakerOpen || s.Opened() != 1 {
		t.Errorf("%d calls, state %v, opened %d times", n, s.State(), s.Opened())
	}
	// One probe after the rest, and a longer rest when it fails.
	for _, rest := range []time.Duration{250, 500, 1000, 2000, 2000} {
		before := s.store.calls.Load()
		s.clock.Advance(rest*time.Millisecond - time.Millisecond)
		_ = s.ask()
		if n := s.store.calls.Load(); n != before {
			t.Errorf("it was asked before %v ms were over", int64(rest))
		}
		s.clock.Advance(time.Millisecond)
		_, _ = s.ask(), s.ask()
		if n := s.store.calls.Load(); n != before+1 {
			t.Errorf("after %v ms it was asked %d times, want once", int64(rest), n-before)
		}
	}
}

// A store that fails half of the time is one that fails; one that fails now and then
// is not.
func TestBreakerWeighs(t *testing.T) {
	for _, c := range []struct {
		every int
		want  limit.BreakerState
	}{{2, limit.BreakerOpen}, {3, limit.BreakerClosed}, {10, limit.BreakerClosed}} {
		s := newBreakerSite()
		for i := range 3000 {
			s.store.bad.Store(i%c.every == 0)
			_ = s.ask()
			s.clock.Advance(time.Millisecond)
			if s.State() != limit.BreakerClosed {
				break
			}
		}
		if s.State() != c.want {
			t.Errorf("every %d. call fails: %v, want %v", c.every, s.State(), c.want)
		}
	}
}

// A store that comes back meets one caller, then two, four, ...: never all at once.
// C092
func TestBreakerClosesSlowly(t *testing.T) {
	s := newBreakerSite()
	s.store.bad.Store(true)
	for range 5 {
		_ = s.ask()
	}
	s.store.bad.Store(false)
	s.clock.Advance(time.Second)
	for width := 1; width <= 64; width *= 2 {
		hold := make(chan struct{})
		s.store.hold.Store(&hold)
		before := s.store.calls.Load()
		var all sync.WaitGroup
		var passed, turnedAway atomic.Int64
		for range 200 {
			all.Go(func() {
				if err := s.ask(); err == nil {
					passed.Add(1)
				} else {
					turnedAway.Add(1)
				}
			})
		}
		for turnedAway.Load() < int64(200-width) {
			time.Sleep(time.Millisecond)
		}
		close(hold)
		all.Wait()
		s.store.hold.Store(nil)
		if n := s.store.calls.Load() - before; n != int64(width) || passed.Load() != int64(width) {
			t.Errorf("%d asked and %d passed, want %d", n, passed.Load(), width)
		}
	}
	if s.State() != limit.BreakerClosed {
		t.Errorf("state %v", s.State())
	}
	want := []limit.BreakerState{limit.BreakerOpen, limit.BreakerHalfOpen, limit.BreakerClosed}
	if !slices.Equal(s.states, want) {
		t.Errorf("the states were %v, want %v", s.states, want)
	}
	// And it opens again when it must.
	s.store.bad.Store(true)
	for range 5 {
		_ = s.ask()
	}
	if s.State() != limit.BreakerOpen {
		t.Errorf("state %v", s.State())
	}
}

// A probe that fails while others are under way does not let the late ones close it.
func TestBreakerLateProbes(t *testing.T) {
	s := newBreakerSite()
	s.store.bad.Store(true)
	for range 5 {
		_ = s.ask()
	}
	s.clock.Advance(time.Second)
	s.store.bad.Store(false)
	if err := s.ask(); err != nil { // width 1 is done, two may ask
		t.Fatal(err)
	}
	hold := make(chan struct{})
	s.store.hold.Store(&hold)
	done := make(chan error)
	go func() { done <- s.ask() }()
	for s.store.calls.Load() < 7 {
		time.Sleep(time.Millisecond)
	}
	s.store.hold.Store(nil)
	s.store.bad.Store(true)
	_ = s.ask()
	if s.State() != limit.BreakerOpen {
		t.Fatalf("state %v", s.State())
	}
	s.store.bad.Store(false)
	close(hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s.State() != limit.BreakerOpen {
		t.Errorf("a late probe made it %v", s.State())
	}
}

// With a Redis that accepts and never answers, decisions end at once as soon as it
// is known, and the store is used again when it is back.
func TestBreakerOnRedis(t *testing.T) {
	t.Parallel()
	proxy := limittest.StartProxy(t, limittest.StartRedis(t))
	store := limit.NewBreaker(openRedis(t, proxy.Addr, limit.RedisOptions{}), limit.BreakerOptions{})
	takeOne(t, store, speed(1))
	proxy.Requests(limittest.Hold)
	var c tally
	for range 200 {
		c.ask(t, store, []limit.Op{speed(1)})
	}
	if n := c.failed.Load(); n != 200 {
		t.Errorf("%d of 200 failed", n)
	}
	if n := store.Opened(); n == 0 {
		t.Error("it did not open")
	}
	proxy.Requests(limittest.Pass)
	proxy.Sever()
	for end := time.Now().Add(20 * time.Second); store.State() != limit.BreakerClosed; {
		c.ask(t, store, []limit.Op{large("acme")})
		if time.Now().After(end) {
			t.Fatalf("the store is back, and the breaker is %v", store.State())
		}
		time.Sleep(time.Millisecond)
	}
}
