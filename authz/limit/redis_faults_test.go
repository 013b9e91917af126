package limit_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// tally counts what callers were told.
type tally struct {
	passed, refused, failed atomic.Int64
	longest                 atomic.Int64 // nanoseconds
}

const deadline = 50 * time.Millisecond

// ask makes one decision with a deadline and counts it.
func (c *tally) ask(t testing.TB, store limit.Store, ops []limit.Op) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	start := time.Now()
	refused, err := store.Take(ctx, ops, make([]limit.State, len(ops)))
	took := int64(time.Since(start))
	for last := c.longest.Load(); took > last && !c.longest.CompareAndSwap(last, took); last = c.longest.Load() {
	}
	switch {
	case err == nil && refused < 0:
		c.passed.Add(1)
	case err == nil:
		c.refused.Add(1)
	case errors.Is(err, limit.ErrUnavailable):
		c.failed.Add(1)
	default:
		t.Errorf("the error is %v", err)
	}
}

// prompt fails when a decision was held beyond its deadline, by more than a busy
// machine explains; by as much as the client's own timeout of a second would.
func (c *tally) prompt(t testing.TB) {
	t.Helper()
	if d := time.Duration(c.longest.Load()); d > deadline+900*time.Millisecond {
		t.Errorf("a decision took %v, with a deadline of %v", d, deadline)
	}
}

// load lets callers ask until stop is closed, and returns when all have ended.
func (c *tally) load(t testing.TB, callers int, stop <-chan struct{}, store limit.Store, ops ...limit.Op) (wait func()) {
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				c.ask(t, store, ops)
			}
		})
	}
	return all.Wait
}

// large is a bucket that nobody empties, and that gets nothing back in a test: what
// is missing from it was executed.
func large(tag string) limit.Op {
	return limit.Op{Tag: []byte(tag), Key: []byte("sluice:{" + tag + "}:large"),
		Refill: limit.NewRefill(1, 24*time.Hour), Burst: limit.MaxBurst, Cost: 1}
}

// used is how much was taken from an op's bucket.
func used(t testing.TB, store limit.Store, op limit.Op) int64 {
	t.Helper()
	states := make([]limit.State, 1)
	var err error
	for range 100 { // a pool that met many dead connections waits a second
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err = store.Peek(ctx, []limit.Op{op}, states)
		cancel()
		if err == nil {
			return op.Burst - states[0].Remaining
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the store does not come back: %v", err)
	return 0
}

// No decision is executed twice, whatever becomes of its request or its reply, and
// none that was answered is lost.
func TestRedisFaults(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][2]limittest.Fault{
		"replies lost":     {limittest.Pass, limittest.Drop},
		"replies cut":      {limittest.Pass, limittest.Cut},
		"replies held":     {limittest.Pass, limittest.Hold},
		"replies late":     {limittest.Pass, limittest.Slow},
		"requests lost":    {limittest.Drop, limittest.Pass},
		"requests cut":     {limittest.Cut, limittest.Pass},
		"requests held":    {limittest.Hold, limittest.Pass},
		"requests late":    {limittest.Slow, limittest.Pass},
		"replies repeated": {limittest.Pass, limittest.Repeat},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faulty(t, faults, func(addr string) *limit.Redis { return openRedis(t, addr, limit.RedisOptions{}) })
		})
		t.Run("cluster, "+name, func(t *testing.T) {
			t.Parallel()
			faulty(t, faults, func(addr string) *limit.Redis { return openAsCluster(t, addr) })
		})
	}
}

// openAsCluster asks one server as if it had all slots of a cluster.
func openAsCluster(t *testing.T, addr string) *limit.Redis {
	t.Helper()
	slots := []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: addr}}}}
	store := limit.NewRedis(redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots:          func(context.Context) ([]redis.ClusterSlot, error) { return slots, nil },
		ContextTimeoutEnabled: true, MaxRetries: -1, Protocol: 2, DisableIdentity: true, DisableRoutingPolicies: true,
		DialerRetries: 1, DialTimeout: time.Second, PipelinePoolSize: -1, PoolSize: 5,
	}), limit.RedisOptions{})
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func faulty(t *testing.T, faults [2]limittest.Fault, open func(addr string) *limit.Redis) {
	addr := limittest.StartRedis(t)
	proxy := limittest.StartProxy(t, addr)
	store, op := open(proxy.Addr), large("acme")
	var c tally
	stop := make(chan struct{})
	wait := c.load(t, 24, stop, store, op)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		time.Sleep(time.Duration(20+rng.IntN(40)) * time.Millisecond)
		proxy.Requests(faults[0])
		proxy.Replies(faults[1])
		time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
		proxy.Requests(limittest.Pass)
		proxy.Replies(limittest.Pass)
	}
	close(stop)
	wait()
	passed, failed := c.passed.Load(), c.failed.Load()
	if n := used(t, openRedis(t, addr, limit.RedisOptions{}), op); n < passed || n > passed+failed {
		t.Errorf("%d were charged; %d passed and %d may have", n, passed, failed)
	}
	late := faults[0] == limittest.Slow || faults[1] == limittest.Slow || faults[1] == limittest.Repeat
	if passed == 0 || (failed == 0 && !late) {
		t.Errorf("%d passed, %d failed: nothing was tried", passed, failed)
	}
	c.prompt(t)
	used(t, store, op) // it works again
}

// Replies that come twice must not be taken for the next decision's: of a limit of
// 100 not more than 100 pass.
func TestRedisRepliesThatComeTwice(t *testing.T) {
	t.Parallel()
	proxy := limittest.StartProxy(t, limittest.StartRedis(t))
	store := openRedis(t, proxy.Addr, limit.RedisOptions{})
	takeOne(t, store, speed(1))
	for round := range 20 {
		op := large("acme")
		op.Key, op.Burst = fmt.Appendf(nil, "sluice:{acme}:%d", round), 100
		var c tally
		stop := make(chan struct{})
		wait := c.load(t, 32, stop, store, op)
		for range 10 {
			proxy.Replies(limittest.Repeat)
			time.Sleep(2 * time.Millisecond)
			proxy.Replies(limittest.Pass)
			time.Sleep(2 * time.Millisecond)
		}
		close(stop)
		wait()
		if n := c.passed.Load(); n > 100 {
			t.Errorf("%d of 100 passed; %d were refused, %d failed", n, c.refused.Load(), c.failed.Load())
		}
	}
}
