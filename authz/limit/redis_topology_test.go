package limit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

func openURL(t testing.TB, url string, o limit.RedisOptions) *limit.Redis {
	t.Helper()
	store, err := limit.OpenRedis(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// A master dies, sentinels name another one, and the store finds it. What the
// replica had not yet heard of is lost with the master, but not what was charged
// after the failover.
func TestRedisSentinelFailover(t *testing.T) {
	t.Parallel()
	s := limittest.StartSentinel(t)
	store, op := openURL(t, s.URL(), limit.RedisOptions{}), large("acme")
	takeOne(t, store, op)
	var c tally
	stop := make(chan struct{})
	wait := c.load(t, 16, stop, store, op)
	time.Sleep(300 * time.Millisecond)
	s.Master.Kill()
	killed := time.Now()
	before := c.passed.Load()
	for c.passed.Load() < before+200 {
		if time.Since(killed) > 20*time.Second {
			t.Fatal("nothing passes 20 s after the master died")
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("the store works again %v after its master died; %d passed, %d failed", time.Since(killed).Round(time.Millisecond), c.passed.Load(), c.failed.Load())
	close(stop)
	wait()
	// Everything that passed lately is on the new master.
	n := used(t, openRedis(t, s.Replica.Addr, limit.RedisOptions{}), op)
	if passed, failed := c.passed.Load()+1, c.failed.Load(); n > passed+failed || n < 200 {
		t.Errorf("%d were charged; %d passed, and %d may have", n, passed, failed)
	}
	c.prompt(t)
}

// A master that is well is replaced, as for maintenance. It would still take what
// is sent to it, for nothing: nobody may stick to it.
func TestRedisSentinelPlannedFailover(t *testing.T) {
	t.Parallel()
	s := limittest.StartSentinel(t)
	store, op := openURL(t, s.URL(), limit.RedisOptions{}), large("acme")
	takeOne(t, store, op)
	var c tally
	const callers = 16
	stop := make(chan struct{})
	wait := c.load(t, callers, stop, store, op)
	time.Sleep(100 * time.Millisecond)
	s.Failover(t)
	time.Sleep(time.Second)
	promoted := openRedis(t, s.Replica.Addr, limit.RedisOptions{})
	was := used(t, promoted, op)
	before := c.passed.Load()
	time.Sleep(300 * time.Millisecond)
	close(stop)
	wait()
	passed, charged := c.passed.Load()-before, used(t, promoted, op)-was
	if passed == 0 || charged < passed-callers {
		t.Errorf("a second after the failover %d passed, and the new master was charged %d", passed, charged)
	}
	c.prompt(t)
}

// A master of a cluster dies: its slots' decisions fail in time, and those of the
// other slots do not notice.
func TestRedisClusterLosesAMaster(t *testing.T) {
	t.Parallel()
	cluster := limittest.StartCluster(t, 3, "--cluster-require-full-coverage", "no")
	store := openURL(t, cluster.URL(), limit.RedisOptions{})
	tags := map[int]string{} // by owner
	for i := 0; len(tags) < 3; i++ {
		tag := fmt.Sprintf("tenant%d", i)
		node, _ := cluster.Owner(string(large(tag).Key))
		tags[node] = tag
	}
	dying, well := large(tags[1]), large(tags[2])
	takeOne(t, store, dying)
	takeOne(t, store, well)
	var lost, kept tally
	stop := make(chan struct{})
	waitLost, waitKept := lost.load(t, 8, stop, store, dying), kept.load(t, 8, stop, store, well)
	time.Sleep(100 * time.Millisecond)
	cluster.Nodes[1].Kill()
	before := kept.passed.Load()
	time.Sleep(700 * time.Millisecond)
	close(stop)
	waitLost()
	waitKept()
	if passed, failed := kept.passed.Load(), kept.failed.Load(); passed == before || failed > passed/10 {
		t.Errorf("beside a dead master %d of another one passed, and %d failed", passed-before, failed)
	}
	if lost.failed.Load() == 0 {
		t.Error("nothing failed")
	}
	lost.prompt(t)
	kept.prompt(t)
}

// Slots move under load: what is moved is neither lost nor charged twice, and a
// small limit stays one.
func TestRedisClusterMovesSlots(t *testing.T) {
	t.Parallel()
	cluster := limittest.StartCluster(t, 3)
	store, op := openURL(t, cluster.URL(), limit.RedisOptions{}), large("acme")
	// Another key of the slot, so that decisions meet it half moved.
	small := limit.Op{Tag: op.Tag, Key: []byte("sluice:{acme}:small"), Refill: limit.NewRefill(1, time.Hour), Burst: 100, Cost: 1}
	takeOne(t, store, op)
	var c, limited tally
	stop := make(chan struct{})
	wait := c.load(t, 8, stop, store, op)
	waitLimited := limited.load(t, 4, stop, store, small, op)
	from, slot := cluster.Owner(string(op.Key))
	for range 3 {
		to := (from + 1) % 3
		cluster.Move(slot, from, to, func() { time.Sleep(20 * time.Millisecond) })
		from = to
	}
	time.Sleep(100 * time.Millisecond)
	close(stop)
	wait()
	waitLimited()
	passed, failed := 1+c.passed.Load()+limited.passed.Load(), c.failed.Load()+limited.failed.Load()
	if n := used(t, store, op); n < passed || n > passed+failed {
		t.Errorf("%d were charged; %d passed and %d may have", n, passed, failed)
	}
	if n := limited.passed.Load(); n > 100 || n < 100-limited.failed.Load() {
		t.Errorf("a limit of 100 let %d pass; %d failed", n, limited.failed.Load())
	}
	if failed > passed/10 {
		t.Errorf("%d of %d decisions failed", failed, passed+failed)
	}
	t.Logf("%d passed, %d failed", passed, failed)
	c.prompt(t)
}

// The whole suite on a cluster, where the tags of a decision are in several slots.
func TestRedisCluster(t *testing.T) {
	t.Parallel()
	cluster := limittest.StartCluster(t, 3)
	limittest.Run(t, func(t testing.TB) (limit.Store, *limittest.Clock) {
		if strings.HasSuffix(t.Name(), "/a_random_history") {
			t.Skip("what is given back has lost the fraction of a refill that it was taken with")
		}
		for _, node := range cluster.Nodes {
			plainClient(t, node.Addr).FlushDB(context.Background()) // our own servers
		}
		clock := limittest.NewClock()
		return openURL(t, cluster.URL(), limit.RedisOptions{Now: clock.Now, Grace: limittest.Grace}), clock
	})
}

// Limits of several slots: what one slot's limit lets pass and another's refuses is
// given back, and no limit lets more pass than it has.
func TestRedisClusterGivesBack(t *testing.T) {
	t.Parallel()
	cluster := limittest.StartCluster(t, 3)
	store := openURL(t, cluster.URL(), limit.RedisOptions{})
	own := func(i int) limit.Op { return large(fmt.Sprintf("tenant%d", i)) }
	shared := limit.Op{Tag: []byte("everybody"), Key: []byte("sluice:{everybody}:small"), Refill: limit.NewRefill(1, 24*time.Hour), Burst: 100, Cost: 1}
	retry := large("route")
	retry.Kind = limit.Retries
	quota := limit.Op{Kind: limit.FixedWindow, Tag: []byte("route"), Key: []byte("sluice:{route}:window"), Max: 1_000_000, Length: limit.MaxPeriod, Cost: 3}
	var c tally
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 20 {
				c.ask(t, store, []limit.Op{own(i % 4), shared, retry, quota})
			}
		})
	}
	all.Wait()
	passed, failed := c.passed.Load(), c.failed.Load()
	if passed > 100 || passed < 100-failed {
		t.Fatalf("a limit of 100 let %d pass; %d failed", passed, failed)
	}
	sum := int64(0)
	for i := range 4 {
		sum += used(t, store, own(i))
	}
	if sum < passed || sum > passed+failed {
		t.Errorf("the tenants were charged %d for %d that passed; %d failed", sum, passed, failed)
	}
	if n := used(t, store, retry); n < 320-failed || n > 320 {
		t.Errorf("%d retries were charged, want those of all 320 decisions; %d failed", n, failed)
	}
	states := make([]limit.State, 1)
	if err := store.Peek(t.Context(), []limit.Op{quota}, states); err != nil || states[0].Used < 3*passed || states[0].Used > 3*(passed+failed) {
		t.Errorf("the window counts %d for %d that passed (error %v)", states[0].Used, passed, err)
	}
	// The first slot's refusal costs the others nothing, and all are answered.
	over := own(0)
	over.Cost = limit.MaxBurst
	answers := make([]limit.State, 3)
	refused, err := store.Take(t.Context(), []limit.Op{over, quota, retry}, answers)
	if err != nil || refused != 0 || answers[0].Fits || !answers[1].Fits || answers[1].Used != states[0].Used {
		t.Errorf("refused %d, states %+v, error %v", refused, answers, err)
	}
	// Corrections reach every slot.
	op, deltas := own(0), []int64{-1, 5}
	before := used(t, store, op)
	quota.Stamp = answers[1].Stamp
	if err := store.Settle(t.Context(), []byte("a request"), []limit.Op{op, quota}, deltas); err != nil {
		t.Fatal(err)
	}
	if err := store.Peek(t.Context(), []limit.Op{quota}, states); err != nil || states[0].Used != answers[1].Used+5 || used(t, store, op) != before-1 {
		t.Errorf("after a correction: %+v and %d, error %v", states[0], used(t, store, op), err)
	}
	if err := store.Reset(t.Context(), []limit.Op{op, quota}); err != nil || used(t, store, op) != 0 {
		t.Errorf("after a reset %d are used, error %v", used(t, store, op), err)
	}
}
