package limit_test

import (
	"testing"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	limittest.Run(t, func(testing.TB) (limit.Store, *limittest.Clock) {
		clock := limittest.NewClock()
		return limit.NewMemory(limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace}), clock
	})
}
