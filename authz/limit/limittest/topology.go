package limittest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is what sentinels of tests call their master.
const MasterName = "sluice"

// Sentinel is a master with a replica, watched by three sentinels that need two
// of them to agree.
type Sentinel struct {
	Master, Replica *Server
	Sentinels       []*Server
}

// StartSentinel starts all of it, and waits until everybody knows everybody.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	s := &Sentinel{Master: StartServer(t)}
	host, port, _ := net.SplitHostPort(s.Master.Addr)
	s.Replica = StartServer(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0")
	for range 3 {
		// A sentinel writes its file, and each needs its own.
		file := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %[1]s 500\n"+
			"sentinel failover-timeout %[1]s 3000\n", MasterName, host, port)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s.Sentinels = append(s.Sentinels, startSentinel(t, file))
	}
	await(t, "the sentinels to know each other and the replica", func() error {
		for _, one := range s.Sentinels {
			info, err := ask(t, one.Addr, "INFO", "sentinel").Text()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "status=ok") || !strings.Contains(info, "slaves=1,sentinels=3") {
				return errors.New(info)
			}
		}
		return nil
	})
	return s
}

// URL names the sentinels.
func (s *Sentinel) URL() string {
	addrs := make([]string, len(s.Sentinels))
	for i, one := range s.Sentinels {
		addrs[i] = one.Addr
	}
	return "redis://" + strings.Join(addrs, ",") + "/?master=" + MasterName
}

// Failover lets the sentinels put the replica in the master's place, though the
// master is well. It still takes writes then, for some seconds, until they make it
// the replica's replica.
func (s *Sentinel) Failover(t testing.TB) {
	t.Helper()
	if err := ask(t, s.Sentinels[0].Addr, "SENTINEL", "FAILOVER", MasterName).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "the sentinels to name the replica", func() error {
		for _, one := range s.Sentinels {
			addr, err := ask(t, one.Addr, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName).StringSlice()
			if err != nil {
				return err
			}
			if net.JoinHostPort(addr[0], addr[1]) != s.Replica.Addr {
				return fmt.Errorf("it is %v", addr)
			}
		}
		return nil
	})
}

// startSentinel is StartServer for a redis-server that reads a file and is none.
func startSentinel(t testing.TB, file string) *Server {
	t.Helper()
	return startServer(t, func(path, port string) []string {
		return []string{path, file, "--sentinel", "--bind", "127.0.0.1", "--port", port, "--dir", filepath.Dir(file), "--daemonize", "no"}
	})
}

// Cluster is a cluster of masters.
type Cluster struct {
	Nodes []*Server
	t     testing.TB
	ids   []string
}

// clusterSlots is how many slots a cluster has.
const clusterSlots = 16384

// StartCluster starts a cluster of masters that share the slots evenly, and waits
// until all of them find it well. More arguments are given to redis-server.
func StartCluster(t testing.TB, masters int, args ...string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	for i := range masters {
		s := StartServer(t, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}, args...)...)
		c.Nodes = append(c.Nodes, s)
		id, err := ask(t, s.Addr, "CLUSTER", "MYID").Text()
		if err != nil {
			t.Fatal(err)
		}
		c.ids = append(c.ids, id)
		args := []any{"CLUSTER", "ADDSLOTS"}
		for slot := i * clusterSlots / masters; slot < (i+1)*clusterSlots/masters; slot++ {
			args = append(args, slot)
		}
		c.must(ask(t, s.Addr, args...))
		c.must(ask(t, s.Addr, "CLUSTER", "SET-CONFIG-EPOCH", i+1))
		host, port, _ := net.SplitHostPort(c.Nodes[0].Addr)
		c.must(ask(t, s.Addr, "CLUSTER", "MEET", host, port))
	}
	await(t, "the cluster to be well", func() error {
		for _, s := range c.Nodes {
			info, err := ask(t, s.Addr, "CLUSTER", "INFO").Text()
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", masters)) {
				return errors.New(info)
			}
		}
		return nil
	})
	return c
}

// URL names the first node.
func (c *Cluster) URL() string { return "redis+cluster://" + c.Nodes[0].Addr }

// Owner is the index of the node that has key's slot, and the slot.
func (c *Cluster) Owner(key string) (node int, slot int64) {
	c.t.Helper()
	slot, err := ask(c.t, c.Nodes[0].Addr, "CLUSTER", "KEYSLOT", key).Int64()
	if err != nil {
		c.t.Fatal(err)
	}
	for i, s := range c.Nodes {
		ranges, err := ask(c.t, s.Addr, "CLUSTER", "SLOTS").Slice()
		if err != nil {
			c.t.Fatal(err)
		}
		for _, r := range ranges {
			part := r.([]any)
			if part[0].(int64) <= slot && slot <= part[1].(int64) && part[2].([]any)[2] == c.ids[i] {
				return i, slot
			}
		}
	}
	c.t.Fatalf("nobody has slot %d", slot)
	return 0, 0
}

// Move brings a slot and its keys from one node to another, step by step, as
// redis-cli --cluster reshard does; between is called after each.
func (c *Cluster) Move(slot int64, from, to int, between func()) {
	c.t.Helper()
	source, target := c.Nodes[from].Addr, c.Nodes[to].Addr
	host, port, _ := net.SplitHostPort(target)
	c.must(ask(c.t, target, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from]))
	between()
	c.must(ask(c.t, source, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to]))
	between()
	for {
		keys, err := ask(c.t, source, "CLUSTER", "GETKEYSINSLOT", slot, 1).StringSlice()
		if err != nil {
			c.t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		c.must(ask(c.t, source, "MIGRATE", host, port, keys[0], 0, 1000))
		between()
	}
	order := slices.Concat([]int{to, from}, others(len(c.Nodes), from, to))
	for _, i := range order {
		c.must(ask(c.t, c.Nodes[i].Addr, "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to]))
		between()
	}
}

func others(n, a, b int) []int {
	var rest []int
	for i := range n {
		if i != a && i != b {
			rest = append(rest, i)
		}
	}
	return rest
}

func (c *Cluster) must(cmd *redis.Cmd) {
	c.t.Helper()
	if err := cmd.Err(); err != nil {
		c.t.Fatalf("%v: %v", cmd.Args()[:2], err)
	}
}

// ask sends one command to one server.
func ask(t testing.TB, addr string, args ...any) *redis.Cmd {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, MaxRetries: -1, DisableIdentity: true})
	defer client.Close()
	return client.Do(context.Background(), args...)
}

// await waits until ready has no complaint.
func await(t testing.TB, what string, ready func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if err = ready(); err == nil {
			return
		}
	}
	t.Fatalf("waited too long for %s: %v", what, err)
}
