package authz

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// asked counts what reaches a store, and can hold it up or let it fail.
type asked struct {
	limit.Store
	takes atomic.Int64
	hold  atomic.Pointer[chan struct{}]
	fail  atomic.Bool
}

func (a *asked) Take(ctx context.Context, ops []limit.Op, states []limit.State) (int, error) {
	a.takes.Add(1)
	if hold := a.hold.Load(); hold != nil {
		<-*hold
	}
	if a.fail.Load() {
		return -1, fmt.Errorf("%w: on purpose", limit.ErrUnavailable)
	}
	return a.Store.Take(ctx, ops, states)
}

func newAskedSite(t testing.TB, policy string) (*site, *asked) {
	t.Helper()
	clock := limittest.NewClock()
	store := &asked{Store: limit.NewMemory(limit.MemoryOptions{Now: clock.Now})}
	return newSiteOn(t, policy, clock, store), store
}

func visit(id string) string { return "X-Sluice-Request: " + id }

// NGINX asks twice when a connection breaks: the request is charged once, and
// gets one answer. Another route, another subject and another minute are charged.
func TestOnceForAVisit(t *testing.T) {
	s, store := newAskedSite(t, shop)
	first := s.ask("rest", key("sk_a"), visit("r1"))
	again := s.ask("rest", key("sk_a"), visit("r1"))
	first.want(t, "first", 204, "RateLimit-Policy: "+first.header["RateLimit-Policy"])
	if again.raw != first.raw {
		t.Errorf("the second answer differs:\n%s\nfirst:\n%s", again.raw, first.raw)
	}
	if n := store.takes.Load(); n != 1 {
		t.Errorf("the store was asked %d times, want 1", n)
	}
	for i, other := range [][]string{
		{"search", key("sk_a"), visit("r1")},
		{"rest", key("sk_web"), visit("r1")},
		{"rest", visit("r1")},
		{"rest", visit("r1"), ip("192.0.2.2")},
		{"rest", key("sk_a"), visit("r2")},
		{"rest", key("sk_a")},
		{"rest", key("sk_a")},
	} {
		s.ask(other[0], other[1:]...)
		if n := store.takes.Load(); n != int64(i+2) {
			t.Errorf("%q: the store was asked %d times, want %d", other, n, i+2)
		}
	}
	s.clock.Advance(time.Minute + time.Second)
	before := store.takes.Load()
	s.ask("rest", key("sk_a"), visit("r1"))
	if store.takes.Load() != before+1 {
		t.Error("after a minute the answer was given again")
	}
	if c := s.engine.Counters(); c.Visits != 1 {
		t.Errorf("%d visits were answered again, want 1", c.Visits)
	}
}

// A refusal is the answer again, too, with the time that has passed taken off; and
// a lease is not taken twice, nor given back twice.
func TestOnceForARefusedVisit(t *testing.T) {
	s, store := newAskedSite(t, `
limits: {slow: {per: ip, rate: 6/m, burst: 1}}
routes: [{name: rest, match: {prefix: /}, limits: {few: {per: ip, concurrency: 2}}}]
`)
	s.ask("rest", visit("r1")).want(t, "first", 204)
	s.ask("rest", visit("r1")).want(t, "first again", 204, "RateLimit: \"slow\";r=0;t=10")
	s.ask("rest", visit("r2")).want(t, "second", 403, "X-Sluice-Limit: slow", "Retry-After: 10")
	s.clock.Advance(4 * time.Second)
	s.ask("rest", visit("r2")).want(t, "second again", 403, "X-Sluice-Limit: slow", "Retry-After: 6")
	if n := store.takes.Load(); n != 2 {
		t.Errorf("the store was asked %d times, want 2", n)
	}
	if known, err := s.engine.Complete(Completion{ID: "r1", Path: "/_sluice/open/rest", Status: 200}); !known || err != nil {
		t.Errorf("the first request's end: known %t, %v", known, err)
	}
	if known, _ := s.engine.Complete(Completion{ID: "r1", Path: "/_sluice/open/rest", Status: 200}); known {
		t.Error("it ended twice")
	}
}

// A request that came while the first question about it was still being decided
// waits for that answer. An Idempotency-Key that both bring is not a repetition.
func TestVisitsThatMeet(t *testing.T) {
	s, store := newAskedSite(t, `
limits: {few: {per: ip, rate: 1/h, burst: 5}, again: {per: ip, retries: 60/m}}
routes: [{name: rest, match: {prefix: /}}]
`)
	s.engine.deadline = time.Minute // nobody is to give up before
	hold := make(chan struct{})
	store.hold.Store(&hold)
	var all sync.WaitGroup
	verdicts := make([]Verdict, 8)
	for i := range verdicts {
		all.Go(func() {
			verdicts[i] = s.decide("rest", visit("r1"), "X-Sluice-Idempotency: order-7").Verdict
		})
	}
	for store.takes.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	close(hold)
	all.Wait()
	for i, v := range verdicts {
		if v != Allow {
			t.Errorf("question %d: %v", i, v)
		}
	}
	if n := store.takes.Load(); n != 1 {
		t.Errorf("the store was asked %d times, want 1", n)
	}
	s.ask("rest", visit("r2"), "X-Sluice-Idempotency: order-7").want(t, "a true repetition", 204, `RateLimit: "few";r=3;t=7200`)
	if n := store.takes.Load(); n != 2 {
		t.Errorf("the store was asked %d times, want 2", n)
	}
}

