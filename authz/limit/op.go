package limit

import (
	"bytes"
	"fmt"
	"math"
	"time"
)

// Kind is what an Op counts, and how.
type Kind uint8

// The kinds of limits.
const (
	// Rate is a token bucket of Burst units that Refill fills. With MaxWait it lets
	// callers take tokens ahead and hold their answer, with Reserve it keeps a part
	// of the bucket for others.
	Rate Kind = iota
	// FixedWindow lets Max units pass in each window of Length. Windows start at
	// multiples of Length since 1970 UTC.
	FixedWindow
	// SlidingWindow lets Max units pass in the window of Length that ends now, if
	// the units of the last fixed window had come evenly: so much of them counts as
	// of their window is still inside, rounded up. A burst across the edge can reach
	// twice Max.
	SlidingWindow
	// LogWindow lets Max units, MaxLog at most, pass in any window of Length,
	// exactly: each unit is remembered for Length.
	LogWindow
	// Quota lets Max units pass in each period of Calendar, and Overage more that are
	// counted apart.
	Quota
	// Concurrency lets Max leases be held at a time. A lease is named by ID, freed by
	// Settle, and over after Length.
	Concurrency
	// Retries is a bucket like Rate that is also charged when another limit
	// refuses, in shadow too.
	Retries

	kindCount
)

const (
	// MaxCount is where counting units ends, 2^53-1: up to here a float64, all that
	// Redis' Lua has, is exact. A larger Max or Overage means MaxCount.
	MaxCount = maxMicros
	// MaxLog is the largest Max of a LogWindow.
	MaxLog = 10_000
	// MaxHold is the longest MaxWait of a Rate.
	MaxHold = 2 * time.Second
	// MaxID is the length of the longest ID, in bytes.
	MaxID = 128
	// MinLength is the shortest Length; the longest is MaxPeriod.
	MinLength = time.Millisecond
	// Remember is how long an ID is remembered that made Take or Settle do something.
	Remember = time.Minute
	// Unlimited is the Max of a Quota that only counts.
	Unlimited int64 = math.MaxInt64
)

// Op asks one limit for Cost units. It is plain data: stores read it, and keep
// nothing of it. Fields that its Kind does not name are ignored.
type Op struct {
	// Tag names the slot of the counter: counters with one tag live together.
	// Key is the whole name of the counter, Tag included; no two ops of one
	// decision have the same, and a key has one Kind for ever. Both, and ID, are
	// borrowed until the call returns.
	Tag, Key []byte
	// ID names the request to a Concurrency (1 to MaxID bytes) and, if not empty, to
	// a Quota. A Take with an ID that is known takes no second lease, and within
	// Remember charges the quota no second time; this op is then answered as
	// fitting. Make it of the request's id, and of whatever makes another charge.
	ID []byte
	// Kind is the kind of limit.
	Kind Kind
	// Shadow limits refuse nobody and are charged only when the enforced ones
	// let pass and they have room themselves.
	Shadow bool
	// Soft lets the charge of a Quota be written later: by an Embedded with its next
	// flush, by a Soft in front of a shared store from this instance's memory. Memory
	// and Redis ignore it.
	Soft bool
	// Cost in units, 1 or more; 1 for a Concurrency. A cost above what the limit can
	// ever hold never fits. Settle ignores it.
	Cost int64

	// Refill and Burst (units, 1 to MaxBurst; 0 holds nothing and denies) are the
	// bucket of Rate and Retries.
	Refill Refill
	Burst  int64
	// Reserve is how many units of Burst, 0 to Burst, this op must leave to others,
	// for Rate and Retries. With a Reserve nothing is taken ahead.
	Reserve int64
	// MaxWait is how long the answer may be held for tokens to come, for Rate: 0 to
	// MaxHold. The bucket then lends at most what comes in this time.
	MaxWait time.Duration
	// Share is how many units above Cost a Rate takes with it, 0 to MaxBurst, as far as
	// they are there and nobody's Reserve: for the caller to spend later. State.Share
	// tells how many came. Not with a MaxWait.
	Share int64
	// Leased lets a Leased in front of a shared store spend a Rate from shares that it
	// has taken ahead. Stores ignore it.
	Leased bool

	// Max is the limit of all other kinds, 0 or more; 0 denies. For a Quota it is the
	// quota and the grants active now (add them with SumCounts), or Unlimited.
	Max int64
	// Length is the length of a window, or the longest life of a lease: MinLength to
	// MaxPeriod; microseconds count, less does not.
	Length time.Duration
	// Overage is how many units above Max a Quota lets pass; 0 or more.
	Overage int64
	// Calendar tells the periods of a Quota. It is used by pointer: keep one for each
	// limit.
	Calendar *Calendar
	// Stamp is for Settle: State.Stamp as Take answered it. Others ignore it.
	Stamp int64
}

