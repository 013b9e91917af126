package authz

import (
	"context"
	"slices"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

const (
	// maxCounters is how many counters one answer tells of.
	maxCounters = 1000
	// peekOps is how many counters one step looks at: a step must not hold up
	// decisions.
	peekOps = 32
)

// Usage is what a tenant has used and has left.
type Usage struct {
	Tenant   string `json:"tenant"`
	Plan     string `json:"plan"`
	Unlisted bool   `json:"unlisted,omitempty"` // he is in no file
	Disabled bool   `json:"disabled,omitempty"`
	// Blocked says until when operators refuse him everything.
	Blocked  *Block    `json:"blocked,omitempty"`
	Counters []Counter `json:"counters"`
	Grants   []Grant   `json:"grants"` // made at run time
	// Unseen are limits with a counter for each address, user or value of a header,
	// of which nobody keeps a list; ask for one with ?ip=, ?user= or ?key=.
	Unseen []string `json:"unseen,omitempty"`
	// Truncated tells that there are more counters.
	Truncated bool `json:"truncated,omitempty"`
}

// Counter is one counter of a limit.
type Counter struct {
	Limit string             `json:"limit"`
	Kind  policies.LimitKind `json:"kind"`
	// Route is where the limit is written, or what it counts by.
	Route string `json:"route,omitempty"`
	Key   string `json:"key,omitempty"`  // the API key that it counts
	User  string `json:"user,omitempty"` // as he was asked for
	IP    string `json:"ip,omitempty"`
	Name  string `json:"counter"` // in the store
	// Max is the limit, grants included; nil: unlimited. A bucket's is its burst.
	Max       *int64 `json:"max"`
	Granted   int64  `json:"granted,omitempty"` // what grants add to it now
	Used      int64  `json:"used"`
	Remaining *int64 `json:"remaining"`
	Overage   int64  `json:"overage,omitempty"` // above Max that passes
	Over      int64  `json:"over,omitempty"`    // of Used, counted as overage
	// Reset is when a bucket is full, a window or a period over; nil for leases.
	Reset  *time.Time `json:"reset"`
	Shadow bool       `json:"shadow,omitempty"`

	op   limit.Op
	rule *rule
}

// Who narrows down the counters of a tenant.
type Who struct {
	IP, User string
	// Key is the id of an API key, empty for all of them.
	Key string
	// Limit is a limit's name, empty for all of them.
	Limit string
}

// Usage tells what a tenant has used and what he has left, without charging
// anything. It tells false when the policy does not know him.
func (e *Engine) Usage(ctx context.Context, ref TenantRef, who Who) (u Usage, known bool, err error) {
	b := e.state.Load()
	if b == nil {
		return Usage{}, false, nil
	}
	now := e.now()
	t, known, err := b.tenant(ref, now)
	if !known {
		return Usage{}, false, err
	}
	c := e.census(b, &t, who, now)
	u = Usage{
		Tenant: t.id, Plan: b.policy.Plans[t.plan].Name, Unlisted: ref.Unlisted, Disabled: t.disabled,
		Counters: c.list, Grants: c.terms.list(), Unseen: c.unseen, Truncated: c.more,
	}
	if c.terms.blocked(now) {
		u.Blocked = c.terms.block
	}
	return u, true, e.peek(ctx, c.list, now)
}

// Reset forgets counters of a tenant, as if he had never used them. It returns
// them as they were before.
func (e *Engine) Reset(ctx context.Context, counters []Counter) error {
	for chunk := range slices.Chunk(counters, peekOps) {
		ops := make([]limit.Op, len(chunk))
		for i := range chunk {
			ops[i] = chunk[i].op
		}
		if err := e.store.Reset(ctx, ops); err != nil {
			return err
		}
	}
	e.Forget()
	return nil
}

// peek fills in what counters hold.
func (e *Engine) peek(ctx context.Context, counters []Counter, now time.Time) error {
	for chunk := range slices.Chunk(counters, peekOps) {
		ops, states := make([]limit.Op, len(chunk)), make([]limit.State, len(chunk))
		for i := range chunk {
			ops[i] = chunk[i].op
		}
		if err := e.store.Peek(ctx, ops, states); err != nil {
			return err
		}
		for i := range chunk {
			chunk[i].fill(&states[i], now)
		}
	}
	return nil
}

// fill tells what the store says.
func (c *Counter) fill(s *limit.State, now time.Time) {
	c.Used, c.Over = s.Used, s.Over
	switch c.op.Kind {
	case limit.Concurrency:
	case limit.Quota:
		c.Reset = moment(c.op.Calendar.Bounds(now).End())
	default:
		c.Reset = moment(now.Add(s.Reset + time.Second - 1).Truncate(time.Second))
	}
	if c.op.Limit() == limit.Unlimited {
		return
	}
	most, left := c.op.Limit(), s.Remaining
	c.Max, c.Remaining = &most, &left
	if c.op.Kind == limit.Rate || c.op.Kind == limit.Retries {
		c.Used = most - left
	}
}
