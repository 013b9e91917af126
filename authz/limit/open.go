package limit

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// poolSize is one connection for each caller that goes by himself and for each
// lane, and one for loading scripts and for checks.
const poolSize = maxSingle + maxLanes + 1

// OpenRedis makes a store on what a URL names:
//
//	redis://[USER:PASSWORD@]HOST[:PORT][/DB]    one server
//	unix://[USER:PASSWORD@]/PATH[?db=DB]        one server
//	redis://H1[:PORT],H2/[DB]?master=NAME       sentinels; USER and PASSWORD are the master's
//	redis+cluster://H1[:PORT],H2                a cluster
//
// rediss:// is all of these with TLS; ca, cert, key (PEM files), server_name and
// skip_verify say whom to trust. Sentinels with a password of their own take
// sentinel_username and sentinel_password.
//
// It waits for nobody, but begins to connect: a server that is away is found by
// the first Take, or by Check. No error of it, nor of the store, holds a password
// of the URL.
func OpenRedis(url string, o RedisOptions) (*Redis, error) {
	client, d, err := dialTarget(url, o)
	if err != nil {
		return nil, err
	}
	r := newRedis(client, d, o)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), clientTimeout)
		defer cancel()
		_ = r.warm(ctx)
	}()
	return r, nil
}

// DialRedis makes a client for what else lives in a Redis, named as OpenRedis
// wants it. Of o it takes PoolSize and Logger. The client honours deadlines,
// repeats nothing and waits for nobody.
func DialRedis(url string, o RedisOptions) (redis.UniversalClient, error) {
	client, _, err := dialTarget(url, o)
	return client, err
}

func dialTarget(url string, o RedisOptions) (redis.UniversalClient, *dialer, error) {
	t, err := parseTarget(url)
	if err != nil {
		return nil, nil, err
	}
	if o.Logger != nil {
		redis.SetLogger(&clientLog{log: o.Logger})
	}
	d := &dialer{dial: redis.NewDialer(&redis.Options{DialTimeout: clientTimeout, TLSConfig: t.TLSConfig})}
	opt := t.Options
	opt.Dialer = d.dialConn
	// A charge is sent once, and waits no longer than its decision may.
	opt.MaxRetries = -1
	opt.ContextTimeoutEnabled = true
	opt.DialerRetries = 1
	opt.DialTimeout = clientTimeout
	opt.ReadTimeout = clientTimeout
	opt.WriteTimeout = clientTimeout
	opt.PoolTimeout = clientTimeout
	if o.PoolSize > 0 {
		opt.PoolSize = o.PoolSize
	}
	if opt.PoolSize <= 0 {
		opt.PoolSize = poolSize
	}
	opt.PipelinePoolSize = -1 // pipelines use the pool, too
	// Only what Redis 6.2 and Valkey have, and one trip less for every connection.
	opt.Protocol = 2
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return t.client(), d, nil
}

func (t *target) client() redis.UniversalClient {
	switch {
	case t.cluster:
		return redis.NewClusterClient(t.clusterOptions())
	case t.master != "":
		return redis.NewFailoverClient(t.sentinelOptions())
	}
	return redis.NewClient(t.Options)
}

func (t *target) sentinelOptions() *redis.FailoverOptions {
	opt := t.Options
	return &redis.FailoverOptions{
		MasterName:       t.master,
		SentinelAddrs:    t.addrs,
		SentinelUsername: t.sentinelUser,
		SentinelPassword: t.sentinelPass,

		Dialer: opt.Dialer, ClientName: opt.ClientName, Protocol: opt.Protocol,
		Username: opt.Username, Password: opt.Password, DB: opt.DB,
		MaxRetries: opt.MaxRetries, ContextTimeoutEnabled: opt.ContextTimeoutEnabled,
		DialerRetries: opt.DialerRetries, DialTimeout: opt.DialTimeout,
		ReadTimeout: opt.ReadTimeout, WriteTimeout: opt.WriteTimeout,
		PoolSize: opt.PoolSize, PoolTimeout: opt.PoolTimeout,
		PipelinePoolSize: opt.PipelinePoolSize, DisableIdentity: opt.DisableIdentity,
		ConnMaxIdleTime: opt.ConnMaxIdleTime, ConnMaxLifetime: opt.ConnMaxLifetime,
	}
}

func (t *target) clusterOptions() *redis.ClusterOptions {
	opt := t.Options
	return &redis.ClusterOptions{
		Addrs:  t.addrs,
		Dialer: opt.Dialer, ClientName: opt.ClientName, Protocol: opt.Protocol,
		Username: opt.Username, Password: opt.Password,
		MaxRetries: opt.MaxRetries, ContextTimeoutEnabled: opt.ContextTimeoutEnabled,
		DialerRetries: opt.DialerRetries, DialTimeout: opt.DialTimeout,
		ReadTimeout: opt.ReadTimeout, WriteTimeout: opt.WriteTimeout,
		PoolSize: opt.PoolSize, PoolTimeout: opt.PoolTimeout,
		PipelinePoolSize: opt.PipelinePoolSize, DisableIdentity: opt.DisableIdentity,
		ConnMaxIdleTime: opt.ConnMaxIdleTime, ConnMaxLifetime: opt.ConnMaxLifetime,
		MaintNotificationsConfig: opt.MaintNotificationsConfig,
		// Redirects are followed at once, within the decision's deadline.
		MinRetryBackoff: -1, MaxRetryBackoff: -1,
		DisableRoutingPolicies: true,
	}
}

// clientLog is the client's own logger. What it says of connections is a warning:
// the decisions that suffered have failed, and are counted elsewhere. A server
// that is away makes it say the same over and over: one line a second is enough.
type clientLog struct {
	log  *slog.Logger
	last atomic.Int64 // when a line was written, Unix seconds
}

// Printf is called by the client.
func (l *clientLog) Printf(ctx context.Context, format string, v ...any) {
	last, now := l.last.Load(), time.Now().Unix()
	if last != now && l.last.CompareAndSwap(last, now) {
		l.log.WarnContext(ctx, "redis client: "+strings.TrimPrefix(fmt.Sprintf(format, v...), "redis: "))
	}
}
