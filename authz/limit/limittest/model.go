package limittest

import (
	"math/big"
	"time"

	"sluice/authz/limit"
)

// Model is a token bucket store as one would explain it: one at a time, one map,
// integers without an end, and no thought of speed. The stores must answer as it
// does. It never drops a key.
type Model struct {
	now  func() time.Time
	keys map[string]modelBucket
}

type modelBucket struct {
	level   *big.Int // micro-units at the time of the last write
	written time.Time
	refill  limit.Refill
	burst   int64
}

// NewModel makes an empty model.
func NewModel(now func() time.Time) *Model {
	return &Model{now: now, keys: map[string]modelBucket{}}
}

// Take answers as limit.Store's Take.
func (m *Model) Take(ops []limit.Op, states []limit.State) (refused int) {
	return m.step(ops, states, true)
}

// Peek answers as limit.Store's Peek.
func (m *Model) Peek(ops []limit.Op, states []limit.State) { m.step(ops, states, false) }

func (m *Model) step(ops []limit.Op, states []limit.State, charge bool) int {
	now := m.now()
	buckets := make([]modelBucket, len(ops))
	renumbered := make([]bool, len(ops))
	pass := true
	for i, op := range ops {
		buckets[i], renumbered[i] = m.look(op, now)
		states[i] = buckets[i].state(op, now)
		if !states[i].Fits && !op.Shadow {
			pass = false
		}
	}
	for i, op := range ops {
		if !charge {
			break
		}
		if renumbered[i] {
			m.keys[string(op.Key)] = buckets[i]
		}
		if pass && states[i].Fits {
			b := buckets[i].charged(op, now)
			m.keys[string(op.Key)] = b
			after := b.state(op, now)
			states[i].Remaining, states[i].Reset = after.Remaining, after.Reset
		}
	}
	return longest(ops, states)
}

// look is the bucket under the numbers of op, and whether these are new to it.
func (m *Model) look(op limit.Op, now time.Time) (b modelBucket, renumbered bool) {
	b, found := m.keys[string(op.Key)]
	if !found {
		return modelBucket{level: micro(op.Burst), written: now, refill: op.Refill, burst: op.Burst}, false
	}
	adopted := modelBucket{level: b.at(now), written: later(b.written, now), refill: op.Refill, burst: op.Burst}
	if adopted.level.Cmp(micro(b.burst)) == 0 { // full: as if it had never been used
		adopted.level = micro(op.Burst)
		return adopted, false
	}
	if b.refill == op.Refill && b.burst == op.Burst {
		return b, false
	}
	if adopted.level.Cmp(micro(op.Burst)) > 0 {
		adopted.level = micro(op.Burst)
	}
	return adopted, true
}

// at is the level at now, at the speed that was written.
func (b modelBucket) at(now time.Time) *big.Int {
	age := now.Sub(b.written).Microseconds()
	if age < 0 {
		age = 0
	}
	level := new(big.Int).Mul(big.NewInt(age), big.NewInt(b.refill.Micro))
	level.Div(level, big.NewInt(b.refill.Period))
	level.Add(level, b.level)
	if size := micro(b.burst); level.Cmp(size) > 0 {
		return size
	}
	return level
}

func (b modelBucket) charged(op limit.Op, now time.Time) modelBucket {
	b.level = new(big.Int).Sub(b.at(now), micro(op.Cost))
	b.written = later(b.written, now)
	return b
}

func (b modelBucket) state(op limit.Op, now time.Time) limit.State {
	level := b.at(now)
	s := limit.State{
		Fits:      level.Cmp(micro(op.Cost)) >= 0,
		Remaining: new(big.Int).Div(level, big.NewInt(limit.Unit)).Int64(),
		Reset:     b.until(micro(b.burst), now),
	}
	if op.Cost > op.Burst {
		s.Wait = limit.Never
	} else if !s.Fits {
		s.Wait = b.until(micro(op.Cost), now)
	}
	return s
}

// until is the time from now until level is held: the smallest whole number of
// microseconds after the last write that is enough, less what has passed. No
// time is longer than 285 years.
func (b modelBucket) until(level *big.Int, now time.Time) time.Duration {
	if b.at(now).Cmp(level) >= 0 {
		return 0
	}
	missing := new(big.Int).Sub(level, b.level)
	exact := new(big.Rat).SetFrac(missing.Mul(missing, big.NewInt(b.refill.Period)), big.NewInt(b.refill.Micro))
	const most = 1<<53 - 1
	micros := ceil(exact)
	if micros.Cmp(big.NewInt(most)) >= 0 {
		return most * time.Microsecond
	}
	return time.Duration(min(most, micros.Int64()-now.Sub(b.written).Microseconds())) * time.Microsecond
}

func ceil(r *big.Rat) *big.Int {
	quotient, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		quotient.Add(quotient, big.NewInt(1))
	}
	return quotient
}

func micro(units int64) *big.Int {
	return new(big.Int).Mul(big.NewInt(units), big.NewInt(limit.Unit))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// longest is the enforced op that refused and has the longest wait.
func longest(ops []limit.Op, states []limit.State) int {
	found := -1
	for i, op := range ops {
		if op.Shadow || states[i].Fits {
			continue
		}
		if found < 0 || rank(states[i].Wait) > rank(states[found].Wait) {
			found = i
		}
	}
	return found
}

func rank(wait time.Duration) time.Duration {
	if wait == limit.Never {
		return 1<<63 - 1
	}
	return wait
}
