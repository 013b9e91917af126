package authz

import (
	"testing"
	"time"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// A route that goes on without the store: this instance's part of its limits, told as
// degraded, and written when the store is back. C090
func TestGoesOnWithoutStore(t *testing.T) {
	clock := limittest.NewClock()
	store := &asked{Store: limit.NewMemory(limit.MemoryOptions{Now: clock.Now})}
	s := newSiteOn(t, "", clock, store)
	s.engine.local = limit.NewLocal(store, limit.LocalOptions{Instances: 2, Now: clock.Now, WriteEvery: time.Hour})
	s.swap(`
limits:
  speed: {per: ip, rate: 1/h, burst: 8}
  daily: {per: ip, quota: 100/day, count: {status: [2xx]}}
routes:
  - {name: local, match: {prefix: /local}, on_store_down: local}
  - {name: jobs, match: {prefix: /jobs}, on_store_down: local, limits: {jobs: {per: ip, concurrency: 2}}}
  - {name: open, match: {prefix: /}}
`)
	s.ask("local", visit("r0")).want(t, "with the store", 204, "X-Sluice-Degraded: ", "RateLimit: \"speed\";r=7;t=3600")
	store.fail.Store(true)
	for i := range 4 {
		id := visit("r" + string(rune('1'+i)))
		first := s.ask("local", id)
		first.want(t, "without", 204, "X-Sluice-Decision: allow", "X-Sluice-Degraded: 1")
		if again := s.ask("local", id); again.raw != first.raw {
			t.Errorf("the same visit:\n%s\nfirst:\n%s", again.raw, first.raw)
		}
	}
	s.ask("local").want(t, "its part is used up", 403, "X-Sluice-Status: 429", "X-Sluice-Limit: speed", "X-Sluice-Degraded: 1", "Retry-After: 7200")
	s.ask("open").want(t, "an open route", 204, "X-Sluice-Degraded: 1", "RateLimit: ")
	// What ended with a status that does not count is given back where it was taken.
	if known, err := s.engine.Complete(Completion{ID: "r1", Path: "/_sluice/open/local", Status: 500}); !known || err != nil {
		t.Errorf("an end: known %t, %v", known, err)
	}
	if n := s.engine.local.Owed(); n != 3 {
		t.Errorf("%d units are owed, want 3", n)
	}
	s.ask("jobs", visit("j1"), ip("192.0.2.2")).want(t, "a lease", 204)
	s.ask("jobs", visit("j2"), ip("192.0.2.2")).want(t, "no other", 403, "X-Sluice-Reason: concurrency")
	if known, err := s.engine.Complete(Completion{ID: "j1", Path: "/_sluice/open/jobs", Status: 200}); !known || err != nil {
		t.Errorf("the end of a lease: known %t, %v", known, err)
	}
	s.ask("jobs", visit("j3"), ip("192.0.2.2")).want(t, "the lease is free", 204)

	store.fail.Store(false)
	s.ask("local", visit("r9")).want(t, "the store is back", 204, "X-Sluice-Degraded: ", "RateLimit: \"speed\";r=6;t=7200")
	if err := s.engine.local.Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := s.used("open", "daily"); n != 5 { // r0, three of r1 to r4, r9
		t.Errorf("%d units of the quota are counted, want 5", n)
	}
}
