package limit

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed take.lua
var takeScript string

// RedisOptions are the choices of a Redis; the zero value is good.
type RedisOptions struct {
	// Grace is how long a full bucket is kept, and how far the server's clock may
	// step back without giving anything twice; 1 s if 0, which is also the least.
	Grace time.Duration
	// PoolSize is how many connections OpenRedis allows; 10 per processor if 0.
	PoolSize int
	// Now is for tests: it stands in for the server's clock, from 1970 to 2255. Keys
	// still expire by the server's own; give such a store a Grace of an hour.
	Now func() time.Time
}

// Redis is the Store that many processes share: one script call for a decision,
// on the server's clock.
//
// Nothing is ever sent twice but to a server that did not know the script, and so
// did nothing. A Take without a deadline in its context waits as long as the
// client's timeouts allow (see OpenRedis).
type Redis struct {
	client redis.UniversalClient
	now    func() time.Time
	grace  int64 // milliseconds
	sha    string
	calls  sync.Pool // of *call
	// loading is held by the one that loads the script; loads counts how often it
	// was loaded, so that the others see that it was done for them.
	loading chan struct{}
	loads   atomic.Uint64
}

// NewRedis makes a store on a client, which Close closes. The client must honour
// deadlines (ContextTimeoutEnabled) and repeat nothing (MaxRetries -1), or a
// charge that timed out is made again: NewRedis panics with "BUG:" if it sees
// otherwise. OpenRedis makes such a client.
func NewRedis(client redis.UniversalClient, o RedisOptions) *Redis {
	if c, ok := client.(*redis.Client); ok {
		if opt := c.Options(); !opt.ContextTimeoutEnabled || opt.MaxRetries > 0 {
			panic("BUG: a limit store's Redis client needs ContextTimeoutEnabled and MaxRetries -1")
		}
	}
	sum := sha1.Sum([]byte(takeScript))
	r := &Redis{
		client:  client,
		now:     o.Now,
		grace:   max(o.Grace, time.Second).Milliseconds(),
		sha:     hex.EncodeToString(sum[:]),
		loading: make(chan struct{}, 1),
	}
	r.calls.New = func() any { return newCall(&r.sha) }
	return r
}

// Take implements Store.
func (r *Redis) Take(ctx context.Context, ops []Op, states []State) (int, error) {
	return r.step(ctx, ops, states, true)
}

// Peek implements Store.
func (r *Redis) Peek(ctx context.Context, ops []Op, states []State) error {
	_, err := r.step(ctx, ops, states, false)
	return err
}

// Settle implements Store.
func (r *Redis) Settle(_ context.Context, id []byte, ops []Op, deltas []int64) error {
	checkSettle(id, ops, deltas)
	return errLater
}

// Reset implements Store.
func (r *Redis) Reset(_ context.Context, ops []Op) error {
	checkOps(ops, len(ops))
	return errLater
}

// Close implements Store.
func (r *Redis) Close() error { return r.client.Close() }

func (r *Redis) step(ctx context.Context, ops []Op, states []State, charge bool) (int, error) {
	checkTake(ops, states)
	if len(ops) == 0 {
		return -1, nil
	}
	now := int64(-1)
	if r.now != nil {
		now = r.now().UnixMicro()
	}
	c := r.calls.Get().(*call)
	args := c.encode(ops, now, r.grace, charge)
	reply, err := r.run(ctx, args)
	if err != nil {
		// The client may still hold the arguments: they are left to it.
		return -1, unavailable(ctx, err)
	}
	r.calls.Put(c)
	if err := decode(reply, ops, states); err != nil {
		return -1, unavailable(ctx, err)
	}
	return refusal(ops, states), nil
}

// run calls the script, and once more if the server did not know it: after a
// restart, a failover, a SCRIPT FLUSH.
func (r *Redis) run(ctx context.Context, args []any) (string, error) {
	seen := r.loads.Load()
	reply, err := r.evalsha(ctx, args)
	if err == nil || !redis.HasErrorPrefix(err, "NOSCRIPT") {
		return reply, err
	}
	if err := r.load(ctx, seen); err != nil {
		return "", fmt.Errorf("cannot load the script: %w", err)
	}
	return r.evalsha(ctx, args)
}

func (r *Redis) evalsha(ctx context.Context, args []any) (string, error) {
	cmd := redis.NewStringCmd(ctx, args...)
	cmd.SetFirstKeyPos(firstKey)
	err := r.client.Process(ctx, cmd)
	return cmd.Val(), err
}

// load loads the script, unless somebody has since the caller looked: a thousand
// decisions that meet an empty server load it once.
func (r *Redis) load(ctx context.Context, seen uint64) error {
	select {
	case r.loading <- struct{}{}:
		defer func() { <-r.loading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.loads.Load() != seen {
		return nil
	}
	if err := r.client.ScriptLoad(ctx, takeScript).Err(); err != nil {
		return err
	}
	r.loads.Add(1)
	return nil
}

// unavailable wraps a failure and what caused it. When the context is over, that
// is the cause, whatever the client made of it; its own timer may even be a
// moment earlier than the context's.
func unavailable(ctx context.Context, err error) error {
	cause := ctx.Err()
	if cause == nil && errors.Is(err, os.ErrDeadlineExceeded) {
		cause = context.DeadlineExceeded
	}
	if cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w: %w", ErrUnavailable, cause, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
