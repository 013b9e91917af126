package limit

import "sync"

// shard is what one lock guards: the buckets of some tags, in one table and, when
// they are many, in partCount of them. A tenant with a million users lives in one
// shard, and a single table of that size would hold everybody up for 0.2 s when
// it grows.
type shard struct {
	mu    sync.Mutex
	parts []table // one or partCount
	hand  int     // the part where the next sweep goes on
	_     [128 - 40]byte
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
func (s *shard) insert(hash uint64, key []byte, b bucket) {
	if len(s.parts) == 1 && s.parts[0].used >= splitAt {
		s.split()
	}
	s.part(hash).insert(entry{hash: hash, key: string(key), bucket: b})
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
func (s *shard) sweep(count int, now, grace int64) (looked, dropped int) {
	p := &s.parts[s.hand&(len(s.parts)-1)]
	looked, dropped = p.sweep(count, now, grace)
	if p.hand == 0 {
		s.hand++
	}
	return looked, dropped
}
