package limit_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// A server is killed and comes back empty, twice, under load: nothing hangs, what
// is charged afterwards is charged once, and all come back without a herd.
func TestRedisKilledAndRestarted(t *testing.T) {
	t.Parallel()
	server := limittest.StartServer(t)
	proxy := limittest.StartProxy(t, server.Addr)
	store, op := openRedis(t, proxy.Addr, limit.RedisOptions{}), large("acme")
	takeOne(t, store, op)
	var c tally
	stop := make(chan struct{})
	wait := c.load(t, 32, stop, store, op)
	for range 2 {
		time.Sleep(100 * time.Millisecond)
		server.Kill()
		time.Sleep(200 * time.Millisecond)
		server.Restart()
		back, before := time.Now(), c.passed.Load()
		for c.passed.Load() < before+100 {
			if time.Since(back) > 10*time.Second {
				t.Fatal("nothing passes 10 s after the server came back")
			}
			time.Sleep(time.Millisecond)
		}
	}
	// The last life of the server knows what was charged in it, and loaded the
	// script once or so: the one that loads may die of its deadline.
	client := plainClient(t, server.Addr)
	stats := client.Info(t.Context(), "commandstats").Val()
	close(stop)
	wait()
	for line := range strings.Lines(stats) {
		var loads int
		if _, err := fmt.Sscanf(line, "cmdstat_script|load:calls=%d,", &loads); err == nil && loads > 3 {
			t.Errorf("the script was loaded %d times", loads)
		}
	}
	n, passed, failed := used(t, store, op), c.passed.Load(), c.failed.Load()
	if n < 100 || n > passed+failed {
		t.Errorf("%d were charged; %d passed and %d may have", n, passed, failed)
	}
	c.prompt(t)
}

// C082: the script is forgotten again and again under load.
func TestRedisScriptFlushedUnderLoad(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store, op, client := openRedis(t, addr, limit.RedisOptions{}), large("acme"), plainClient(t, addr)
	var c tally
	stop := make(chan struct{})
	wait := c.load(t, 32, stop, store, op)
	for range 20 {
		time.Sleep(20 * time.Millisecond)
		client.ScriptFlush(t.Context())
	}
	close(stop)
	wait()
	n, passed, failed := used(t, store, op), c.passed.Load(), c.failed.Load()
	if n < passed || n > passed+failed || failed > passed {
		t.Errorf("%d were charged; %d passed and %d failed", n, passed, failed)
	}
}

// C091: a server that accepts and says nothing holds nobody beyond his deadline,
// whether his command waits for a connection, for a batch or for its reply, and
// dialling stays bounded.
func TestRedisIsABlackHole(t *testing.T) {
	t.Parallel()
	proxy := limittest.StartProxy(t, limittest.StartRedis(t))
	store, op := openRedis(t, proxy.Addr, limit.RedisOptions{}), large("acme")
	takeOne(t, store, op)
	before := proxy.Dials()
	proxy.Requests(limittest.Hold)
	var c tally
	stop := make(chan struct{})
	wait := c.load(t, 64, stop, store, op)
	time.Sleep(500 * time.Millisecond)
	close(stop)
	wait()
	c.prompt(t)
	if c.passed.Load() > 0 || c.failed.Load() < 64 {
		t.Errorf("%d passed, %d failed", c.passed.Load(), c.failed.Load())
	}
	if n := proxy.Dials() - before; n > 200 {
		t.Errorf("%d connections were made in half a second", n)
	}
	proxy.Requests(limittest.Pass)
	if n := used(t, store, op); n != 1 {
		t.Errorf("%d were charged, want 1: nothing arrived but the first", n)
	}
}

// One caller's deadline is his own, also in a batch of patient ones.
func TestRedisDeadlinesAreTheirOwn(t *testing.T) {
	t.Parallel()
	proxy := limittest.StartProxy(t, limittest.StartRedis(t))
	store := openRedis(t, proxy.Addr, limit.RedisOptions{})
	takeOne(t, store, speed(1))
	proxy.Requests(limittest.Hold)
	var patient tally
	stop := make(chan struct{})
	done := make(chan struct{})
	for range 16 {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
			defer cancel()
			_, err := store.Take(ctx, []limit.Op{speed(1)}, make([]limit.State, 1))
			if err == nil {
				t.Error("a held decision passed")
			}
			done <- struct{}{}
		}()
	}
	time.Sleep(50 * time.Millisecond)
	wait := patient.load(t, 8, stop, store, speed(1))
	time.Sleep(300 * time.Millisecond)
	close(stop)
	wait()
	patient.prompt(t)
	for range 16 {
		<-done
	}
}

// C083: a demoted master is left, whichever form its refusal has, as soon as its
// name points to another one.
func TestRedisLeavesADemotedMaster(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]string{
		"as Redis 7 says it":   "-READONLY You can't write against a read only replica. script: 1, on @user_script:1.\r\n",
		"as Redis 6.2 says it": "-ERR Error running script (call to f_1): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica. \r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := limittest.StartRedis(t)
			addr, promote := movingName(t, refusal, good)
			store := openRedis(t, addr, limit.RedisOptions{})
			said := 0
			for range 20 {
				if err := failing(t, store); strings.Contains(err.Error(), "READONLY") {
					said++
				}
			}
			if said == 0 {
				t.Fatal("no error says READONLY")
			}
			promote()
			var err error
			for range 100 {
				time.Sleep(10 * time.Millisecond)
				if _, err = store.Take(t.Context(), []limit.Op{speed(1)}, make([]limit.State, 1)); err == nil {
					return
				}
			}
			t.Errorf("after a second it still asks the old master: %v", err)
		})
	}
}

// movingName is an address that leads to a replica until promote is called, and
// then to a good server; connections stay where they are.
func movingName(t *testing.T, refusal, good string) (addr string, promote func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	var promoted atomic.Bool
	replica, proxy := fakeRedis(t, refusal), limittest.StartProxy(t, good)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			target := replica
			if promoted.Load() {
				target = proxy.Addr
			}
			go splice(conn, target)
		}
	}()
	return l.Addr().String(), func() { promoted.Store(true) }
}

func splice(conn net.Conn, target string) {
	defer conn.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		defer conn.Close()
		_, _ = bufio.NewReader(server).WriteTo(conn)
	}()
	_, _ = bufio.NewReader(conn).WriteTo(server)
}

// A URL that names one node of a cluster: decisions fail at once, and say why.
func TestRedisIsAClustersNode(t *testing.T) {
	t.Parallel()
	cluster := limittest.StartCluster(t, 3)
	owner, _ := cluster.Owner(speedKey)
	err := failing(t, openRedis(t, cluster.Nodes[(owner+1)%3].Addr, limit.RedisOptions{}))
	if !strings.Contains(err.Error(), "MOVED") {
		t.Errorf("the error is %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	store, other := openRedis(t, cluster.Nodes[owner].Addr, limit.RedisOptions{}), speed(1)
	other.Tag, other.Key = []byte("other"), []byte("sluice:{other}:speed")
	_, err = store.Take(ctx, []limit.Op{speed(1), other}, make([]limit.State, 2))
	if err == nil || !strings.Contains(err.Error(), "CROSSSLOT") {
		t.Errorf("the error is %v", err)
	}
	if s := takeOne(t, store, speed(1)); s.Remaining != 2 {
		t.Errorf("a failed decision was charged: %+v", s)
	}
}
