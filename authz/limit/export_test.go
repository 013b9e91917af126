package limit

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// SendSingly makes r send each command by itself.
func SendSingly(r *Redis) {
	p := newPipeline(r.node.client)
	p.single = 1 << 30
	r.node.do = p.do
}

// SendBy makes r send its commands by somebody else.
func SendBy(r *Redis, process func(context.Context, redis.Cmder) error) {
	r.node.do = func(ctx context.Context, args []any) (string, error) {
		cmd := newOnce(ctx, args)
		err := process(ctx, cmd)
		return cmd.Val(), err
	}
}

// ClientOf is the client of a store with one server.
func ClientOf(r *Redis) *redis.Client { return r.node.client }
