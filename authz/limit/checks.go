package limit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// The oldest Redis that the script is written for.
const oldestMajor, oldestMinor = 6, 2

// Check looks at the servers once, at the start, and says in plain sentences what
// will hurt: a server that is old, forgets keys when its memory is full, takes no
// writes, keeps nothing over a restart, or is a cluster's node when the URL names
// none (or the other way round). It connects as far as that was not done. An
// error means that nobody answered; limits then work as soon as somebody does.
func (r *Redis) Check(ctx context.Context) ([]string, error) {
	if err := r.warm(ctx); err != nil && !answered(err) {
		return nil, unavailable(ctx, err)
	}
	if r.node != nil {
		return checkServer(ctx, r.node.client, false)
	}
	var mu sync.Mutex
	var all []string
	err := r.cluster.client.ForEachMaster(ctx, func(ctx context.Context, client *redis.Client) error {
		warnings, err := checkServer(ctx, client, true)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, warnings...)
		return err
	})
	slices.Sort(all)
	switch {
	case err == nil:
		return all, nil
	case !answered(err):
		return all, unavailable(ctx, err)
	case strings.Contains(err.Error(), "cluster support disabled"):
		return append(all, "Redis is not a cluster, but the URL says redis+cluster://; want redis://."), nil
	}
	return append(all, fmt.Sprintf("The Redis cluster cannot be checked: %v.", err)), nil
}

// checkServer looks at one server.
func checkServer(ctx context.Context, client *redis.Client, cluster bool) ([]string, error) {
	text, err := client.Info(ctx, "all").Result()
	if err != nil {
		if answered(err) {
			return []string{fmt.Sprintf("Redis at %s cannot be checked: %v.", client.Options().Addr, err)}, nil
		}
		return nil, unavailable(ctx, err)
	}
	info := parseInfo(text)
	var warnings []string
	warn := func(format string, args ...any) {
		warnings = append(warnings, fmt.Sprintf("Redis at "+client.Options().Addr+" "+format+".", args...))
	}
	if old(info["redis_version"]) {
		warn("is version %s; want 6.2 or newer", info["redis_version"])
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" && info["maxmemory"] != "0" {
		warn("evicts keys when its memory is full (maxmemory-policy %s), and a limit whose key is evicted starts anew; want noeviction", policy)
	}
	if info["role"] == "slave" {
		warn("is a replica and takes no writes: every decision will be the fail mode's; want the master")
	}
	if enabled := info["cluster_enabled"] == "1"; enabled && !cluster {
		warn("is a cluster's node and has only some of the slots; want redis+cluster://")
	}
	if !persistent(ctx, client, info) {
		warn("keeps nothing on disk and has no replica: a restart forgets what was used of hard quotas; want appendonly yes, save or a replica")
	}
	return warnings, nil
}

// persistent is true also when we may not know.
func persistent(ctx context.Context, client *redis.Client, info map[string]string) bool {
	if info["aof_enabled"] != "0" || info["connected_slaves"] != "0" {
		return true
	}
	save, err := client.ConfigGet(ctx, "save").Result()
	return err != nil || save["save"] != ""
}

// old tells whether a version is known and below the oldest we want.
func old(version string) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil {
		return false
	}
	return major < oldestMajor || (major == oldestMajor && minor < oldestMinor)
}

// parseInfo reads INFO's lines.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
