package cmd

import (
	"strings"
	"time"

	"sluice/authz/limit"
)

// openedStore is the store that --store names.
type openedStore struct {
	limit.Store
	kind     string        // what the log says: never the URL, which may hold a password
	deadline time.Duration // of a decision; 0 for a store that never waits
}

// openStore opens the store that --store names. The deadline is for stores that
// wait.
func openStore(name string, deadline time.Duration) (*openedStore, error) {
	scheme, rest, _ := strings.Cut(name, ":")
	switch scheme {
	case "memory":
		return &openedStore{Store: limit.NewMemory(limit.MemoryOptions{}), kind: "memory"}, nil
	case "embedded":
		// Rates live in memory. The file is for what was sold: quotas, which are not
		// enforced yet, so no policy that is served can need it.
		if rest == "" {
			return nil, usagef("--store embedded: names no file; want embedded:FILE")
		}
		return &openedStore{Store: limit.NewMemory(limit.MemoryOptions{}), kind: "embedded"}, nil
	case "redis", "rediss", "unix", "redis+cluster", "rediss+cluster", "redis+sentinel", "rediss+sentinel":
		store, err := limit.OpenRedis(name, limit.RedisOptions{})
		if err != nil {
			return nil, usageError{err}
		}
		return &openedStore{Store: store, kind: "redis", deadline: deadline}, nil
	}
	// The name is not repeated: it may be a URL with a password.
	return nil, usagef("--store: unknown kind; want embedded:FILE, memory, redis://..., rediss://... or unix://...")
}
