package limit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// What Memory says it holds is what it holds, after anything that may happen to
// logs, leases and marks; and it never holds more than it may.
func TestMemoryCountsWhatItHolds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)
	m := NewMemory(MemoryOptions{MaxKeys: 400, Now: func() time.Time { return now }})
	rng := rand.New(rand.NewPCG(7, 8))
	day := NewCalendar(Day, time.UTC, 1)
	full, most := 0, 0
	for step := range 6_000 {
		tag := fmt.Appendf(nil, "tag %d", rng.IntN(5))
		ops, deltas := make([]Op, 1+rng.IntN(3)), make([]int64, 3)
		for i := range ops {
			kind := Kind((rng.IntN(2) + 2*i + step) % int(kindCount))
			ops[i] = Op{
				Tag: tag, Key: fmt.Appendf(nil, "%s/%d/%d/%d", tag, kind, i, rng.IntN(3)), Kind: kind, Cost: 1, Max: 100, Length: time.Second,
				Refill: NewRefill(Unit, time.Second), Burst: 10, Calendar: day, ID: fmt.Append(nil, rng.IntN(200)), Stamp: now.UnixMicro(),
			}
			deltas[i] = int64(rng.IntN(5) - 2)
		}
		var err error
		switch rng.IntN(8) {
		case 0:
			err = m.Settle(context.Background(), fmt.Append(nil, rng.IntN(50)), ops, deltas[:len(ops)])
		case 1:
			err = m.Reset(context.Background(), ops)
		default:
			_, err = m.Take(context.Background(), ops, make([]State, len(ops)))
		}
		if errors.Is(err, ErrUnavailable) {
			full++
		}
		now = now.Add(time.Duration(rng.IntN(20)) * time.Millisecond)
		most = max(most, m.Len())
		if step%50 != 0 {
			continue
		}
		if held := m.recount(); held != m.Len() || held > 400 {
			t.Fatalf("step %d: %d are held, Len says %d", step, held, m.Len())
		}
	}
	if full == 0 || most < 390 {
		t.Errorf("it was full %d times, and held %d of 400 at most", full, most)
	}
}

// recount is Len, counted.
func (m *Memory) recount() (held int) {
	for i := range m.shards {
		s := &m.shards[i]
		for _, part := range s.parts {
			for _, e := range part.slots {
				switch {
				case e.hash == 0:
					continue
				case e.form() == logForm:
					held += s.logs.at(e.words[0]).weight()
				case e.form() == leaseForm:
					held += s.leases.at(e.words[0]).weight()
				}
				held++
			}
		}
	}
	return held
}
