//go:build !race

package limit

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func TestSoftAllocatesNothingForKnownKeys(t *testing.T) {
	s := NewSoft(NewMemory(MemoryOptions{}), SoftOptions{Instances: 2, FlushEvery: time.Hour})
	defer s.Close()
	calendar := NewCalendar(Month, time.UTC, 1)
	for _, soft := range []int{1, 2, 4} {
		ops, states := make([]Op, 4), make([]State, 4)
		for i := range ops {
			key := fmt.Appendf(nil, "sluice:{acme}:%d-%d", soft, i)
			ops[i] = Op{Tag: key[8:12], Key: key, Cost: 1, Kind: Quota, Soft: true, Max: 1e9, Calendar: calendar}
			if i >= soft {
				ops[i].Kind, ops[i].Refill, ops[i].Burst = Rate, NewRefill(Unit, time.Hour), 50
			}
		}
		take := func() {
			if _, err := s.Take(context.Background(), ops, states); err != nil {
				t.Fatal(err)
			}
		}
		take()
		if got := testing.AllocsPerRun(100, take); got != 0 { // passing, then denied
			t.Errorf("%d soft ops: %v allocations, want none", soft, got)
		}
	}
}
