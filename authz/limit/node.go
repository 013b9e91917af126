package limit

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// node is one server, as a store speaks with it.
type node struct {
	client *redis.Client
	// do sends a command once and waits for its reply: the pipeline's, but for
	// benchmarks of other ways.
	do      func(ctx context.Context, args []any) (string, error)
	dialer  *dialer
	scripts []*script
	// loading is held by the one that loads the scripts; loads counts how often they
	// were loaded, so that the others see that it was done for them.
	loading chan struct{}
	loads   atomic.Uint64
}

func newNode(client *redis.Client, d *dialer, scripts []*script) *node {
	return &node{
		client:  client,
		do:      newPipeline(client).do,
		dialer:  d,
		scripts: scripts,
		loading: make(chan struct{}, 1),
	}
}

// run calls a script, and once more if the server did not know it: after a
// restart, a failover, a SCRIPT FLUSH.
func (n *node) run(ctx context.Context, args []any) (string, error) {
	seen := n.loads.Load()
	reply, err := n.do(ctx, args)
	if err == nil {
		return reply, nil
	}
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		if err := n.load(ctx, seen); err != nil {
			return "", fmt.Errorf("cannot load the script: %w", err)
		}
		reply, err = n.do(ctx, args)
	}
	if err != nil && readOnly(err) {
		n.dialer.renew()
	}
	return reply, err
}

// warm makes the connections that the pipeline will want, and loads the scripts:
// a first storm that dials is a storm that misses its deadlines. Two that warm at
// the same time would each hold a part of the pool and wait for the rest.
func (n *node) warm(ctx context.Context) error {
	if err := n.lock(ctx); err != nil {
		return err
	}
	defer n.unlock()
	conns := make([]*redis.Conn, min(n.client.Options().PoolSize, poolSize))
	for i := range conns {
		conns[i] = n.client.Conn()
		defer conns[i].Close() // back into the pool
	}
	for _, c := range conns {
		if err := c.Ping(ctx).Err(); err != nil {
			return err
		}
	}
	return n.loadAll(ctx, conns[0])
}

// load loads the scripts, unless somebody has since the caller looked: a thousand
// decisions that meet an empty server load them once.
func (n *node) load(ctx context.Context, seen uint64) error {
	if err := n.lock(ctx); err != nil {
		return err
	}
	defer n.unlock()
	if n.loads.Load() != seen {
		return nil
	}
	return n.loadAll(ctx, n.client)
}

func (n *node) lock(ctx context.Context) error {
	select {
	case n.loading <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *node) unlock() { <-n.loading }

func (n *node) loadAll(ctx context.Context, client redis.Scripter) error {
	for _, s := range n.scripts {
		if err := client.ScriptLoad(ctx, s.text).Err(); err != nil {
			return err
		}
	}
	n.loads.Add(1)
	return nil
}
