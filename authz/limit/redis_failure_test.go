package limit_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// failing wants ErrUnavailable, soon after the deadline of 30 ms.
func failing(t testing.TB, store limit.Store) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	refused, err := store.Take(ctx, []limit.Op{speed(1)}, make([]limit.State, 1))
	if took := time.Since(start); took > 900*time.Millisecond {
		t.Errorf("it took %v, with a deadline of 30ms", took)
	}
	if !errors.Is(err, limit.ErrUnavailable) || refused != -1 {
		t.Errorf("refused %d, error %v; want -1 and ErrUnavailable", refused, err)
	}
	return err
}

func TestRedisSaysNo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, cause string
		breaks      []any
	}{
		{"a replica", "READONLY", []any{"REPLICAOF", "127.0.0.1", "1"}},
		{"out of memory", "OOM", []any{"CONFIG", "SET", "maxmemory", "1"}},
		{"another type at the key", "WRONGTYPE", []any{"LPUSH", speedKey, "x"}},
		{"no permission", "NOPERM", []any{"ACL", "SETUSER", "default", "-evalsha"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr := limittest.StartRedis(t)
			store := openRedis(t, addr, limit.RedisOptions{})
			other := speed(1)
			other.Key = []byte("sluice:{acme}:other")
			takeOne(t, store, other)
			before := plainClient(t, addr).Get(t.Context(), string(other.Key)).Val()
			if err := plainClient(t, addr).Do(t.Context(), c.breaks...).Err(); err != nil {
				t.Fatal(err)
			}
			if err := failing(t, store); err == nil || !strings.Contains(err.Error(), c.cause) {
				t.Errorf("the error is %v, want it to name %s", err, c.cause)
			}
			// All or none holds for failures, too.
			_, err := store.Take(t.Context(), []limit.Op{other, speed(1)}, make([]limit.State, 2))
			if after := plainClient(t, addr).Get(t.Context(), string(other.Key)).Val(); err == nil || after != before {
				t.Errorf("a failed decision charged one of its limits (error %v)", err)
			}
		})
	}
}

func TestRedisAwayOrSlow(t *testing.T) {
	t.Parallel()
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		failing(t, openRedis(t, closedAddr(t), limit.RedisOptions{}))
	})
	t.Run("it accepts and is silent", func(t *testing.T) {
		t.Parallel()
		err := failing(t, openRedis(t, fakeRedis(t, ""), limit.RedisOptions{}))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the cause is %v, want the deadline", err)
		}
	})
	t.Run("it is busy, and the pool is empty", func(t *testing.T) {
		t.Parallel()
		addr := limittest.StartRedis(t)
		store := openRedis(t, addr, limit.RedisOptions{PoolSize: 1})
		takeOne(t, store, speed(1))
		plainClient(t, addr).Do(t.Context(), "CLIENT", "PAUSE", "1000", "ALL")
		done := make(chan struct{})
		for range 4 {
			go func() {
				failing(t, store)
				done <- struct{}{}
			}()
		}
		for range 4 {
			<-done
		}
	})
	t.Run("the context is over before", func(t *testing.T) {
		t.Parallel()
		store := openRedis(t, limittest.StartRedis(t), limit.RedisOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := store.Take(ctx, []limit.Op{speed(1)}, make([]limit.State, 1))
		if !errors.Is(err, limit.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
		if s := takeOne(t, store, speed(1)); s.Remaining != 2 {
			t.Errorf("it was charged: %+v", s)
		}
	})
}

// A timed-out Take is not sent again: the server, once awake, has at most one.
func TestRedisSendsATakeOnce(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	store := openRedis(t, addr, limit.RedisOptions{})
	takeOne(t, store, speed(1))
	plainClient(t, addr).Do(t.Context(), "CLIENT", "PAUSE", "300", "ALL")
	failing(t, store)
	time.Sleep(400 * time.Millisecond)
	states := make([]limit.State, 1)
	if err := store.Peek(t.Context(), []limit.Op{speed(1)}, states); err != nil || states[0].Remaining < 1 {
		t.Errorf("after one charge and one that timed out: %+v, %v; want 1 or 2 left", states[0], err)
	}
}

func TestRedisAnswersNonsense(t *testing.T) {
	t.Parallel()
	one, half, nan := "\x00\x00\x00\x00\x00\x00\xf0\x3f", "\x00\x00\x00\x00\x00\x00\xe0\x3f", "\x00\x00\x00\x00\x00\x00\xf8\x7f"
	zero, many := strings.Repeat("\x00", 8), "\x00\x00\x00\x00\x00\x00\xf0\x7f"
	for name, reply := range map[string]string{
		"a number":       ":1\r\n",
		"no value":       "$-1\r\n",
		"a list":         "*2\r\n:1\r\n:2\r\n",
		"a short string": "$5\r\nhello\r\n",
		"two ops":        "$96\r\n" + mine + strings.Repeat(zero, 11) + "\r\n",
		"no time":        "$56\r\n" + mine + nan + one + zero + zero + zero + zero + "\r\n",
		"fits by half":   "$56\r\n" + mine + zero + half + zero + zero + zero + zero + "\r\n",
		"no level":       "$56\r\n" + mine + zero + one + nan + zero + zero + zero + "\r\n",
		"an endless one": "$56\r\n" + mine + zero + one + many + zero + zero + zero + "\r\n",
		"an endless age": "$56\r\n" + mine + zero + one + zero + many + zero + zero + "\r\n",
		"no level then":  "$56\r\n" + mine + zero + one + zero + zero + nan + zero + "\r\n",
		"another's":      "$56\r\n" + many + zero + one + zero + zero + zero + zero + "\r\n",
		"no one's":       "$48\r\n" + zero + one + zero + zero + zero + zero + "\r\n",
		"no protocol":    "hello\r\n",
		"script error":   "-ERR user_script:1: attempt to compare nil with number\r\n",
		"no script":      "-NOSCRIPT No matching script\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failing(t, openRedis(t, fakeRedis(t, reply), limit.RedisOptions{}))
		})
	}
	t.Run("sense", func(t *testing.T) { // the fake is believed when it may be
		t.Parallel()
		store := openRedis(t, fakeRedis(t, "$56\r\n"+mine+zero+one+zero+zero+zero+zero+"\r\n"), limit.RedisOptions{})
		takeOne(t, store, speed(1))
	})
}

