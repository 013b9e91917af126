//go:build !race

package limit

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestMemoryAllocatesNothingForKnownKeys(t *testing.T) {
	for _, n := range []int{1, 2, 4, fewOps, MaxOps} {
		m := NewMemory(MemoryOptions{})
		ops, states := make([]Op, n), make([]State, n)
		for i := range ops {
			tag := fmt.Appendf(nil, "tenant %d", i%3)
			ops[i] = Op{Tag: tag, Key: fmt.Appendf(nil, "sluice:{%s}:%d", tag, i), Refill: NewRefill(Unit, time.Hour), Burst: 50, Cost: 1}
		}
		take := func() {
			if _, err := m.Take(context.Background(), ops, states); err != nil {
				t.Fatal(err)
			}
		}
		take()
		if got := testing.AllocsPerRun(100, take); got != 0 { // passing, then denied
			t.Errorf("%d ops: %v allocations, want none", n, got)
		}
	}
}

// Of the other kinds only a lease that is new needs memory: its name. Logs grow
// until they hold what they may.
func TestMemoryAllocatesLittle(t *testing.T) {
	day := NewCalendar(Day, time.UTC, 1)
	for _, c := range []struct {
		name string
		op   Op
		want float64
	}{
		{"fixed", Op{Kind: FixedWindow, Max: 50, Length: time.Hour}, 0},
		{"sliding", Op{Kind: SlidingWindow, Max: 50, Length: time.Hour}, 0},
		{"log", Op{Kind: LogWindow, Max: 50, Length: time.Millisecond}, 0},
		{"quota", Op{Kind: Quota, Max: 50, Overage: 10, Calendar: day}, 0},
		{"a quota that knows its ids", Op{Kind: Quota, Max: 5000, Calendar: day, ID: []byte("request")}, 0},
		{"a lease that is held", Op{Kind: Concurrency, Max: 5, Length: time.Hour, ID: []byte("request")}, 0},
		{"retries", Op{Kind: Retries, Burst: 50, Refill: NewRefill(Unit, time.Hour)}, 0},
	} {
		m := NewMemory(MemoryOptions{})
		ops, states := []Op{c.op}, make([]State, 1)
		ops[0].Tag, ops[0].Key, ops[0].Cost = []byte("acme"), []byte("sluice:{acme}:x"), 1
		take := func() {
			if _, err := m.Take(context.Background(), ops, states); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			take()
		}
		if got := testing.AllocsPerRun(200, take); got > c.want {
			t.Errorf("%s: %v allocations, want %v", c.name, got, c.want)
		}
	}
}

func TestCallAllocatesNothing(t *testing.T) {
	sha := "0123"
	c := newCall(&sha)
	ops := make([]Op, 4)
	for i := range ops {
		ops[i] = Op{Key: fmt.Appendf(nil, "sluice:{acme}:%d", i), Refill: NewRefill(Unit, time.Second), Burst: 10, Cost: 1}
	}
	states := make([]State, len(ops))
	whole := string(appendNumbers(nil, 0, 100,
		1, 5*Unit, 100, 6*Unit, 100, 0, 0, 0, 0, 0, 1, 9*Unit, 0, 10*Unit, 100, 1, 3, 3, 3, 3))
	run := func() {
		c.encode(verbTake, ops, nil, nil, time.Time{}, 1000)
		reply, err := c.claim(whole)
		if err == nil {
			err = decode(reply, ops, states)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run()
	if got := testing.AllocsPerRun(100, run); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}
