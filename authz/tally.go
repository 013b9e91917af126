package authz

import "sync/atomic"

// tally counts by number: a table of fixed size that grows no memory, takes no
// lock and looks no text up, so that decisions can count in it. What it has no
// room for is counted under a number that the caller chooses: see add.
//
// The zero of a key is taken for an empty slot, so keys are never 0.
type tally struct {
	slots []tallySlot
	used  atomic.Int64
}

type tallySlot struct {
	key atomic.Uint64
	n   atomic.Uint64
}

// newTally makes room for some two thirds of size keys, a power of two.
func newTally(size int) *tally {
	if size&(size-1) != 0 {
		panic("BUG: a tally's size is no power of two")
	}
	return &tally{slots: make([]tallySlot, size)}
}

// reserve takes a slot for a key that must be there when the table is full.
func (t *tally) reserve(key uint64) { t.find(key) }

// add counts n under key, or under rest when the table is full.
func (t *tally) add(key, rest, n uint64) {
	slot := t.find(key)
	if slot == nil {
		slot = t.find(rest)
	}
	if slot != nil {
		slot.n.Add(n)
	}
}

// set keeps the newest value of key; a value without room is dropped.
func (t *tally) set(key, value uint64) {
	if slot := t.find(key); slot != nil {
		slot.n.Store(value)
	}
}

// find is the slot of a key, which it takes if there is room.
func (t *tally) find(key uint64) *tallySlot {
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> 20; ; i++ {
		slot := &t.slots[i&mask]
		switch held := slot.key.Load(); {
		case held == key:
			return slot
		case held != 0:
			continue
		case t.used.Load() >= int64(len(t.slots)*2/3):
			return nil
		case slot.key.CompareAndSwap(0, key):
			t.used.Add(1)
			return slot
		case slot.key.Load() == key: // another was quicker with the same
			return slot
		}
	}
}

// each tells every key that was counted.
func (t *tally) each(f func(key, n uint64)) {
	for i := range t.slots {
		if key := t.slots[i].key.Load(); key != 0 {
			f(key, t.slots[i].n.Load())
		}
	}
}
