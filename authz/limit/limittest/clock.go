package limittest

import (
	"sync"
	"time"
)

// Clock is a clock that only a test moves. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock starts at noon of a day in 2026; where it starts must not matter.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)}
}

// Now is what a store's options want.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on, or back if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
