package directory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"sluice/authz/limit"
	"sluice/authz/memo"
)

// setup is a directory on a Redis of the test, and who writes into it.
type setup struct {
	t   *testing.T
	d   *Directory
	c   redis.UniversalClient
	now time.Time
	mu  sync.Mutex
	log bytes.Buffer
}

// Write collects the log.
func (s *setup) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(b)
}

func (s *setup) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// start makes a directory whose reads go by addr.
func start(t *testing.T, redisAddr, addr string) *setup {
	t.Helper()
	s := &setup{t: t, c: redis.NewClient(&redis.Options{Addr: redisAddr}), now: time.Unix(1_800_000_000, 0)}
	var err error
	s.d, err = Open("redis://"+addr, Options{
		Deadline: 2 * time.Second, Log: slog.New(slog.NewTextHandler(s, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.d.Close(); _ = s.c.Close() })
	return s
}

// run listens to changes, from when this returns.
func (s *setup) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.d.Run(ctx); close(done) }()
	s.t.Cleanup(func() { cancel(); <-done })
	s.await("somebody listens", s.d.heard.Load)
}

func (s *setup) await(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within 10 s: %s", what)
		}
	}
}

func hashOf(key string) memo.Key { return sha256.Sum256([]byte(key)) }

func digits(key string) string {
	h := hashOf(key)
	return hex.EncodeToString(h[:])
}

// put writes a key and says so.
func (s *setup) put(key string, fields ...string) {
	s.t.Helper()
	s.write("key:"+digits(key), fields)
}

func (s *setup) tenant(id string, fields ...string) {
	s.t.Helper()
	s.write("tenant:"+id, fields)
}

func (s *setup) write(name string, fields []string) {
	s.t.Helper()
	ctx := context.Background()
	s.c.Del(ctx, "sluice:"+name)
	if len(fields) > 0 {
		if err := s.c.HSet(ctx, "sluice:"+name, fields).Err(); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := s.c.Publish(ctx, Channel, name).Err(); err != nil {
		s.t.Fatal(err)
	}
}

// who is what the directory says of a key.
func (s *setup) who(key string) string {
	s.t.Helper()
	k, tenant, err := s.d.Find(hashOf(key), s.now)
	switch {
	case err != nil:
		if !errors.Is(err, limit.ErrUnavailable) {
			s.t.Errorf("the error does not say that the store is away: %v", err)
		}
		return "away"
	case k == nil:
		return "nobody"
	case k.Broken:
		return "broken"
	}
	if tenant.Broken {
		return tenant.ID + "/" + k.ID + " broken"
	}
	out := tenant.ID + "/" + k.ID + " " + string(tenant.Spec.Plan)
	for _, mark := range []struct {
		set  bool
		word string
	}{{tenant.Disabled, "tenant off"}, {k.Disabled, "key off"}} {
		if mark.set {
			out += " " + mark.word
		}
	}
	for _, n := range append(tenant.Networks, k.Networks...) {
		out += " " + n.String()
	}
	return out
}

func (s *setup) want(what, key, want string) {
	s.t.Helper()
	if got := s.who(key); got != want {
		s.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// named is whom a claim names.
func (s *setup) named(claim string) string {
	return whom(s.d.Claimed([]byte(claim), s.now))
}

// certified is whose a certificate is.
func (s *setup) certified(der string) string {
	return whom(s.d.Certified(hashOf(der), s.now))
}

// reads are how often Redis was asked.
func (s *setup) reads() uint64 {
	found, nobody, failed := s.d.Counts()
	return found + nobody + failed
}

func whom(t *Tenant, err error) string {
	switch {
	case err != nil:
		return "away"
	case t == nil:
		return "nobody"
	case t.Broken:
		return "broken"
	}
	return t.ID + " " + string(t.Spec.Plan)
}
