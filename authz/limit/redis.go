package limit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisOptions are the choices of a Redis; the zero value is good.
type RedisOptions struct {
	// Grace is how long a full bucket is kept, and how far the server's clock may
	// step back without giving anything twice; 1 s if 0, which is also the least.
	Grace time.Duration
	// PoolSize is how many connections OpenRedis keeps to a server at most; enough
	// for the pipeline if 0. They are few: what is more waits in a queue.
	PoolSize int
	// Logger is told what the client says of its connections, which otherwise goes
	// to standard error. The client has one logger for the whole process: of several
	// stores, the last one opened with a Logger decides.
	Logger *slog.Logger
	// Now is for tests: it stands in for the server's clock, from 1970 to 2255. Keys
	// still expire by the server's own; give such a store a Grace of an hour.
	Now func() time.Time
}

// Redis is the Store that many processes share: one script call for a decision,
// on the server's clock.
//
// Nothing is ever sent twice but to a server that did not know the script, or
// did not have the keys, and so did nothing. A Take without a deadline in its
// context waits as long as the client's timeouts allow (see OpenRedis).
type Redis struct {
	client  redis.UniversalClient
	node    *node    // the only server, or the master that sentinels name
	cluster *cluster // or many
	take    *script
	now     func() time.Time
	grace   int64     // milliseconds
	calls   sync.Pool // of *call
	called  atomic.Int64
}

// NewRedis makes a store on a client, which Close closes. The client must honour
// deadlines (ContextTimeoutEnabled) and repeat nothing (MaxRetries -1), or a
// charge that timed out is made again: NewRedis panics with "BUG:" if it sees
// otherwise. OpenRedis makes such a client.
func NewRedis(client redis.UniversalClient, o RedisOptions) *Redis {
	return newRedis(client, &dialer{}, o)
}

func newRedis(client redis.UniversalClient, d *dialer, o RedisOptions) *Redis {
	r := &Redis{
		client: client,
		take:   newScript(stepScript()),
		now:    o.Now,
		grace:  max(o.Grace, time.Second).Milliseconds(),
	}
	scripts := []*script{r.take}
	deadlines, retries := false, 0
	switch c := client.(type) {
	case *redis.Client:
		deadlines, retries = c.Options().ContextTimeoutEnabled, c.Options().MaxRetries
		r.node = newNode(c, d, scripts)
	case *redis.ClusterClient:
		deadlines, retries = c.Options().ContextTimeoutEnabled, c.Options().MaxRetries
		r.cluster = newCluster(c, d, scripts)
	}
	if !deadlines || retries > 0 {
		panic("BUG: a limit store's Redis client needs ContextTimeoutEnabled and MaxRetries -1")
	}
	r.calls.New = func() any { return newCall(&r.take.sha) }
	return r
}

// Take implements Store.
func (r *Redis) Take(ctx context.Context, ops []Op, states []State) (int, error) {
	return r.step(ctx, verbTake, ops, states)
}

// Peek implements Store.
func (r *Redis) Peek(ctx context.Context, ops []Op, states []State) error {
	_, err := r.step(ctx, verbPeek, ops, states)
	return err
}

// Settle implements Store.
func (r *Redis) Settle(ctx context.Context, id []byte, ops []Op, deltas []int64) error {
	checkSettle(id, ops, deltas)
	if len(ops) == 0 {
		return nil
	}
	if r.apart(ops) {
		return r.settleParts(ctx, id, ops, deltas)
	}
	_, err := r.call(ctx, verbSettle, ops, deltas, id)
	return err
}

// Reset implements Store.
func (r *Redis) Reset(ctx context.Context, ops []Op) error {
	checkOps(ops, len(ops))
	if len(ops) == 0 {
		return nil
	}
	if r.apart(ops) {
		return r.resetParts(ctx, ops)
	}
	_, err := r.call(ctx, verbReset, ops, nil, nil)
	return err
}

// Close implements Store.
func (r *Redis) Close() error { return r.client.Close() }

func (r *Redis) step(ctx context.Context, v verb, ops []Op, states []State) (int, error) {
	checkTake(ops, states)
	if len(ops) == 0 {
		return -1, nil
	}
	if r.apart(ops) {
		return r.stepParts(ctx, v, ops, states)
	}
	if err := r.trip(ctx, v, ops, states); err != nil {
		return -1, err
	}
	return refusal(ops, states), nil
}

// trip is one decision about ops of one slot.
func (r *Redis) trip(ctx context.Context, v verb, ops []Op, states []State) error {
	reply, err := r.call(ctx, v, ops, nil, nil)
	if err != nil {
		return err
	}
	if err := decode(reply, ops, states); err != nil {
		return unavailable(ctx, err)
	}
	return nil
}

// call is one script call about ops of one slot.
func (r *Redis) call(ctx context.Context, v verb, ops []Op, deltas []int64, id []byte) (string, error) {
	var now time.Time
	if r.now != nil {
		now = r.now()
	}
	c := r.calls.Get().(*call)
	c.number = r.called.Add(1)
	args := c.encode(v, ops, deltas, id, now, r.grace)
	reply, err := r.run(ctx, r.take, args)
	if err == nil {
		reply, err = c.claim(reply)
	}
	if err != nil {
		// The client may still hold the arguments: they are left to it.
		return "", unavailable(ctx, err)
	}
	r.calls.Put(c)
	return reply, nil
}

// run executes a script at most once, where the first key lives.
func (r *Redis) run(ctx context.Context, s *script, args []any) (string, error) {
	if r.cluster != nil {
		return r.cluster.run(ctx, s, args)
	}
	return r.node.run(ctx, args)
}

// warm connects before there is something to decide.
func (r *Redis) warm(ctx context.Context) error {
	if r.cluster != nil {
		return r.cluster.warm(ctx)
	}
	return r.node.warm(ctx)
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

// readOnly tells whether a replica answered, in either form.
func readOnly(err error) bool {
	return redis.IsReadOnlyError(err) || strings.Contains(err.Error(), "-READONLY ")
}
