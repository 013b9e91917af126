//go:build !race

package authz

import (
	"testing"
	"time"

	"sluice/authz/limit"
)

// A tenant with grants and a block that is over is decided on without allocating.
func TestLedgerAllocatesNothing(t *testing.T) {
	s := newSite(t, sold)
	s.quiet()
	now := s.clock.Now()
	l := s.engine.ledger
	for id, n := range map[string]note{
		"a":     {Grant: &Grant{Limit: "daily", Add: limit.MaxCount / 4, From: "2026-02-01", Until: "2026-02-09"}},
		"b":     {Grant: &Grant{Limit: "daily", Add: 1, From: "2026-02-01", Until: "2026-02-02"}},
		blockID: {Block: &Block{Until: now}},
	} {
		if err := l.put(t.Context(), []byte("acme"), id, n, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	count := func(k string) float64 {
		s.head("rest", []string{key(k)}).CopyTo(&s.ctx.Request.Header)
		ask := func() {
			s.ctx.Response.Reset()
			s.handler.serve(&s.ctx)
		}
		for range 100 {
			ask()
		}
		return testing.AllocsPerRun(1000, ask)
	}
	// Without a request id both make names up for what quotas and leases remember.
	if with, without := count("sk_a"), count("sk_g"); with != without {
		t.Errorf("%v allocations, want %v as for a tenant without grants", with, without)
	}
	if d := s.decide("rest", key("sk_a"), "X-Sluice-Request: x"); d.terms.granted(d.rules[1].limit, now) != limit.MaxCount/4 {
		t.Errorf("grants %d", d.terms.granted(d.rules[1].limit, now))
	}
}

// A quota that has reached a step is told once, and costs nothing from then on.
func TestNoticesAllocateNothing(t *testing.T) {
	to := newReceiver(t)
	s, end := told(t, to, &limit.MemoryNotes{}, t.TempDir())
	s.quiet()
	count := func(k string) float64 {
		s.head("rest", []string{key(k)}).CopyTo(&s.ctx.Request.Header)
		ask := func() {
			s.ctx.Response.Reset()
			s.handler.serve(&s.ctx)
			s.engine.Forget() // so that each is decided anew
		}
		for range 100 {
			ask()
		}
		end() // what is told is another goroutine's
		return testing.AllocsPerRun(1000, ask)
	}
	with := count("sk_a")
	s.engine.notifier.hooks.Store(&[]webhook{})
	if without := count("sk_a"); with != without {
		t.Errorf("%v allocations, want %v as without webhooks", with, without)
	}
}
