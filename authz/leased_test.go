package authz

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

const leasedPolicy = `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: free}}
plans: {free: {limits: {}}}
limits:
  backend: {per: global, rate: 2000/s, burst: 4000, sync: leased}
routes: [{name: all, match: {prefix: /}}]
`

// askedStore counts its calls.
type askedStore struct {
	limit.Store
	takes atomic.Int64
}

func (s *askedStore) Take(ctx context.Context, ops []limit.Op, states []limit.State) (int, error) {
	s.takes.Add(1)
	return s.Store.Take(ctx, ops, states)
}

// TestLeasedLimit: a limit with `sync: leased` is spent from shares, and one without
// is not; no more passes than the shared bucket has.
func TestLeasedLimit(t *testing.T) {
	f := func(policy string, most int64, burst int) {
		t.Helper()
		clock := limittest.NewClock()
		shared := &askedStore{Store: limit.NewMemory(limit.MemoryOptions{Now: clock.Now})}
		leased := limit.NewLeased(shared, limit.LeasedOptions{Timeout: 10 * time.Second, Now: clock.Now})
		t.Cleanup(func() { _ = leased.Close() })
		s := newSiteOn(t, policy, clock, leased)
		for i := range 2000 { // a second at the rate
			clock.Advance(500 * time.Microsecond)
			if d := s.decide("all", ip(fmt.Sprintf("10.0.%d.%d", i/256, i%256))); d.Status != 0 {
				t.Fatalf("request %d: %+v", i, d)
			}
		}
		if n := shared.takes.Load(); n > most || most == 2000 && n != most {
			t.Errorf("the store was asked %d times, want %d", n, most)
		}
		passed := 0
		for i := range 5000 { // at once
			d := s.decide("all", ip(fmt.Sprintf("10.1.%d.%d", i/256, i%256)))
			if d.Status == 0 {
				passed++
			} else if d.Limit != "backend" || d.Wait <= 0 {
				t.Fatalf("refused by %q, wait %v", d.Limit, d.Wait)
			}
		}
		if passed > burst || passed < burst*9/10 {
			t.Errorf("%d passed at once, want nearly %d", passed, burst)
		}
	}
	f(leasedPolicy, 100, 4000)
	f(strings.Replace(leasedPolicy, ", sync: leased", "", 1), 2000, 4000)
}
