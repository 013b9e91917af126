package cmd

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"sluice/authz/limit"
)

// openedStore is the store that --store names.
type openedStore struct {
	limit.Store
	notes    limit.Notes   // what operators say at run time, in the same place
	kind     string        // what the log says: never the URL, which may hold a password
	deadline time.Duration // of a decision; 0 for a store that never waits
	breaker  *limit.Breaker
	local    *limit.Local // what stands in for it
	disk     bool         // it waits for hard quotas alone
}

// Close writes what is to be written, and closes.
func (s *openedStore) Close() error {
	var err error
	if s.local != nil {
		err = s.local.Close()
	}
	return errors.Join(err, s.Store.Close())
}

// diskDeadline is how long a hard quota may wait for the disk: less than NGINX
// waits for the service, and more than a slow disk takes.
const diskDeadline = 150 * time.Millisecond

// checkTimeout is how long the start waits for Redis to say what it is.
const checkTimeout = time.Second

// storeOptions are the flags that stores look at.
type storeOptions struct {
	MaxKeys   int           // of memory and embedded
	Deadline  time.Duration // of a decision, for stores that wait on a network
	Instances int           // that share a Redis
}

// openStore opens the store that --store names.
func openStore(name string, o storeOptions, log *slog.Logger) (*openedStore, error) {
	scheme, rest, _ := strings.Cut(name, ":")
	memory := limit.MemoryOptions{MaxKeys: o.MaxKeys}
	switch scheme {
	case "memory":
		return &openedStore{Store: limit.NewMemory(memory), notes: &limit.MemoryNotes{}, kind: "memory"}, nil
	case "embedded":
		if rest == "" {
			return nil, usagef("--store embedded: names no file; want embedded:FILE")
		}
		store, err := limit.OpenEmbedded(rest, limit.EmbeddedOptions{Memory: memory})
		if err != nil {
			return nil, err
		}
		return &openedStore{Store: store, notes: store.Notes(), kind: "embedded", deadline: diskDeadline, disk: true}, nil
	case "redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel":
		return openRedis(name, o, log)
	}
	// The name is not repeated: it may be a URL with a password.
	return nil, usagef("--store: unknown kind; want embedded:FILE, memory, redis://..., rediss://..., unix://... or redis+cluster://...")
}

// openRedis opens a store on Redis and asks it what it is, which also opens
// connections before the first storm. A Redis that does not answer yet is no
// reason not to start: the fail mode decides until it does.
func openRedis(url string, o storeOptions, log *slog.Logger) (*openedStore, error) {
	store, err := limit.OpenRedis(url, limit.RedisOptions{Logger: log})
	if err != nil {
		return nil, usageError{err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	warnings, err := store.Check(ctx)
	for _, w := range warnings {
		log.Warn("store", "warning", w)
	}
	if err != nil {
		log.Warn("store", "warning", "Redis does not answer yet", "error", err.Error())
	}
	breaker := limit.NewBreaker(store, limit.BreakerOptions{Changed: func(s limit.BreakerState) {
		log.Warn("store", "breaker", s.String())
	}})
	// Leased rates are spent here from shares taken ahead; soft quotas are counted
	// here, and written in batches.
	leased := limit.NewLeased(breaker, limit.LeasedOptions{Timeout: o.Deadline, MaxKeys: o.MaxKeys})
	soft := limit.NewSoft(leased, limit.SoftOptions{Instances: o.Instances, MaxKeys: o.MaxKeys})
	local := limit.NewLocal(breaker, limit.LocalOptions{Instances: o.Instances, MaxKeys: o.MaxKeys})
	return &openedStore{Store: soft, notes: store.Notes(), kind: "redis", deadline: o.Deadline, breaker: breaker, local: local}, nil
}
