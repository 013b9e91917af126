package limit

// table is a hash table of counters with open addressing and linear probing: one
// cache line per counter, and one more for its key, which is compared whole. It
// is not safe for concurrent use; its shard's lock is.
type table struct {
	slots []entry // a power of two, at most three quarters used
	used  int
	hand  int // where the next sweep goes on; always a slot, or 0
}

// entry is 64 bytes. A hash of 0 marks a free slot.
type entry struct {
	hash uint64 // with the form of the counter, see hashOf
	key  string
	words
}

const minSlots = 8

// find returns the entry of key, or nil.
func (t *table) find(hash uint64, key []byte) *entry {
	if t.used == 0 {
		return nil
	}
	mask := len(t.slots) - 1
	for i := int(hash) & mask; t.slots[i].hash != 0; i = (i + 1) & mask {
		if e := &t.slots[i]; e.hash == hash && e.key == string(key) {
			return e
		}
	}
	return nil
}

// insert adds a key that is not there. Slots found before may have moved.
func (t *table) insert(e entry) {
	if (t.used+1)*4 > len(t.slots)*3 {
		t.resize(max(minSlots, len(t.slots)*2))
	}
	t.place(e)
	t.used++
}

func (t *table) place(e entry) {
	mask := len(t.slots) - 1
	i := int(e.hash) & mask
	for t.slots[i].hash != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = e
}

func (t *table) resize(size int) {
	old := t.slots
	t.slots = make([]entry, size)
	t.hand = 0
	for i := range old {
		if old[i].hash != 0 {
			t.place(old[i])
		}
	}
}

// remove frees slot i and moves up what had been pushed past it, so that no
// search ends early.
func (t *table) remove(i int) {
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].hash != 0; j = (j + 1) & mask {
		home := int(t.slots[j].hash) & mask
		if (j-home)&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = entry{}
	t.used--
}

// forget drops an entry that find returned. Slots found before may have moved.
func (t *table) forget(e *entry) {
	mask := len(t.slots) - 1
	i := int(e.hash) & mask
	for &t.slots[i] != e {
		i = (i + 1) & mask
	}
	t.remove(i)
}

// sweep looks at up to count slots, to the end of the table at most, and drops
// the counters that no longer mattered before, and what s holds for them. At the
// end hand is 0. Slots found before may have moved.
func (t *table) sweep(count int, before moment, s *shard) (looked, dropped int) {
	for ; looked < count && t.hand < len(t.slots); looked++ {
		e := &t.slots[t.hand]
		if e.hash != 0 && e.stale(before) {
			dropped += 1 + s.empty(e)
			t.remove(t.hand) // what moves in is looked at next
			continue
		}
		t.hand++
	}
	if t.hand < len(t.slots) {
		return looked, dropped
	}
	t.hand = 0
	if size := len(t.slots); size > minSlots && t.used*8 < size {
		t.resize(size / 2)
	}
	return looked, dropped
}
