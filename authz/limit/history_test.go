package limit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

// Both stores and the model through one long history, with the script cache
// emptied in the middle of it now and then (C082).
func TestStoresAgree(t *testing.T) {
	t.Parallel()
	clock := limittest.NewClock()
	addr := limittest.StartRedis(t)
	client := plainClient(t, addr)
	rng := rand.New(rand.NewPCG(20260203, 7))
	p := limittest.NewPlayer(rng.IntN, clock, "", map[string]limit.Store{
		"memory": limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace}),
		"redis":  openRedis(t, addr, limit.RedisOptions{Now: clock.Now, Grace: limittest.Grace}),
	})
	for step := range 20_000 {
		if rng.IntN(500) == 0 {
			client.ScriptFlush(t.Context())
		}
		p.Step(t)
		if t.Failed() {
			t.Fatalf("at step %d", step)
		}
	}
	if rare := p.Rare(20); len(rare) > 0 {
		t.Errorf("the history hardly shows %q", rare)
	}
}

// Short histories, for which rapid finds the shortest that disagrees.
func TestStoresAgreeInShort(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	clock := limittest.NewClock()
	stores := map[string]limit.Store{
		"memory": limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace}),
		"redis":  openRedis(t, addr, limit.RedisOptions{Now: clock.Now, Grace: limittest.Grace}),
	}
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		histories++
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "chance") }
		p := limittest.NewPlayer(draw, clock, fmt.Sprint(histories, "."), stores)
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			p.Step(stepper{t, rt})
		}
	})
}

// stepper is rapid's T where a history wants a testing.TB.
type stepper struct {
	testing.TB
	rt *rapid.T
}

func (s stepper) Fatalf(format string, args ...any) { s.rt.Fatalf(format, args...) }
func (s stepper) Context() context.Context          { return s.rt.Context() }
