package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// BreakerState is what a Breaker does with those who ask.
type BreakerState int32

// The states of a Breaker.
const (
	BreakerClosed   BreakerState = iota // everybody asks the store
	BreakerHalfOpen                     // some do, to see whether it is back
	BreakerOpen                         // nobody does
)

// String is the state's word in logs and metrics.
func (s BreakerState) String() string {
	switch s {
	case BreakerHalfOpen:
		return "half_open"
	case BreakerOpen:
		return "open"
	}
	return "closed"
}

// ErrBreakerOpen is what a Breaker says instead of asking. It wraps
// ErrUnavailable.
var ErrBreakerOpen = fmt.Errorf("%w: it failed just now and is not asked", ErrUnavailable)

const (
	// breakerWindow is the time over which failures are weighed.
	breakerWindow = time.Second
	// breakerRow is how many failures one after another open the breaker, and
	// breakerShare how many in a window do, if they are half of all calls.
	breakerRow   = 5
	breakerShare = 20
	// breakerRest is how long nobody asks after the first opening; it doubles while
	// probes fail, up to breakerLongest.
	breakerRest    = 250 * time.Millisecond
	breakerLongest = 2 * time.Second
	// breakerFull is how many probes at once end the trial: one, then two, four, ...
	// each time as many have succeeded, so that a store that has just come back is
	// not met by all at once.
	breakerFull = 64
)

// BreakerOptions are the choices of a Breaker; the zero value is good.
type BreakerOptions struct {
	// Changed is told of each new state, one after the other; nil: nobody.
	Changed func(BreakerState)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Breaker is a Store that stops asking another one which fails: callers then
// learn at once what they would have waited for. After a rest it lets few ask,
// then more, and when those succeed everybody.
//
// Only what wraps ErrUnavailable is a failure. The pattern is Nygard's circuit
// breaker (Release It!, 2007); the half-open state grows as TCP's slow start does.
type Breaker struct {
	store   Store
	changed func(BreakerState)
	now     func() time.Time
	state   atomic.Int32
	row     atomic.Int32 // failures since the last success
	opened  atomic.Uint64

	mu       sync.Mutex
	begun    time.Time // of the window
	calls    atomic.Int64
	failures int64
	rest     time.Duration
	until    time.Time // of the rest
	allowed  int       // probes at once
	probes   int       // under way
	good     int       // probes that succeeded at this width
}

// NewBreaker puts a breaker before a store. With nil it serves Call alone.
func NewBreaker(store Store, o BreakerOptions) *Breaker {
	b := &Breaker{store: store, changed: o.Changed, now: o.Now}
	if b.now == nil {
		b.now = time.Now
	}
	if b.changed == nil {
		b.changed = func(BreakerState) {}
	}
	return b
}

// State is what the breaker does now.
func (b *Breaker) State() BreakerState { return BreakerState(b.state.Load()) }

// Opened is how often it has opened.
func (b *Breaker) Opened() uint64 { return b.opened.Load() }

// Take implements Store.
func (b *Breaker) Take(ctx context.Context, ops []Op, states []State) (int, error) {
	probe, err := b.enter()
	if err != nil {
		return -1, err
	}
	refused, err := b.store.Take(ctx, ops, states)
	b.leave(probe, err)
	return refused, err
}

// Peek implements Store.
func (b *Breaker) Peek(ctx context.Context, ops []Op, states []State) error {
	return b.Call(func() error { return b.store.Peek(ctx, ops, states) })
}

// Settle implements Store.
func (b *Breaker) Settle(ctx context.Context, id []byte, ops []Op, deltas []int64) error {
	return b.Call(func() error { return b.store.Settle(ctx, id, ops, deltas) })
}

// Reset implements Store.
func (b *Breaker) Reset(ctx context.Context, ops []Op) error {
	return b.Call(func() error { return b.store.Reset(ctx, ops) })
}

// Close implements Store.
func (b *Breaker) Close() error { return b.store.Close() }

// Call asks something else than a store by the same rules: whatever lives on a
// server that may be away. The error of ask counts when it wraps ErrUnavailable.
func (b *Breaker) Call(ask func() error) error {
	probe, err := b.enter()
	if err != nil {
		return err
	}
	err = ask()
	b.leave(probe, err)
	return err
}

// enter tells whether a caller may ask. probe: he does so to see how the store is.
func (b *Breaker) enter() (probe bool, err error) {
	if b.State() == BreakerClosed {
		b.calls.Add(1)
		return false, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.State() {
	case BreakerClosed:
		b.calls.Add(1)
		return false, nil
	case BreakerOpen:
		if b.now().Before(b.until) {
			return false, ErrBreakerOpen
		}
		b.allowed, b.probes, b.good = 1, 0, 0
		b.become(BreakerHalfOpen)
	}
	if b.probes >= b.allowed {
		return false, ErrBreakerOpen
	}
	b.probes++
	return true, nil
}

// leave hears how a call went.
func (b *Breaker) leave(probe bool, err error) {
	failed := err != nil && errors.Is(err, ErrUnavailable)
	switch {
	case probe:
		b.probed(failed)
	case failed:
		b.failed()
	case b.row.Load() != 0:
		b.row.Store(0)
	}
}

// failed weighs a failure of a closed breaker.
func (b *Breaker) failed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.State() != BreakerClosed {
		return // late, and known
	}
	now := b.now()
	if now.Sub(b.begun) >= breakerWindow || now.Before(b.begun) {
		b.begun, b.failures = now, 0
		b.calls.Store(1)
	}
	b.failures++
	if b.row.Add(1) < breakerRow && (b.failures < breakerShare || 2*b.failures < b.calls.Load()) {
		return
	}
	b.rest = breakerRest
	b.open(now)
}

// probed hears how a probe went.
func (b *Breaker) probed(failed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probes--
	if b.State() != BreakerHalfOpen {
		return // another probe has decided
	}
	if failed {
		b.rest = min(2*b.rest, breakerLongest)
		b.open(b.now())
		return
	}
	if b.good++; b.good < b.allowed {
		return
	}
	b.allowed, b.good = 2*b.allowed, 0
	if b.allowed > breakerFull {
		b.row.Store(0)
		b.begun = time.Time{}
		b.become(BreakerClosed)
	}
}

// open begins a rest. b.mu is held.
func (b *Breaker) open(now time.Time) {
	b.until = now.Add(b.rest)
	b.opened.Add(1)
	b.become(BreakerOpen)
}

// become changes the state. b.mu is held, so that changes are told in order.
func (b *Breaker) become(s BreakerState) {
	b.state.Store(int32(s))
	b.changed(s)
}
