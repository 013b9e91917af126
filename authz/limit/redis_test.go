package limit_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	limittest.Run(t, func(t testing.TB) (limit.Store, *limittest.Clock) {
		plainClient(t, addr).FlushDB(context.Background()) // our own server
		clock := limittest.NewClock()
		return openRedis(t, addr, limit.RedisOptions{Now: clock.Now, Grace: limittest.Grace}), clock
	})
}

func openRedis(t testing.TB, addr string, o limit.RedisOptions) *limit.Redis {
	t.Helper()
	store, err := limit.OpenRedis("redis://"+addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// plainClient is somebody else's way into the same Redis.
func plainClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

const speedKey = "sluice:{acme}:speed"

// speed is a bucket of 3 at 6 units an hour.
func speed(cost int64) limit.Op {
	return limit.Op{Tag: []byte("acme"), Key: []byte(speedKey), Refill: limit.NewRefill(6*limit.Unit, time.Hour), Burst: 3, Cost: cost}
}

func takeOne(t testing.TB, store limit.Store, op limit.Op) limit.State {
	t.Helper()
	states := make([]limit.State, 1)
	if _, err := store.Take(t.Context(), []limit.Op{op}, states); err != nil {
		t.Fatalf("Take: %v", err)
	}
	return states[0]
}

func TestRedisOnItsOwnClock(t *testing.T) {
	t.Parallel()
	store := openRedis(t, limittest.StartRedis(t), limit.RedisOptions{})
	op := speed(1)
	op.Refill, op.Burst = limit.NewRefill(2*limit.Unit, time.Second), 1
	if !takeOne(t, store, op).Fits {
		t.Fatal("a new bucket refused")
	}
	denied := takeOne(t, store, op)
	if denied.Fits || denied.Wait <= 0 || denied.Wait > 500*time.Millisecond {
		t.Fatalf("the second is answered %+v", denied)
	}
	time.Sleep(denied.Wait + time.Millisecond)
	if !takeOne(t, store, op).Fits {
		t.Error("after its wait it does not fit")
	}
}

// C077: a key outlives the time to full, by a margin, in whole milliseconds, and
// every write says so again.
func TestRedisKeysOutliveTheirBucket(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store, client := openRedis(t, addr, limit.RedisOptions{}), plainClient(t, addr)
	for used := 1; used <= 3; used++ {
		takeOne(t, store, speed(1))
		ttl := client.PTTL(t.Context(), speedKey).Val()
		full := time.Duration(used) * 10 * time.Minute
		if ttl < full-5*time.Second || ttl > full+time.Second {
			t.Errorf("after %d of 3 the key lives %v, want %v and 1 s, less what the test took", used, ttl, full)
		}
	}
	quick := speed(1)
	quick.Key, quick.Refill, quick.Burst = []byte("sluice:{acme}:quick"), limit.NewRefill(limit.MaxBurst*limit.Unit, time.Microsecond), 1
	takeOne(t, store, quick)
	if ttl := client.PTTL(t.Context(), string(quick.Key)).Val(); ttl <= 0 || ttl > 1001*time.Millisecond {
		t.Errorf("a bucket that is full at once lives %v, want 1 s", ttl)
	}
	// One string in one piece, and nothing else.
	if kind := client.ObjectEncoding(t.Context(), speedKey).Val(); kind != "embstr" {
		t.Errorf("the bucket is stored as %q", kind)
	}
	if n := client.DBSize(t.Context()).Val(); n != 2 {
		t.Errorf("%d keys for two buckets", n)
	}
}

// C078: what is missing or no bucket is full, and is healed by the next charge;
// so is a lost expiry.
func TestRedisHeals(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store, client := openRedis(t, addr, limit.RedisOptions{}), plainClient(t, addr)
	takeOne(t, store, speed(2))
	good := client.Get(t.Context(), speedKey).Val()
	if len(good) != 41 {
		t.Fatalf("a bucket has %d bytes, want 41", len(good))
	}
	minus, nan, huge := "\xf0\xbf", "\xf8\x7f", "\xf0\x7f"
	for name, value := range map[string]string{
		"nothing":         "",
		"a number":        "12345",
		"cut short":       good[:40],
		"too long":        good + "x",
		"another kind":    "w" + good[1:],
		"level below 0":   good[:7] + minus + good[9:],
		"half a micro":    good[:1] + "\x00\x00\x00\x00\x00\x00\xe0\x3f" + good[9:],
		"level not one":   good[:7] + nan + good[9:],
		"endless time":    good[:15] + huge + good[17:],
		"refill below 0":  good[:23] + minus + good[25:],
		"endless period":  good[:31] + huge + good[33:],
		"zero period":     good[:25] + strings.Repeat("\x00", 8) + good[33:],
		"burst below 0":   good[:39] + minus,
		"all zero":        strings.Repeat("\x00", 41),
		"all zero bucket": "b" + strings.Repeat("\x00", 40),
	} {
		client.Set(t.Context(), speedKey, value, 0)
		if s := takeOne(t, store, speed(4)); s.Remaining != 3 || s.Wait != limit.Never {
			t.Errorf("%s: a look says %+v, want full", name, s)
		}
		if s := takeOne(t, store, speed(1)); !s.Fits || s.Remaining != 2 {
			t.Errorf("%s: a charge says %+v, want 2 of 3", name, s)
		}
		if s := takeOne(t, store, speed(1)); !s.Fits || s.Remaining != 1 {
			t.Errorf("%s: it is not healed: %+v", name, s)
		}
		if ttl := client.PTTL(t.Context(), speedKey).Val(); ttl <= 0 {
			t.Errorf("%s: the healed key lives %v", name, ttl)
		}
	}
	client.Persist(t.Context(), speedKey)
	if s := takeOne(t, store, speed(1)); s.Remaining != 0 {
		t.Errorf("a bucket without expiry: %+v, want the last of its units taken", s)
	}
	if ttl := client.PTTL(t.Context(), speedKey).Val(); ttl <= 0 {
		t.Errorf("the expiry is not healed: %v", ttl)
	}
}

// C082: an empty script cache is filled once and each decision is charged once.
func TestRedisForgetsTheScript(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store, client := openRedis(t, addr, limit.RedisOptions{}), plainClient(t, addr)
	op := speed(1)
	op.Burst = 1000
	takeOne(t, store, op)
	for round := range 3 {
		client.ScriptFlush(t.Context())
		client.ConfigResetStat(t.Context())
		var callers sync.WaitGroup
		for range 32 {
			callers.Go(func() {
				if _, err := store.Take(t.Context(), []limit.Op{op}, make([]limit.State, 1)); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		if left := takeOne(t, store, op).Remaining; left != int64(998-33*round-32) {
			t.Errorf("round %d: %d left, want %d", round, left, 998-33*round-32)
		}
		stats := client.Info(t.Context(), "commandstats").Val()
		if !strings.Contains(stats, "cmdstat_script|load:calls=1,") {
			t.Errorf("round %d: the script was not loaded exactly once:\n%s", round, stats)
		}
	}
}

func TestRedisInstancesShareABucket(t *testing.T) { // alone: 64 callers want an answer within a second
	addr := limittest.StartRedis(t)
	limittest.Storm(t, openRedis(t, addr, limit.RedisOptions{}), openRedis(t, addr, limit.RedisOptions{}), openRedis(t, addr, limit.RedisOptions{}))
}

// A unix socket, a database of its own, and a user's password in the URL.
func TestOpenRedisOnASocket(t *testing.T) {
	t.Parallel()
	socket := t.TempDir() + "/r.sock"
	addr := limittest.StartRedis(t, "--unixsocket", socket)
	client := plainClient(t, addr)
	if err := client.Do(t.Context(), "ACL", "SETUSER", "sluice", "on", ">p@ss", "~sluice:*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	store, err := limit.OpenRedis(fmt.Sprintf("unix://sluice:p%%40ss@%s?db=3", socket), limit.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	takeOne(t, store, speed(1))
	if keys := client.Info(t.Context(), "keyspace").Val(); !strings.Contains(keys, "db3:keys=1") {
		t.Errorf("the bucket is not in database 3: %s", keys)
	}
}
