package limit

import (
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

// State is what a limit says of one Op, after the step.
type State struct {
	// Fits tells whether the cost fitted. A refusal of another limit does not
	// change it.
	Fits bool
	// Remaining is what is left, in whole units, rounded down, never below 0: tokens
	// less the op's Reserve, Max less what is counted, free leases. It is Unlimited
	// for an unlimited quota.
	Remaining int64
	// Used is what windows and quotas have counted, in units, overage included, or
	// how many leases are held; 0 for buckets. It may be above Max, when Max was
	// lowered or a correction went past it.
	Used int64
	// Over is how many units of Used a quota has counted as overage.
	Over int64
	// Reset is the time until the bucket is full, the fixed window ends, the window
	// after this one ends (sliding), all units have left (log) or the quota's period
	// ends; 0 for leases. Rounded up to microseconds; at most 285 years, as is Wait.
	Reset time.Duration
	// Wait is the time until Cost fits if nobody else takes any, rounded up to
	// microseconds; 0 when it fitted, Never when it cannot. A quota's is the end of
	// its period, and a lease's a second: it comes free when somebody is done.
	Wait time.Duration
	// Delay is how long the answer must be held, for tokens taken ahead (see
	// Op.MaxWait): at most that. 0 if it was not charged.
	Delay time.Duration
	// Share is how many units were taken beside Cost (see Op.Share); 0 if it was not
	// charged.
	Share int64
	// Stamp says where the units were counted: the beginning of a window or period,
	// the time of a log's newest unit. Microseconds of the store's clock; 0 for
	// buckets and leases. Settle wants it back.
	Stamp int64
}

// Store keeps the counters of limits. Its clock is its own, and never runs
// backwards for one key.
//
// Ops that no policy can mean (numbers out of their range, a Refill not made by
// NewRefill, one key twice, slices of two lengths or longer than MaxOps) are a
// programmer's mistake: stores panic with "BUG:".
//
// Every call is one step that no other caller sees the middle of. After an
// error, which wraps ErrUnavailable, the step may or may not have happened, and
// callers must not repeat it.
//
// Implementations are safe for concurrent use.
type Store interface {
	// Take charges every enforced op or none; Retries are charged even then.
	// states[i] answers ops[i]; the slices have one length, at most MaxOps. It
	// returns the index of the enforced op that refused (of several, the one with
	// the longest Wait, Never being the longest; of equals, the first), or -1 when
	// all were charged. After an error states hold nothing of worth.
	Take(ctx context.Context, ops []Op, states []State) (refused int, err error)
	// Peek answers like Take and charges nothing.
	Peek(ctx context.Context, ops []Op, states []State) error
	// Settle corrects what Take has charged, when a request has ended or its true
	// cost is known. deltas[i], -MaxBurst to MaxBurst, is how many units ops[i] owes
	// more or, below 0, gets back; ops[i].Stamp says where Take counted them.
	//
	// What is owed is charged without asking for room: a bucket may fall below
	// nothing, a window and a quota be counted past their end. What is given back
	// fills no bucket above full and lets no counter fall below nothing, and is lost
	// when its window or period is over or its counter forgotten: the new one has
	// not counted it. A quota gets back first what was counted last: overage first.
	//
	// A Concurrency gives its lease back, whatever the delta.
	//
	// id names this correction, with the first op's key: the same one within
	// Remember does nothing. An empty id is not remembered.
	Settle(ctx context.Context, id []byte, ops []Op, deltas []int64) error
	// Reset forgets the counters of ops, as if nobody had ever used them. Only Tag,
	// Key and Kind matter, but all must be possible.
	Reset(ctx context.Context, ops []Op) error
	// Close releases what the store holds. All others fail afterwards.
	Close() error
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