// What the fail mode said is nobody's answer: the next question asks the store.
func TestFailModesAreNotRemembered(t *testing.T) {
	s, store := newAskedSite(t, shop)
	store.fail.Store(true)
	s.ask("rest", visit("r1")).want(t, "away", 204, "X-Sluice-Degraded: 1")
	store.fail.Store(false)
	s.ask("rest", visit("r1")).want(t, "back", 204, "X-Sluice-Degraded: ", `RateLimit: "speed";r=2;t=1`)
}

// A storm of refused requests asks the store once for each subject, route and two
// seconds; the waiting that is told grows shorter all the same. C047
func TestRefusalsAreRemembered(t *testing.T) {
	s, store := newAskedSite(t, `
identity: {sources: [{api_key: {header: X-API-Key}}], missing: {plan: anonymous}}
plans:
  anonymous: {limits: {speed: {per: ip, rate: 12/m, burst: 2}}}
  pro: {limits: {speed: {per: key, rate: 12/m, burst: 2}}}
tenants: [{id: acme, plan: pro, keys: [{id: a, sha256: hash(sk_a)}, {id: b, sha256: hash(sk_b)}]}]
routes: [{name: rest, match: {prefix: /}, cost: 2}, {name: light, match: {prefix: /light}}]
`)
	s.ask("rest").want(t, "first", 204)
	s.ask("rest").want(t, "refused", 403, "Retry-After: 10")
	for range 50 {
		s.ask("rest").want(t, "storm", 403, "X-Sluice-Limit: speed", "X-Sluice-Status: 429", "Retry-After: 10")
	}
	s.clock.Advance(1500 * time.Millisecond)
	s.ask("rest").want(t, "later", 403, "Retry-After: 9", `RateLimit: "speed";r=0;t=9`)
	if n := store.takes.Load(); n != 2 {
		t.Errorf("the store was asked %d times, want 2", n)
	}
	s.clock.Advance(time.Second)
	s.ask("rest").want(t, "after two seconds", 403, "Retry-After: 8")
	if n := store.takes.Load(); n != 3 {
		t.Errorf("after two seconds the store was asked %d times, want 3", n)
	}
	// Others are none of it: another address, another key, another route.
	s.ask("rest", ip("192.0.2.77")).want(t, "another address", 204)
	s.ask("rest", key("sk_a")).want(t, "a key", 204)
	s.ask("rest", key("sk_b")).want(t, "another key", 204)
	s.ask("light").want(t, "another route, less", 403, "Retry-After: 3")
	s.clock.Advance(8 * time.Second)
	s.ask("rest").want(t, "when it fits", 204)
	if c := s.engine.Counters(); c.Refusals != 51 {
		t.Errorf("%d refusals were not asked about, want 51", c.Refusals)
	}
}

// What may change at once is asked about each time; and who grants, resets or
// reloads is felt at once.
func TestRefusalsThatAreNotRemembered(t *testing.T) {
	t.Run("concurrency", func(t *testing.T) {
		s, store := newAskedSite(t, "routes: [{name: rest, match: {prefix: /}, limits: {few: {per: ip, concurrency: 1}}}]\n")
		s.ask("rest", visit("r1")).want(t, "first", 204)
		for i := range 3 {
			s.ask("rest", visit(fmt.Sprint("x", i))).want(t, "refused", 403, "X-Sluice-Reason: concurrency")
		}
		if n := store.takes.Load(); n != 4 {
			t.Errorf("the store was asked %d times, want 4", n)
		}
	})
	t.Run("retries pay for each attempt", func(t *testing.T) {
		s, store := newAskedSite(t, "limits: {slow: {per: ip, rate: 1/m, burst: 1}, again: {per: ip, retries: 3/h}}\nroutes: [{name: rest, match: {prefix: /}}]\n")
		s.ask("rest").want(t, "first", 204)
		for range 4 {
			s.ask("rest", "X-Sluice-Retry: 1")
		}
		s.ask("rest", "X-Sluice-Retry: 1").want(t, "the budget", 403, "X-Sluice-Limit: again")
		if n := store.takes.Load(); n != 6 {
			t.Errorf("the store was asked %d times, want 6", n)
		}
	})
	slow := "limits: {slow: {per: ip, rate: 1/m, burst: 1}}\nroutes: [{name: rest, match: {prefix: /}}]\n"
	for name, change := range map[string]func(s *site, store *asked){
		"a reset":  func(s *site, store *asked) { store.Store = limit.NewMemory(limit.MemoryOptions{}); s.engine.Forget() },
		"a reload": func(s *site, store *asked) { s.swap("routes: [{name: rest, match: {prefix: /}}]\n") },
	} {
		t.Run(name, func(t *testing.T) {
			s, store := newAskedSite(t, slow)
			s.ask("rest").want(t, "first", 204)
			s.ask("rest").want(t, "refused", 403)
			change(s, store)
			s.ask("rest").want(t, "then", 204)
		})
	}
}

