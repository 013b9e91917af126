package memo

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"sync/atomic"
	"time"
)

const (
	// sets and ways are the size of a table: 65,536 entries.
	sets, ways = 1 << 14, 4
)

// Key names an entry: a SHA-256, so that nobody can make two that are taken for
// one another.
type Key = [sha256.Size]byte

// Entry is what is known under a key. It does not change once it is in a table.
type Entry[V any] struct {
	Key   Key
	Until time.Time // when it has to be found out again
	Value V
}

// Table remembers entries. A key has four places; one that does not fit takes
// another's, which is then found out again. It is safe for concurrent use.
type Table[V any] struct {
	sets []set[V]
}

type set[V any] [ways]atomic.Pointer[Entry[V]]

// New makes an empty table.
func New[V any]() *Table[V] { return &Table[V]{sets: make([]set[V], sets)} }

func (t *Table[V]) set(key *Key) *set[V] {
	return &t.sets[binary.LittleEndian.Uint64(key[:])%sets]
}

// Find is what is known under a key, be it long over; nil: nothing.
func (t *Table[V]) Find(key *Key) *Entry[V] {
	set := t.set(key)
	for i := range set {
		if e := set[i].Load(); e != nil && e.Key == *key {
			return e
		}
	}
	return nil
}

// Add remembers an entry: in the place of what was known under its key, in one
// that is free or whose entry is over, else in one that the key chooses.
func (t *Table[V]) Add(e *Entry[V], now time.Time) {
	set := t.set(&e.Key)
	place := int(e.Key[8]) % ways
	for i := range set {
		old := set[i].Load()
		if old != nil && old.Key == e.Key {
			place = i
			break
		}
		if old == nil || !now.Before(old.Until) {
			place = i
		}
	}
	set[place].Store(e)
}

// Drop forgets what is known under a key.
func (t *Table[V]) Drop(key *Key) {
	set := t.set(key)
	for i := range set {
		if e := set[i].Load(); e != nil && e.Key == *key {
			set[i].CompareAndSwap(e, nil)
		}
	}
}

// All are the entries that are there, be they long over. Those that come or go
// meanwhile may be among them or not.
func (t *Table[V]) All() iter.Seq[*Entry[V]] {
	return func(yield func(*Entry[V]) bool) {
		for i := range t.sets {
			for j := range t.sets[i] {
				if e := t.sets[i][j].Load(); e != nil && !yield(e) {
					return
				}
			}
		}
	}
}

// Clear forgets everything.
func (t *Table[V]) Clear() {
	for i := range t.sets {
		for j := range t.sets[i] {
			t.sets[i][j].Store(nil)
		}
	}
}
