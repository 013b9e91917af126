package limit_test

import (
	"context"
	"testing"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"

	"github.com/redis/go-redis/v9"
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
