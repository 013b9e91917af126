package limit

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

// A table must hold what a map holds, through collisions, removals and sweeps.
func TestTableIsAMap(t *testing.T) {
	t.Parallel()
	seed := maphash.MakeSeed()
	for name, hash := range map[string]func([]byte) uint64{
		"hashes":              func(key []byte) uint64 { return maphash.Bytes(seed, key) | 1 },
		"crowded hashes":      func(key []byte) uint64 { return maphash.Bytes(seed, key)%5 | 1 },
		"all one hash (C085)": func([]byte) uint64 { return 7 },
	} {
		rng := rand.New(rand.NewPCG(3, 4))
		var table table
		want := map[string]int64{}
		for step := range 20_000 {
			key := fmt.Appendf(nil, "key %d", rng.IntN(120))
			slot := table.find(hash(key), key)
			level, found := want[string(key)]
			if found != (slot >= 0) || (found && table.slots[slot].level != level) {
				t.Fatalf("%s: step %d: slot %d, want level %d %t", name, step, slot, level, found)
			}
			switch {
			case !found:
				want[string(key)] = int64(step)
				table.insert(hash(key), key, bucket{level: int64(step), burst: 1, refill: Refill{1, 1}})
			case rng.IntN(2) == 0:
				delete(want, string(key))
				table.remove(slot)
			}
			if step%1000 == 999 { // one and all
				table.sweep(len(table.slots), 0, 0)
			}
			if table.used != len(want) {
				t.Fatalf("%s: %d used, want %d", name, table.used, len(want))
			}
		}
	}
}

func TestSweepDropsWhatIsFull(t *testing.T) {
	t.Parallel()
	var table table
	for i := range 1000 { // key i is full after i microseconds
		table.insert(uint64(i*7919)|1, fmt.Append(nil, i), bucket{level: Unit - int64(i), burst: 1, refill: Refill{1, 1}})
	}
	dropped := 0
	for range 100 {
		dropped += table.sweep(len(table.slots)/10, 500+50, 50)
	}
	if dropped != 501 || table.used != 499 {
		t.Errorf("%d dropped and %d left, want 501 and 499", dropped, table.used)
	}
	for range 100 {
		dropped += table.sweep(len(table.slots), 2000, 50)
	}
	if table.used != 0 || len(table.slots) != minSlots {
		t.Errorf("%d used of %d slots, want none of %d", table.used, len(table.slots), minSlots)
	}
}
