package authz

import (
	"errors"
	"sync/atomic"
	"time"

	"sluice/authz/limit"
)

// troubleFor is how long the store counts as degraded after a decision that it
// left to the fail mode.
const troubleFor = 10 * time.Second

// trouble remembers the last failure of the store.
type trouble struct{ last atomic.Pointer[failure] }

type failure struct {
	at   time.Time
	text string
}

// hear notes a failure. Of a storm it keeps one a second, so that decisions
// which fail cost little more than those which do not.
func (t *trouble) hear(err error, now time.Time) {
	if old := t.last.Load(); old != nil && now.Sub(old.at) < time.Second {
		return
	}
	text := err.Error()
	if old := t.last.Load(); old != nil && errors.Is(err, limit.ErrBreakerOpen) {
		text = old.text // why it is not asked
	}
	t.last.Store(&failure{now, text})
}

// now tells whether the store has failed just now.
func (t *trouble) now(now time.Time) bool {
	f := t.last.Load()
	return f != nil && now.Sub(f.at) < troubleFor
}
