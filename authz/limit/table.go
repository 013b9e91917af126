package limit

// table is a hash table of counters with open addressing and linear probing: one
// cache line per counter, and one more for its key, which is compared whole. It
// is not safe for concurrent use; its shard's lock is.
type table struct {
	slots []entry // at most four fifths used
	used  int
	hand  int // where the next sweep goes on; always a slot, or 0
}

// entry is 64 bytes. A hash of 0 marks a free slot.
type entry struct {
	hash uint64 // with the form of the counter, see hashOf
	key  string
	words
}

const (
	minSlots = 8
	// doubleTo is where a table no longer doubles but grows by a quarter: most of the
	// memory is in large ones.
	doubleTo = 1024
)

// home is the slot where the search for a hash begins.
func (t *table) home(hash uint64) int { return int(hash & (1<<32 - 1) * uint64(len(t.slots)) >> 32) }

// next is the slot behind i.
func (t *table) next(i int) int {
	if i++; i < len(t.slots) {
		return i
	}
	return 0
}

// behind is how many slots i is behind j.
func (t *table) behind(i, j int) int {
	if i < j {
		i += len(t.slots)
	}
	return i - j
}

// find returns the entry of key, or nil.
func (t *table) find(hash uint64, key []byte) *entry {
	if t.used == 0 {
		return nil
	}
	for i := t.home(hash); t.slots[i].hash != 0; i = t.next(i) {
		if e := &t.slots[i]; e.hash == hash && e.key == string(key) {
			return e
		}
	}
	return nil
}

// insert adds a key that is not there. Slots found before may have moved.
func (t *table) insert(e entry) {
	if size := len(t.slots); (t.used+1)*5 > size*4 {
		grown := size + size/4
		if size < doubleTo {
			grown = max(minSlots, 2*size)
		}
		t.resize(grown)
	}
	t.place(e)
	t.used++
}

func (t *table) place(e entry) {
	i := t.home(e.hash)
	for t.slots[i].hash != 0 {
		i = t.next(i)
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
	for j := t.next(i); t.slots[j].hash != 0; j = t.next(j) {
		if t.behind(j, t.home(t.slots[j].hash)) >= t.behind(j, i) {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = entry{}
	t.used--
}

// forget drops an entry that find returned. Slots found before may have moved.
func (t *table) forget(e *entry) {
	i := t.home(e.hash)
	for &t.slots[i] != e {
		i = t.next(i)
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
		t.resize(max(minSlots, size/2))
	}
	return looked, dropped
}
