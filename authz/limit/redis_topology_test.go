package limit_test

import (
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

func TestRedisCluster(t *testing.T) {
	t.Parallel()
	cluster := limittest.StartCluster(t, 3)
	store, op := openURL(t, cluster.URL(), limit.RedisOptions{}), large("acme")
	for range 3 {
		takeOne(t, store, op)
	}
	if n := used(t, store, op); n != 3 {
		t.Errorf("%d were charged, want 3", n)
	}
}
