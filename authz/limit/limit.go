package limit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// Unit is how many micro-units one unit of cost is worth. Token levels are
// kept in micro-units, so that a slow refill loses nothing between two requests.
const Unit = 1_000_000

// MaxBurst is the largest burst of a bucket, in units. It keeps every level
// (burst times Unit) exact in a float64, which is all that Redis' Lua has.
const MaxBurst = 1_000_000_000

// Never is the wait that no waiting helps: the cost is more than the limit can
// ever hold.
const Never time.Duration = -1

// MaxOps is how many limits one decision may touch.
const MaxOps = 64

// ErrUnavailable is what every failure of a store wraps: it is away, too slow,
// full, or answered what cannot be believed. The decision is then the fail
// mode's.
var ErrUnavailable = errors.New("limit store unavailable")

// errClosed is the cause when a closed store is asked.
var errClosed = fmt.Errorf("%w: the store is closed", ErrUnavailable)

// Op asks one limit for Cost units. It is plain data: stores read it, and keep
// nothing of it.
type Op struct {
	// Tag names the slot of the counter: counters with one tag live together.
	// Key is the whole name of the counter, Tag included; no two ops of one
	// decision have the same. Both are borrowed until Take returns.
	Tag, Key []byte
	// Refill and Burst (units, 1 to MaxBurst; 0 holds nothing and denies) are the
	// bucket.
	Refill Refill
	Burst  int64
	// Cost in units, 1 or more. A cost above Burst never fits.
	Cost int64
	// Shadow limits refuse nobody and are charged only when the enforced ones
	// let pass and they have room themselves.
	Shadow bool
}

// State is what a limit says of one Op, after the step.
type State struct {
	// Fits tells whether the cost fitted. A refusal of another limit does not
	// change it.
	Fits bool
	// Remaining is what is left, in whole units, rounded down, never below 0.
	Remaining int64
	// Reset is the time until the bucket is full, rounded up to microseconds; at
	// most 285 years, as is Wait.
	Reset time.Duration
	// Wait is the time until Cost fits if nobody else takes any, rounded up to
	// microseconds; 0 when it fitted, Never when it cannot.
	Wait time.Duration
}

// Store keeps the counters of limits. Its clock is its own, and never runs
// backwards for one key.
//
// Ops that no policy can mean (a cost below 1, a burst out of its range, a
// Refill not made by NewRefill, one key twice, slices of two lengths or longer
// than MaxOps) are a programmer's mistake: stores panic with "BUG:".
//
// Implementations are safe for concurrent use.
type Store interface {
	// Take charges every enforced op or none: all in one step that no other
	// caller sees the middle of. states[i] answers ops[i]; the slices have one
	// length, at most MaxOps. It returns the index of the enforced op that
	// refused (of several, the one with the longest Wait, Never being the
	// longest; of equals, the first), or -1 when all were charged. After an
	// error, which wraps ErrUnavailable, states hold nothing of worth and the
	// charge may or may not have happened: callers must not repeat it.
	Take(ctx context.Context, ops []Op, states []State) (refused int, err error)
	// Peek answers like Take and charges nothing.
	Peek(ctx context.Context, ops []Op, states []State) error
	// Close releases what the store holds. Take and Peek fail afterwards.
	Close() error
}

// checkOps stops what would divide by zero, overflow or count one key twice.
func checkOps(ops []Op, states []State) {
	if len(ops) != len(states) || len(ops) > MaxOps {
		panic(fmt.Sprintf("BUG: %d ops with %d states; want one length, at most %d", len(ops), len(states), MaxOps))
	}
	for i := range ops {
		op := &ops[i]
		if op.Cost < 1 || op.Burst < 0 || op.Burst > MaxBurst || !op.Refill.valid() {
			panic(fmt.Sprintf("BUG: impossible op: cost %d, burst %d, refill %+v", op.Cost, op.Burst, op.Refill))
		}
		for j := range ops[:i] {
			if bytes.Equal(ops[j].Key, op.Key) {
				panic(fmt.Sprintf("BUG: ops %d and %d of one decision have the same key", j, i))
			}
		}
	}
}

// refusal is the index of the enforced op that is answered for all that
// refused, or -1.
func refusal(ops []Op, states []State) int {
	refused := -1
	for i := range ops {
		if ops[i].Shadow || states[i].Fits {
			continue
		}
		if refused < 0 || longer(states[i].Wait, states[refused].Wait) {
			refused = i
		}
	}
	return refused
}

// longer compares two waits; Never is longer than any other.
func longer(a, b time.Duration) bool {
	if a == Never || b == Never {
		return a == Never && b != Never
	}
	return a > b
}
