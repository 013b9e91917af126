package authz

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	// repeatWindow is how long an Idempotency-Key is remembered at least; at most
	// twice that.
	repeatWindow = 10 * time.Minute
	// maxSeen is how many are remembered in each half.
	maxSeen = 200_000
)

// isRetry tells whether a request is a retry: the client says so, or it repeats
// the Idempotency-Key of this subject.
func (e *Engine) isRetry(req *Request, s *subject) bool {
	if req.Retry {
		return true
	}
	if len(req.Idempotency) == 0 {
		return false
	}
	return e.seen.repeated(s, e.now())
}

// seenKeys remembers idempotency keys in two halves: the older one is dropped
// when the younger is old or full. Keys are kept as hashes.
type seenKeys struct {
	mu           sync.Mutex
	young, older map[[16]byte]struct{}
	since        time.Time // of the younger half
}

// repeated tells whether the subject has shown this key before, and remembers it.
func (k *seenKeys) repeated(s *subject, now time.Time) bool {
	id := seenID(s)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.young == nil || now.Sub(k.since) >= repeatWindow || len(k.young) >= maxSeen {
		k.older, k.young, k.since = k.young, map[[16]byte]struct{}{}, now
	}
	_, known := k.young[id]
	if !known {
		_, known = k.older[id]
	}
	k.young[id] = struct{}{}
	return known
}

// seenID names a key of a subject: of a credential, or of an address.
func seenID(s *subject) (id [16]byte) {
	var buf [256]byte
	b := append(buf[:0], s.tenant...)
	b = append(append(b, '/'), s.key...)
	if len(s.tenant) == 0 {
		b = appendClient(b, s)
	}
	b = append(append(b, ' '), s.req.Idempotency...)
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}
