package limit

import (
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// clientTimeout ends what has no deadline of its own: dialling, which goes on
// for the pool after its caller has left, and a Take without a deadline.
const clientTimeout = time.Second

// errRedisURL shows nothing of the URL: wherever it is broken, a part of it may
// be the password.
var errRedisURL = errors.New("cannot open Redis: the URL is not valid (not shown, it may hold a password); " +
	"want redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss://... or unix://[USER:PASSWORD@]/PATH[?db=DB]; " +
	"write : / ? # @ in a password as %3A %2F %3F %23 %40")

var (
	errSentinel = errors.New("cannot open Redis: several hosts or a master (sentinel) are not supported yet; " +
		"want one redis://, rediss:// or unix:// server")
	errCluster = errors.New("cannot open Redis: redis+cluster:// is not supported yet; " +
		"want one redis://, rediss:// or unix:// server")
)

// OpenRedis makes a store on the server of a redis://, rediss:// or unix:// URL.
// It does not connect: a server that is away is found by the first Take. No
// error of it, nor of the store, holds the URL's password.
func OpenRedis(url string, o RedisOptions) (*Redis, error) {
	scheme, rest, _ := strings.Cut(url, "://")
	switch scheme = strings.ToLower(scheme); {
	case scheme == "redis+cluster" || scheme == "rediss+cluster":
		return nil, errCluster
	case scheme == "redis+sentinel" || scheme == "rediss+sentinel":
		return nil, errSentinel
	case scheme != "unix" && manyHosts(rest):
		return nil, errSentinel
	}
	opt, err := redis.ParseURL(url)
	if err != nil {
		return nil, errRedisURL
	}
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
	// Only what Redis 6.2 and Valkey have, and one trip less for every connection.
	opt.Protocol = 2
	opt.DisableIdentity = true
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return NewRedis(redis.NewClient(opt), o), nil
}

// manyHosts sees h1,h2 or ?master=NAME behind the scheme.
func manyHosts(rest string) bool {
	address, query, _ := strings.Cut(rest, "?")
	host, _, _ := strings.Cut(address[strings.LastIndexByte(address, '@')+1:], "/")
	if strings.Contains(host, ",") {
		return true
	}
	for _, pair := range strings.Split(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); name == "master" || name == "master_name" {
			return true
		}
	}
	return false
}
