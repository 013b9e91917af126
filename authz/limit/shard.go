package limit

import "sync"

// shard is what one lock guards: the counters of some tags, in one table and, when
// they are many, in partCount of them. A tenant with a million users lives in one
// shard, and a single table of that size would hold everybody up for 0.2 s when
// it grows.
//
// Logs and leases need more room than an entry has; theirs holds the number of one
// of the shard's.
type shard struct {
	mu     sync.Mutex
	parts  []table // one or partCount
	hand   int     // the part where the next sweep goes on
	logs   slab[logbook]
	leases slab[leaseSet]
	_      [192 - 40 - 2*48]byte
}

const (
	partCount = 256
	// splitAt is how many keys one table holds before it is split; then each part
	// has about 16, and a million keys make 4096 in each. Growing takes 1 ms there.
	splitAt = 4096
	// usedBit is set in the hash of every key: a hash of 0 is a free slot.
	usedBit = 1 << 63
)

// part is the table for a hash. It stays until the next insert.
func (s *shard) part(hash uint64) *table {
	return &s.parts[hash>>40&uint64(len(s.parts)-1)] // far from the bits that find the slot
}

// insert adds a key that is not there. Parts and slots found before may have
// moved.
func (s *shard) insert(hash uint64, key []byte, w words) {
	if len(s.parts) == 1 && s.parts[0].used >= splitAt {
		s.split()
	}
	s.part(hash).insert(entry{hash: hash, key: string(key), words: w})
}

func (s *shard) split() {
	old := s.parts[0].slots
	s.parts = make([]table, partCount)
	for i := range old {
		if old[i].hash != 0 {
			s.part(old[i].hash).insert(old[i])
		}
	}
}

// sweep looks at up to count slots of one part, and goes on with the next when
// this one is done. Slots found before may have moved.
func (s *shard) sweep(count int, before moment) (looked, dropped int) {
	p := &s.parts[s.hand&(len(s.parts)-1)]
	looked, dropped = p.sweep(count, before, s)
	if p.hand == 0 {
		s.hand++
	}
	return looked, dropped
}

// mark remembers an ID, and tells how many keys that makes.
func (s *shard) mark(hash uint64, name []byte, m mark) (made int) {
	if e := s.part(hash).find(hash, name); e != nil {
		e.words = m.words()
		return 0
	}
	s.insert(hash, name, m.words())
	return 1
}

// empty gives back what the shard holds for an entry, and tells how many keys that
// was worth.
func (s *shard) empty(e *entry) (weight int) {
	switch e.form() {
	case logForm:
		l := s.logs.at(e.words[0])
		weight = l.weight()
		*l = logbook{records: reusable(l.records)}
		s.logs.drop(e.words[0])
	case leaseForm:
		l := s.leases.at(e.words[0])
		weight = l.weight()
		*l = leaseSet{}
		s.leases.drop(e.words[0])
	}
	return weight
}

// reusable is the memory of records, without them, if it is small.
func reusable(records []logRecord) []logRecord {
	if cap(records) > 2*trimAt {
		return nil
	}
	return records[:0]
}

// slab holds things by number, and uses numbers again.
type slab[T any] struct {
	items []*T
	free  []int64
}

// add is a number that is not in use, and the empty thing that it names.
func (s *slab[T]) add() (int64, *T) {
	if last := len(s.free) - 1; last >= 0 {
		i := s.free[last]
		s.free = s.free[:last]
		return i, s.items[i]
	}
	s.items = append(s.items, new(T))
	return int64(len(s.items) - 1), s.items[len(s.items)-1]
}

func (s *slab[T]) at(i int64) *T { return s.items[i] }

// drop gives a number back. What it names must be empty.
func (s *slab[T]) drop(i int64) { s.free = append(s.free, i) }
