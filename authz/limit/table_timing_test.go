package limit

import (
	"hash/maphash"
	"math/rand/v2"
	"testing"
)

// A million keys at random, beside the same look-ups in a Go map. They are level;
// what a map lacks is a place where a sweep can go on, and a bucket in it is one
// more object for the garbage collector to follow.
func BenchmarkFind(b *testing.B) {
	ops := timingOps(1_000_000)
	seed := maphash.MakeSeed()
	b.Run("table", func(b *testing.B) {
		var t table
		for i := range ops {
			t.insert(entry{hash: hashOf(maphash.Bytes(seed, ops[i].Key), bucketForm), key: string(ops[i].Key)})
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for b.Loop() {
			key := ops[rng.IntN(len(ops))].Key
			t.find(hashOf(maphash.Bytes(seed, key), bucketForm), key).words[0]++
		}
	})
	b.Run("map", func(b *testing.B) {
		m := map[string]*bucket{}
		for i := range ops {
			m[string(ops[i].Key)] = &bucket{}
		}
		rng := rand.New(rand.NewPCG(1, 1))
		for b.Loop() {
			m[string(ops[rng.IntN(len(ops))].Key)].level++
		}
	})
}