// mine stands in a reply of fakeRedis for the number of the call.
const mine = "<number>"

// fakeRedis answers every EVALSHA with reply, and all else with OK; if reply is
// empty it never answers.
func fakeRedis(t testing.TB, reply string) string {
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
			go serveFake(conn, reply)
		}
	}()
	return l.Addr().String()
}

func serveFake(conn net.Conn, reply string) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		words, err := readCommand(r)
		if err != nil {
			return
		}
		answer := "+OK\r\n"
		switch strings.ToLower(words[0]) {
		case "evalsha":
			answer = strings.Replace(reply, mine, words[firstArgument(words)][:len(mine)], 1)
		case "hello":
			answer = "-ERR unknown command\r\n"
		}
		if reply != "" {
			_, _ = io.WriteString(conn, answer)
		}
	}
}

// firstArgument is where ARGV begins in an EVALSHA.
func firstArgument(words []string) int {
	keys, _ := strconv.Atoi(words[2])
	return 3 + keys
}

func closedAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestOpenRedisHidesThePassword(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, want string }{
		{"redis://:hunter2@127.0.0.1:port", "not valid"},
		{"redis://user:hun/ter2@127.0.0.1:6379", "not valid"},
		{"redis://user:hun?ter2@127.0.0.1:6379", "not valid"},
		{"redis://user:hunter2%zz@127.0.0.1:6379", "not valid"},
		{"redis://user:hunter2@127.0.0.1:6379/hunter2", "not valid"},
		{"redis://user:hunter2@127.0.0.1:6379/0?hunter2=1", "not valid"},
		{"redis://user:hunter2@127.0.0.1:6379/0?db=hunter2", "not valid"},
		{"hunter2://127.0.0.1", "not valid"},
		{"hunter2", "not valid"},
		{"", "not valid"},
		{"unix://user:hunter2@", "not valid"},
		{"redis://user:hunter2@h1,h2/", "want ?master=NAME"},
		{"redis://user:hunter2@h1,,h2/?master=m", "not valid"},
		{"redis://user:hunter2@h1,h2:hunter2/?master=m", "not valid"},
		{"redis+sentinel://user:hunter2@h1", "need ?master=NAME"},
		{"redis+cluster://user:hunter2@h1,h2/3", "database 0"},
		{"redis+cluster://user:hunter2@h1/?master=m", "not valid"},
		{"redis+hunter2://user:hunter2@h1", "not valid"},
		{"redis://user:hunter2@h1/?ca=ca.pem", "cannot read its ca"},
		{"redis://user:hunter2@h1/?server_name=x", "for rediss://"},
		{"rediss://user:hunter2@h1/?ca=url.go", "no certificate"},
		{"rediss://user:hunter2@h1/?cert=url.go&key=url.go", "client certificate"},
		{"redis://h1/?master=m&sentinel_password=hunter2&x=1", "not valid"},
		{"redis://user:hunter2@h1#/", "not valid"},
		{"redis://user:hunter2@h1/?db=1#hunter2", "not valid"},
	} {
		store, err := limit.OpenRedis(c.url, limit.RedisOptions{})
		if err == nil {
			t.Errorf("%s: no error", c.url)
			_ = store.Close()
			continue
		}
		if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, "hun") || strings.Contains(text, "ter2") {
			t.Errorf("%s: the error is %q", c.url, text)
		}
	}
	// Nor does a server that refuses it make us say it.
	addr := limittest.StartRedis(t, "--requirepass", "another")
	store, err := limit.OpenRedis("redis://:hunter2@"+addr, limit.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := failing(t, store); strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error shows the password: %v", err)
	}
}

func TestNewRedisRefusesARepeatingClient(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	defer func() {
		if text, _ := recover().(string); !strings.HasPrefix(text, "BUG: ") {
			t.Errorf("the panic says %q", text)
		}
	}()
	limit.NewRedis(client, limit.RedisOptions{})
}
