package limit_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// warnings is what a check says, each sentence with its server's address taken out.
func warnings(t *testing.T, store *limit.Redis, addr string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	all, err := store.Check(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		all[i] = strings.ReplaceAll(all[i], addr, "ADDR")
	}
	return all
}

// C093, and what else is better said at the start.
func TestRedisCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"a good one", []string{"--appendonly", "yes"}, nil},
		{"snapshots", []string{"--save", "900 1"}, nil},
		{"no persistence", nil, []string{"keeps nothing on disk"}},
		{"eviction", []string{"--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "volatile-ttl"},
			[]string{"maxmemory-policy volatile-ttl"}},
		{"eviction that never comes", []string{"--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"}, nil},
		{"a replica", []string{"--appendonly", "yes", "--replicaof", "127.0.0.1 1"}, []string{"is a replica"}},
		{"a cluster's node", []string{"--appendonly", "yes", "--cluster-enabled", "yes"}, []string{"want redis+cluster://"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr := limittest.StartRedis(t, c.args...)
			got := warnings(t, openRedis(t, addr, limit.RedisOptions{}), addr)
			ok := len(got) == len(c.want)
			for i := range min(len(got), len(c.want)) {
				ok = ok && strings.HasPrefix(got[i], "Redis at ADDR ") && strings.Contains(got[i], c.want[i])
			}
			if !ok {
				t.Errorf("the check says %q, want %q", got, c.want)
			}
		})
	}
	t.Run("no cluster", func(t *testing.T) {
		t.Parallel()
		addr := limittest.StartRedis(t)
		got := warnings(t, openURL(t, "redis+cluster://"+addr, limit.RedisOptions{}), addr)
		if len(got) != 1 || !strings.Contains(got[0], "is not a cluster") {
			t.Errorf("the check says %q", got)
		}
	})
	t.Run("no permission", func(t *testing.T) {
		t.Parallel()
		addr := limittest.StartRedis(t)
		plainClient(t, addr).Do(t.Context(), "ACL", "SETUSER", "default", "-info")
		got := warnings(t, openRedis(t, addr, limit.RedisOptions{}), addr)
		if len(got) != 1 || !strings.Contains(got[0], "cannot be checked: NOPERM") {
			t.Errorf("the check says %q", got)
		}
	})
	t.Run("a wrong password", func(t *testing.T) {
		t.Parallel()
		addr := limittest.StartRedis(t, "--requirepass", "another")
		for _, url := range []string{"redis://:hunter2@" + addr, "redis://" + addr, "redis+cluster://:hunter2@" + addr} {
			got := warnings(t, openURL(t, url, limit.RedisOptions{}), addr)
			if len(got) != 1 || !strings.Contains(got[0], "cannot be checked: ") || strings.Contains(got[0], "not a cluster") || strings.Contains(got[0], "hunter2") {
				t.Errorf("the check says %q", got)
			}
		}
	})
	t.Run("an old one", func(t *testing.T) {
		t.Parallel()
		for version, want := range map[string]bool{"6.0.16": true, "5.0.7": true, "6.2.0": false, "7.0.15": false, "8.2.1": false, "255.255.255": false, "": false} {
			addr := infoServer(t, "redis_version:"+version+"\r\nrole:master\r\naof_enabled:1\r\n")
			if got := warnings(t, openRedis(t, addr, limit.RedisOptions{}), addr); (len(got) == 1) != want {
				t.Errorf("version %q: the check says %q", version, got)
			}
		}
	})
	t.Run("nobody", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, url := range []string{"redis://" + closedAddr(t), "redis+cluster://" + closedAddr(t), "redis://" + closedAddr(t) + "/?master=m"} {
			if _, err := openURL(t, url, limit.RedisOptions{}).Check(ctx); !errors.Is(err, limit.ErrUnavailable) {
				t.Errorf("%s: the error is %v", url, err)
			}
		}
	})
}

// infoServer is a server that only knows INFO.
func infoServer(t *testing.T, info string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				for {
					words, err := readCommand(r)
					if err != nil {
						return
					}
					if strings.EqualFold(words[0], "info") {
						fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(info), info)
					} else {
						fmt.Fprint(conn, "-ERR unknown command\r\n")
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// A first storm finds its connections made and its script loaded.
func TestRedisIsWarm(t *testing.T) {
	t.Parallel()
	proxy := limittest.StartProxy(t, limittest.StartRedis(t))
	store := openRedis(t, proxy.Addr, limit.RedisOptions{})
	if _, err := store.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := proxy.Dials()
	limittest.Storm(t, store)
	if n := proxy.Dials(); n != before || n > 10 {
		t.Errorf("%d connections were made before the storm, %d after it", before, n)
	}
}

// C092: a store that is closed leaves no connection, and one that is opened again
// makes no more than the first.
func TestRedisConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	proxy := limittest.StartProxy(t, limittest.StartRedis(t))
	for range 20 {
		store := openRedis(t, proxy.Addr, limit.RedisOptions{})
		shortStorm(t, store)
		if n := proxy.Open(); n > 10 {
			t.Fatalf("one store has %d connections", n)
		}
		_ = store.Close()
	}
	for range 100 {
		if proxy.Open() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections are left", proxy.Open())
}

// shortStorm is many callers at once.
func shortStorm(t *testing.T, store limit.Store) {
	var c tally
	stop := make(chan struct{})
	wait := c.load(t, 64, stop, store, large("acme"))
	for i := 0; i < 1000 && c.passed.Load() < 100; i++ {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	wait()
	if c.passed.Load() == 0 {
		t.Error("nothing passed")
	}
}
