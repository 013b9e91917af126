package authz

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
	"time"
)

const (
	// tokenSets and tokenWays are the size of a table: 65,536 tokens.
	tokenSets, tokenWays = 1 << 14, 4
	// tokenKept is the longest that a token is believed without a look at its
	// signature, however far its own end is.
	tokenKept = 24 * time.Hour
)

// knownToken is a token that was found good. Of the token itself there is only
// its hash.
type knownToken struct {
	sum    [sha256.Size]byte
	until  time.Time
	person person
}

// tokenTable remembers good tokens, so that each is verified once and not for
// every request. It has a fixed size and takes no lock: a token has four places
// that its hash chooses, and one that does not fit takes another's. Only who has
// good tokens can push others out; then those are verified again. It belongs to
// one policy with its keys, and ends with it.
type tokenTable struct {
	sets [][tokenWays]atomic.Pointer[knownToken]
}

func newTokenTable() *tokenTable {
	return &tokenTable{sets: make([][tokenWays]atomic.Pointer[knownToken], tokenSets)}
}

func (t *tokenTable) set(sum *[sha256.Size]byte) *[tokenWays]atomic.Pointer[knownToken] {
	return &t.sets[binary.LittleEndian.Uint64(sum[:])%tokenSets]
}

// find is the token with this hash, nil when there is none or it has ended. It
// does not allocate.
func (t *tokenTable) find(sum *[sha256.Size]byte, now time.Time) *knownToken {
	set := t.set(sum)
	for i := range set {
		if k := set[i].Load(); k != nil && k.sum == *sum {
			if now.Before(k.until) {
				return k
			}
			return nil
		}
	}
	return nil
}

// add remembers a token: in a place that is free or whose token has ended, else
// in one that the hash chooses.
func (t *tokenTable) add(k *knownToken, now time.Time) {
	if most := now.Add(tokenKept); k.until.After(most) {
		k.until = most
	}
	set := t.set(&k.sum)
	place := int(k.sum[8]) % tokenWays
	for i := range set {
		if old := set[i].Load(); old == nil || old.sum == k.sum || !now.Before(old.until) {
			place = i
			break
		}
	}
	set[place].Store(k)
}
