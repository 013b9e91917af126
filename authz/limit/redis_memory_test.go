package limit_test

import (
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// Redis has no memory for a while, in the middle of a load: what fails has charged
// nothing, what passed is counted, and no unit of a hard quota is sold twice. C093
func TestRedisFullUnderLoad(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t, "--maxmemory-policy", "noeviction")
	admin := plainClient(t, addr)
	store := openRedis(t, addr, limit.RedisOptions{})
	quota := limit.Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:monthly"), Kind: limit.Quota,
		Max: 4000, Calendar: limit.NewCalendar(limit.Month, time.UTC, 1), Cost: 1}
	rate := large("acme")
	var c tally
	stop := make(chan struct{})
	wait := c.load(t, 16, stop, store, quota, rate)
	for range 6 {
		time.Sleep(30 * time.Millisecond)
		if err := admin.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		if err := admin.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(30 * time.Second); c.refused.Load() == 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // until all is sold
	}
	close(stop)
	wait()
	states := make([]limit.State, 1)
	if err := store.Peek(t.Context(), []limit.Op{quota}, states); err != nil {
		t.Fatal(err)
	}
	passed, failed := c.passed.Load(), c.failed.Load()
	// A deadline that is over says nothing of what happened: only then are the two apart.
	if n := states[0].Used; n > 4000 || n < passed || n > passed+failed {
		t.Errorf("%d units are counted, %d passed, %d failed; the quota is 4000", n, passed, failed)
	}
	if failed == 0 || c.refused.Load() == 0 {
		t.Errorf("%d failed, %d were refused: nothing was tried", failed, c.refused.Load())
	}
	if n := used(t, store, rate); n != states[0].Used {
		t.Errorf("%d tokens were taken beside %d units of the quota: all or none", n, states[0].Used)
	}
}

// What a Soft has admitted alone is written once, whatever becomes of its batches:
// requests and replies that are lost, cut, late or come twice.
func TestSoftThroughFaults(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][2]limittest.Fault{
		"replies lost":     {limittest.Pass, limittest.Drop},
		"replies cut":      {limittest.Pass, limittest.Cut},
		"replies repeated": {limittest.Pass, limittest.Repeat},
		"replies late":     {limittest.Pass, limittest.Slow},
		"requests lost":    {limittest.Drop, limittest.Pass},
		"requests cut":     {limittest.Cut, limittest.Pass},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := limittest.StartRedis(t)
			proxy := limittest.StartProxy(t, addr)
			soft := limit.NewSoft(openRedis(t, proxy.Addr, limit.RedisOptions{}), limit.SoftOptions{FlushEvery: 5 * time.Millisecond, Timeout: 100 * time.Millisecond})
			op := limit.Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:soft"), Kind: limit.Quota, Soft: true,
				Max: 1_000_000_000, Calendar: limit.NewCalendar(limit.Month, time.UTC, 1), Cost: 3}
			takeOne(t, soft, op)
			var c tally
			stop := make(chan struct{})
			wait := c.load(t, 8, stop, soft, op)
			for range 20 {
				time.Sleep(15 * time.Millisecond)
				proxy.Requests(faults[0])
				proxy.Replies(faults[1])
				time.Sleep(10 * time.Millisecond)
				proxy.Requests(limittest.Pass)
				proxy.Replies(limittest.Pass)
			}
			close(stop)
			wait()
			var last error
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
				if last = soft.Flush(t.Context()); last == nil {
					break
				}
			}
			states := make([]limit.State, 1)
			if err := openRedis(t, addr, limit.RedisOptions{}).Peek(t.Context(), []limit.Op{op}, states); err != nil || last != nil {
				t.Fatal(err, last)
			}
			// One unit more than the load: takeOne's. A call that failed may have been charged.
			least := 3 * (c.passed.Load() + 1)
			if n := states[0].Used; n < least || n > least+3*c.failed.Load() {
				t.Errorf("%d units are counted, %d were admitted, %d calls failed", n, least, c.failed.Load())
			}
			if c.passed.Load() < 1000 {
				t.Errorf("%d passed: nothing was tried", c.passed.Load())
			}
		})
	}
}
