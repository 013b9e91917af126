package limit_test

import (
	"strings"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// kinds are one op of each kind but Rate, whose keys begin with sluice:{acme}.
func kinds() map[string]limit.Op {
	op := func(name string, kind limit.Kind, cost int64) limit.Op {
		return limit.Op{Tag: []byte("acme"), Key: []byte("sluice:{acme}:" + name), Kind: kind, Max: 100, Length: time.Hour, Cost: cost}
	}
	quota := op("quota", limit.Quota, 7)
	quota.Calendar = limit.NewCalendar(limit.Day, time.UTC, 1)
	lease := op("lease", limit.Concurrency, 1)
	lease.ID = []byte("request 1")
	retries := speed(1)
	retries.Key, retries.Kind = []byte("sluice:{acme}:retries"), limit.Retries
	return map[string]limit.Op{
		"fixed": op("fixed", limit.FixedWindow, 7), "sliding": op("sliding", limit.SlidingWindow, 7),
		"log": op("log", limit.LogWindow, 7), "quota": quota, "lease": lease, "retries": retries,
	}
}

// C077, C078: a key lives as long as it can matter, and a second more.
func TestRedisKeysOfEveryKind(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store, client := openRedis(t, addr, limit.RedisOptions{}), plainClient(t, addr)
	for name, op := range kinds() {
		key := string(op.Key)
		if denied := op; op.Kind != limit.Concurrency && op.Kind != limit.Retries { // a denial writes nothing
			denied.Cost = 101
			if takeOne(t, store, denied).Fits || client.Exists(t.Context(), key).Val() != 0 {
				t.Errorf("%s: a denial has written", name)
			}
		}
		s := takeOne(t, store, op)
		life := s.Reset
		if op.Kind == limit.Concurrency {
			life = op.Length
		}
		ttl := client.PTTL(t.Context(), key).Val()
		if ttl < life || ttl > life+1001*time.Millisecond {
			t.Errorf("%s: the key lives %v, want %v and at most a second", name, ttl, life)
		}
		want := "embstr"
		switch op.Kind {
		case limit.LogWindow:
			want = "embstr raw" // it grows
		case limit.Concurrency:
			want = "listpack ziplist" // by the version
		}
		if kind := client.ObjectEncoding(t.Context(), key).Val(); !strings.Contains(want, kind) {
			t.Errorf("%s is stored as %q, want %q", name, kind, want)
		}
		client.Persist(t.Context(), key)
		if op.Kind == limit.Concurrency {
			op.ID = []byte("request 2")
		}
		takeOne(t, store, op)
		if ttl := client.PTTL(t.Context(), key).Val(); ttl <= 0 {
			t.Errorf("%s: a lost expiry is not healed: %v", name, ttl)
		}
		if err := store.Reset(t.Context(), []limit.Op{op}); err != nil || client.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s: after a reset the key is there (%v)", name, err)
		}
	}
}

// What is no counter of the kind counts as nothing, and is healed by the next charge.
func TestRedisHealsEveryKind(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store, client := openRedis(t, addr, limit.RedisOptions{}), plainClient(t, addr)
	for name, op := range kinds() {
		if op.Kind == limit.Concurrency {
			continue // a sorted set
		}
		takeOne(t, store, op)
		good := client.Get(t.Context(), string(op.Key)).Val()
		nan, minus := "\x00\x00\x00\x00\x00\x00\xf8\x7f", "\x00\x00\x00\x00\x00\x00\xf0\xbf"
		for what, value := range map[string]string{
			"nothing": "", "a number": "12345", "cut short": good[:len(good)-1], "too long": good + "x",
			"another kind": "x" + good[1:], "no length": good[:9] + nan + good[17:], "below 0": good[:17] + minus + good[25:],
			"all zero": strings.Repeat("\x00", len(good)),
		} {
			client.Set(t.Context(), string(op.Key), value, 0)
			s := takeOne(t, store, op)
			if limits := op.Limit(); !s.Fits || s.Remaining != limits-op.Cost {
				t.Errorf("%s, %s: a charge says %+v, want %d of %d left", name, what, s, limits-op.Cost, limits)
			}
			if now := client.Get(t.Context(), string(op.Key)).Val(); len(now) != len(good) {
				t.Errorf("%s, %s: not healed: %q", name, what, now)
			}
		}
	}
}

// An id is one small key for a minute, and a correction's, too.
func TestRedisMarks(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store, client := openRedis(t, addr, limit.RedisOptions{}), plainClient(t, addr)
	quota := kinds()["quota"]
	quota.ID = []byte("request 1")
	takeOne(t, store, quota)
	if err := store.Settle(t.Context(), []byte("end of 1"), []limit.Op{quota}, []int64{1}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"request 1", "end of 1"} {
		ttl := client.PTTL(t.Context(), string(quota.Key)+"#"+id).Val()
		if ttl < limit.Remember-time.Second || ttl > limit.Remember+time.Second {
			t.Errorf("%s is remembered for %v", id, ttl)
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != 3 {
		t.Errorf("%d keys, want the quota's and two marks", n)
	}
}

func TestRedisInstancesShareEveryKind(t *testing.T) { // alone: 64 callers want an answer within a second
	addr := limittest.StartRedis(t)
	limittest.StormKinds(t, openRedis(t, addr, limit.RedisOptions{}), openRedis(t, addr, limit.RedisOptions{}), openRedis(t, addr, limit.RedisOptions{}))
}

// What a Redis holds for a counter, printed with -v.
func TestRedisBytesOfEveryKind(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store, client := openRedis(t, addr, limit.RedisOptions{}), plainClient(t, addr)
	all := kinds()
	all["rate"] = speed(1)
	for name, op := range all {
		takeOne(t, store, op)
		bytes := client.MemoryUsage(t.Context(), string(op.Key)).Val()
		t.Logf("%-8s %d bytes", name, bytes)
		if bytes > 250 {
			t.Errorf("%s takes %d bytes", name, bytes)
		}
	}
}
