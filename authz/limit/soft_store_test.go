package limit_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"sluice/authz/limit"
)

// A soft quota of 100,000 lets each of 8 instances hold 625 units unwritten.
func softQuota(key string, cost int64) limit.Op {
	op := softOp(key, cost)
	op.Max, op.Overage = 100_000, 0
	return op
}

// newSoft never flushes by itself, unless o says so.
func newSoft(t testing.TB, inner limit.Store, o limit.SoftOptions) *limit.Soft {
	t.Helper()
	if o.FlushEvery == 0 {
		o.FlushEvery = time.Hour
	}
	s := limit.NewSoft(inner, o)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// flaky is a store that can be away, or do what it is told and not say so. It
// outlives those in front of it.
type flaky struct {
	limit.Store
	away, mute     atomic.Bool
	takes, settles atomic.Int64
}

func (f *flaky) do(call func() error) error {
	if f.away.Load() {
		return fmt.Errorf("%w: away", limit.ErrUnavailable)
	}
	err := call()
	if f.mute.Load() {
		return fmt.Errorf("%w: no answer", limit.ErrUnavailable)
	}
	return err
}

func (f *flaky) Take(ctx context.Context, ops []limit.Op, states []limit.State) (refused int, err error) {
	f.takes.Add(1)
	err = f.do(func() (err error) {
		refused, err = f.Store.Take(ctx, ops, states)
		return err
	})
	return refused, err
}

func (f *flaky) Settle(ctx context.Context, id []byte, ops []limit.Op, deltas []int64) error {
	f.settles.Add(1)
	return f.do(func() error { return f.Store.Settle(ctx, id, ops, deltas) })
}

func (f *flaky) Peek(ctx context.Context, ops []limit.Op, states []limit.State) error {
	return f.do(func() error { return f.Store.Peek(ctx, ops, states) })
}

func (f *flaky) Close() error { return nil }

func newFlaky() *flaky {
	return &flaky{Store: limit.NewMemory(limit.MemoryOptions{})}
}
