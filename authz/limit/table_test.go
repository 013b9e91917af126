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
		"hashes":              func(key []byte) uint64 { return hashOf(maphash.Bytes(seed, key), bucketForm) },
		"crowded hashes":      func(key []byte) uint64 { return hashOf(maphash.Bytes(seed, key)%5, bucketForm) },
		"all one hash (C085)": func([]byte) uint64 { return hashOf(7, bucketForm) },
	} {
		rng := rand.New(rand.NewPCG(3, 4))
		var table table
		want := map[string]int64{}
		for step := range 20_000 {
			key := fmt.Appendf(nil, "key %d", rng.IntN(120))
			e := table.find(hash(key), key)
			level, found := want[string(key)]
			if found != (e != nil) || (found && e.words[0] != level) {
				t.Fatalf("%s: step %d: %+v, want level %d %t", name, step, e, level, found)
			}
			switch {
			case !found:
				want[string(key)] = int64(step)
				table.insert(entry{hash(key), string(key), words{int64(step), 0, 1, 1, 1}})
			case rng.IntN(2) == 0:
				delete(want, string(key))
				for i := range table.slots {
					if &table.slots[i] == e {
						table.remove(i)
						break
					}
				}
			}
			if step%1000 == 999 { // one and all
				table.sweep(len(table.slots), moment{}, nil)
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
		table.insert(entry{hashOf(uint64(i*7919), bucketForm), fmt.Sprint(i), words{Unit - int64(i), 0, 1, 1, 1}})
	}
	dropped := 0
	for range 100 {
		_, n := table.sweep(len(table.slots)/10, moment{now: 500}, nil)
		dropped += n
	}
	if dropped != 501 || table.used != 499 {
		t.Errorf("%d dropped and %d left, want 501 and 499", dropped, table.used)
	}
	for range 100 {
		table.sweep(1000, moment{now: 1950}, nil)
	}
	if table.used != 0 || len(table.slots) != minSlots {
		t.Errorf("%d used of %d slots, want none of %d", table.used, len(table.slots), minSlots)
	}
}

// A shard that holds many keys is split, and loses none.
func TestShardSplits(t *testing.T) {
	t.Parallel()
	seed := maphash.MakeSeed()
	s := shard{parts: make([]table, 1)}
	const count = 10 * splitAt
	for i := range count {
		key := fmt.Append(nil, i)
		s.insert(hashOf(maphash.Bytes(seed, key), bucketForm), key, words{int64(i), 0, 1, 1, 1})
	}
	for i := range count {
		key := fmt.Append(nil, i)
		hash := hashOf(maphash.Bytes(seed, key), bucketForm)
		if e := s.part(hash).find(hash, key); e == nil || e.words[0] != int64(i) {
			t.Fatalf("key %d: %+v", i, e)
		}
	}
	var dropped int
	for range 4 * count { // to the last slot of every part
		_, n := s.sweep(100, moment{now: 10 * Unit})
		dropped += n
	}
	if dropped != count || len(s.parts) != partCount {
		t.Errorf("%d of %d dropped from %d parts", dropped, count, len(s.parts))
	}
}