// Limit is the number that a client is told as the limit of this op: Burst, or
// Max; Unlimited for an unlimited quota.
func (op *Op) Limit() int64 {
	if op.bucketed() {
		return op.Burst
	}
	return op.Max
}

// SumCounts adds a quota and its grants, none of them below 0. What is Unlimited
// stays so, and nothing else becomes it.
func SumCounts(counts ...int64) int64 {
	sum := int64(0)
	for _, n := range counts {
		if n == Unlimited {
			return Unlimited
		}
		sum = min(sum+min(n, MaxCount), MaxCount)
	}
	return sum
}

// bucketed tells whether op is a token bucket.
func (op *Op) bucketed() bool { return op.Kind == Rate || op.Kind == Retries }

// max is Max as it is counted.
func (op *Op) max() int64 { return min(op.Max, MaxCount) }

// overage is Overage as it is counted.
func (op *Op) overage() int64 { return min(op.Overage, MaxCount) }

// length is Length in microseconds.
func (op *Op) length() int64 { return op.Length.Microseconds() }

// fault tells what no policy can mean; empty when all is well. It stops what would
// divide by zero or overflow.
func (op *Op) fault() string {
	switch {
	case op.Kind >= kindCount:
		return "unknown kind"
	case op.bucketed():
		return op.bucketFault()
	case op.Max < 0 || op.Overage < 0:
		return "negative max or overage"
	}
	switch op.Kind {
	case Quota:
		if op.Calendar == nil {
			return "no calendar"
		}
		if len(op.ID) > MaxID {
			return "long id"
		}
		return ""
	case LogWindow:
		if op.Max > MaxLog {
			return "long log"
		}
	case Concurrency:
		if len(op.ID) > MaxID {
			return "long id"
		}
	}
	if op.Length < MinLength || op.Length > MaxPeriod {
		return "length out of range"
	}
	return ""
}

func (op *Op) bucketFault() string {
	switch {
	case op.Burst < 0 || op.Burst > MaxBurst || op.Reserve < 0 || op.Reserve > op.Burst || !op.Refill.valid():
		return "impossible bucket"
	case op.MaxWait < 0 || op.MaxWait > MaxHold || (op.Kind == Retries && op.MaxWait != 0):
		return "impossible wait"
	case op.Share < 0 || op.Share > MaxBurst || (op.Share > 0 && (op.Kind == Retries || op.MaxWait > 0)):
		return "impossible share"
	}
	return ""
}

// checkOps stops what is a programmer's mistake; see Store.
func checkOps(ops []Op, others int) {
	if len(ops) != others || len(ops) > MaxOps {
		panic(fmt.Sprintf("BUG: %d ops with %d states or deltas; want one length, at most %d", len(ops), others, MaxOps))
	}
	for i := range ops {
		if fault := ops[i].fault(); fault != "" {
			panic(fmt.Sprintf("BUG: impossible op: %s: %+v", fault, ops[i]))
		}
		for j := range ops[:i] {
			if bytes.Equal(ops[j].Key, ops[i].Key) {
				panic(fmt.Sprintf("BUG: ops %d and %d of one decision have the same key", j, i))
			}
		}
	}
}

// checkTake is checkOps for what is charged or looked at.
func checkTake(ops []Op, states []State) {
	checkOps(ops, len(states))
	for i := range ops {
		op := &ops[i]
		if op.Cost < 1 || (op.Kind == Concurrency && (op.Cost != 1 || len(op.ID) == 0)) {
			panic(fmt.Sprintf("BUG: impossible op: cost %d, id %q", op.Cost, op.ID))
		}
	}
}

// checkSettle is checkOps for Settle.
func checkSettle(id []byte, ops []Op, deltas []int64) {
	checkOps(ops, len(deltas))
	if len(id) > MaxID {
		panic(fmt.Sprintf("BUG: the id of a correction has %d bytes; want at most %d", len(id), MaxID))
	}
	for i, delta := range deltas {
		if delta < -MaxBurst || delta > MaxBurst {
			panic(fmt.Sprintf("BUG: impossible delta %d; want at most %d", delta, MaxBurst))
		}
		if ops[i].Kind == Concurrency && len(ops[i].ID) == 0 {
			panic("BUG: a lease without a name")
		}
	}
}
