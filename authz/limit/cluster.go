package limit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// cluster is many servers, each with a part of the slots.
//
// A command goes to the server that had its slot when we last looked, by this
// server's own pipeline: one that is slow holds nobody else up. Only an answer
// that proves that nothing happened lets it be sent again: MOVED, ASK, TRYAGAIN.
// The client follows those; left alone it would also repeat, within
// MaxRedirects, what was lost on the way (MaxRetries does not bound this).
type cluster struct {
	client  *redis.ClusterClient
	dialer  *dialer
	scripts []*script

	mu    sync.RWMutex
	nodes map[*redis.Client]*node
}

// tryAgain is how long a slot that is just being moved is given; in it, keys of
// one decision may be on two servers, and neither runs the script.
const tryAgain = time.Millisecond

func newCluster(client *redis.ClusterClient, d *dialer, scripts []*script) *cluster {
	return &cluster{client: client, dialer: d, scripts: scripts, nodes: map[*redis.Client]*node{}}
}

// run calls a script where its first key lives.
func (c *cluster) run(ctx context.Context, s *script, args []any) (string, error) {
	key := *args[firstKey].(*string)
	client, err := c.client.MasterForKey(ctx, key)
	if err != nil {
		c.client.ReloadState(ctx)
		return "", err
	}
	reply, err := c.node(client).run(ctx, args)
	for err != nil && undone(err) {
		if redis.HasErrorPrefix(err, "TRYAGAIN") {
			if err := pause(ctx, tryAgain); err != nil {
				return "", err
			}
		}
		reply, err = c.follow(ctx, s, args)
	}
	if err != nil && !answered(err) {
		// It may be gone, and its slots another's.
		c.client.ReloadState(ctx)
	}
	return reply, err
}

// warm connects to the masters.
func (c *cluster) warm(ctx context.Context) error {
	return c.client.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
		return c.node(client).warm(ctx)
	})
}

// undone tells whether a server of a cluster did nothing, and another one or a
// later moment will.
func undone(err error) bool {
	return redis.IsTryAgainError(err) || redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK ")
}

// answered tells whether err is a server's word.
func answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// follow sends a command where the servers say, with the script itself if the
// place they name does not know it.
func (c *cluster) follow(ctx context.Context, s *script, args []any) (string, error) {
	cmd := newOnce(ctx, args)
	err := c.client.Process(ctx, cmd)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		whole := append([]any{"eval", s.text}, args[firstKey-1:]...)
		cmd = newOnce(ctx, whole)
		err = c.client.Process(ctx, cmd)
	}
	return cmd.Val(), err
}

// maxNodes is how many servers are remembered before all are forgotten, which costs
// nothing: a cluster that changes for years must not leave its past here.
const maxNodes = 1000

// node is a server as we speak with it.
func (c *cluster) node(client *redis.Client) *node {
	c.mu.RLock()
	n := c.nodes[client]
	c.mu.RUnlock()
	if n != nil {
		return n
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n = c.nodes[client]; n == nil {
		if len(c.nodes) >= maxNodes {
			clear(c.nodes)
		}
		n = newNode(client, c.dialer, c.scripts)
		c.nodes[client] = n
	}
	return n
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