// A visit whose limit is gone with a reload is asked about anew.
func TestVisitsAcrossReloads(t *testing.T) {
	s, _ := newAskedSite(t, "limits: {a: {per: ip, rate: 1/h, burst: 9}, b: {per: ip, rate: 1/h, burst: 5}}\nroutes: [{name: rest, match: {prefix: /}}]\n")
	s.ask("rest", visit("r1")).want(t, "before", 204, `RateLimit: "b";r=4;t=3600`)
	s.swap("limits: {a: {per: ip, rate: 1/h, burst: 9}}\nroutes: [{name: rest, match: {prefix: /}}]\n")
	s.ask("rest", visit("r1")).want(t, "after", 204, `RateLimit: "a";r=7;t=7200`)
}

// The table is of fixed size: it forgets the oldest, and takes nothing for another.
func TestRecallIsBounded(t *testing.T) {
	now := time.Now()
	r := newRecall(1<<10, now)
	const n = 50_000
	for i := range n {
		key := r.key(fmt.Append(nil, "key ", i))
		if _, _, ok := r.get(key, now); ok {
			t.Fatalf("key %d is known before it came", i)
		}
		r.put(key, now, time.Minute, said{told: int16(i % 1000)})
		if s, _, ok := r.get(key, now); !ok || s.told != int16(i%1000) {
			t.Fatalf("key %d: %+v, %t", i, s, ok)
		}
		now = now.Add(time.Microsecond)
	}
	kept := 0
	for i := range n {
		if s, _, ok := r.get(r.key(fmt.Append(nil, "key ", i)), now); ok {
			kept++
			if s.told != int16(i%1000) {
				t.Errorf("key %d has another's answer", i)
			}
		}
	}
	if kept < 500 || kept > 1<<10 {
		t.Errorf("%d answers are kept in %d places", kept, 1<<10)
	}
	r.clear()
	if _, _, ok := r.get(r.key(fmt.Append(nil, "key ", n-1)), now); ok {
		t.Error("something was left when all was forgotten")
	}
}

// A claim whose owner never came back is taken over.
func TestRecallClaims(t *testing.T) {
	now := time.Now()
	r := newRecall(1<<10, now)
	k := r.key([]byte("a"))
	if _, _, known, busy := r.claim(k, now); known || busy {
		t.Fatalf("the first claim: known %t, busy %t", known, busy)
	}
	if _, _, known, busy := r.claim(k, now.Add(time.Second)); known || !busy {
		t.Errorf("the second claim: known %t, busy %t", known, busy)
	}
	if _, _, known, busy := r.claim(k, now.Add(3*time.Second)); known || busy {
		t.Errorf("after three seconds: known %t, busy %t", known, busy)
	}
	r.drop(k, now.Add(3*time.Second))
	if _, _, known, busy := r.claim(k, now.Add(3*time.Second)); known || busy {
		t.Errorf("dropped: known %t, busy %t", known, busy)
	}
}

// NGINX asks another instance when one is lost: a hard quota that both share knows
// the request, and is charged once. An instance alone needs no mark of it.
func TestHardQuotasKnowRequestsAcrossInstances(t *testing.T) {
	policy := "limits: {monthly: {per: ip, quota: 10/month}}\nroutes: [{name: rest, match: {prefix: /}}]\n"
	for _, shared := range []bool{true, false} {
		clock := limittest.NewClock()
		store := limit.NewMemory(limit.MemoryOptions{Now: clock.Now})
		one, two := newSiteOn(t, "", clock, store), newSiteOn(t, "", clock, store)
		one.engine.shared, two.engine.shared = shared, shared
		one.swap(policy)
		two.swap(policy)
		one.ask("rest", visit("r1")).want(t, "one", 204)
		two.ask("rest", visit("r1")).want(t, "two", 204)
		want := int64(2)
		if shared {
			want = 1
		}
		if n := one.used("rest", "monthly", visit("r2")); n != want {
			t.Errorf("shared %t: %d units are used, want %d", shared, n, want)
		}
		if marks := store.Len() - 1; shared != (marks > 0) {
			t.Errorf("shared %t: %d marks of requests", shared, marks)
		}
	}
}
