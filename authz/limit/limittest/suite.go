package limittest

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/authz/limit"
)

// Open makes an empty store for one test, with the clock it runs on. Its Grace is
// the constant of this package. The test closes the store.
type Open func(t testing.TB) (limit.Store, *Clock)

// Run holds a store against all cases, each with a store of its own.
func Run(t *testing.T, open Open) {
	cases := []struct {
		name string
		run  func(*bench)
	}{
		{"C105 remaining counts down to zero", remainingCountsDown},
		{"C073 an eager client is not starved", eagerClient},
		{"C088 idle time beyond full is not credited", idleIsNotCredited},
		{"C075 a cost above the burst never fits", neverFits},
		{"C076 the wait is for this cost", waitIsForThisCost},
		{"C077 a slow bucket is remembered", slowIsRemembered},
		{"C079 a burst of zero denies", zeroDenies},
		{"C080 large and small numbers are exact", exactNumbers},
		{"C085 keys are compared whole", wholeKeys},
		{"C103 waits are not rounded to seconds", exactWaits},
		{"C104 reset is the time until full", resetIsFull},
		{"all are charged or none", allOrNone},
		{"the longest wait answers for the refusal", longestAnswers},
		{"shadow refuses nobody", shadowRefusesNobody},
		{"peek charges nothing", peekChargesNothing},
		{"a reload keeps what buckets hold", reloadKeeps},
		{"a raised rate counts from the next denial", raisedRate},
		{"a clock that steps back gives nothing twice", clockStepsBack},
		{"no ops and many ops", noneAndMany},
		{"C103 a fixed window ends for all", fixedWindow},
		{"a sliding window counts the last one in part", slidingWindow},
		{"a log is exact in any window", logWindow},
		{"a long log", longLog},
		{"C101 zero is nothing, unlimited is counted, the tenth passes", quotaCounts},
		{"C102 a plan changes in the middle of a period", quotaPlanChanges},
		{"C098 a quota's period is the calendar's, in its zone", quotaPeriods},
		{"a quota, a grant, then overage", quotaOverage},
		{"C096 a request that comes again is charged once", quotaKnowsIDs},
		{"leases", leases},
		{"leases of several lengths", leaseLengths},
		{"answers are held for tokens taken ahead", throttle},
		{"C076 a reserve is kept for others", reserve},
		{"C095 a retry budget counts every retry", retryBudget},
		{"a bucket is settled", settleBucket},
		{"windows are settled", settleWindows},
		{"a quota is settled", settleQuota},
		{"C096 a refund is given once", settleOnce},
		{"a reset forgets", resetForgets},
		{"all kinds are charged or none", allKinds},
		{"64 callers on a bucket of 100", parallelCallers},
		{"64 callers on 100 of each kind", parallelKinds},
		{"callers that cross each other's tags", parallelCrossing},
		{"a closed store is unavailable", closedStore},
		{"impossible ops are a bug", impossibleOps},
		{"a random history", randomHistory},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store, clock := open(t)
			t.Cleanup(func() { _ = store.Close() })
			c.run(&bench{T: t, store: store, clock: clock})
		})
	}
}

// bench is a store on the test bench.
type bench struct {
	*testing.T
	store limit.Store
	clock *Clock
}

// op is a limit of its own name with the tag "t".
func op(name string, refill limit.Refill, burst, cost int64) limit.Op {
	return limit.Op{Tag: []byte("t"), Key: []byte("sluice:{t}:" + name), Refill: refill, Burst: burst, Cost: cost}
}

func perSecond(units int64) limit.Refill { return limit.NewRefill(units*limit.Unit, time.Second) }

// take makes one decision and returns what was answered.
func (b *bench) take(ops ...limit.Op) (int, []limit.State) {
	b.Helper()
	states := make([]limit.State, len(ops))
	refused, err := b.store.Take(b.Context(), ops, states)
	if err != nil {
		b.Fatalf("Take: %v", err)
	}
	return refused, states
}

// fits makes a decision about one op.
func (b *bench) fits(o limit.Op) bool {
	b.Helper()
	refused, states := b.take(o)
	if states[0].Fits != (refused < 0) {
		b.Fatalf("refused is %d, the only state %+v", refused, states[0])
	}
	return states[0].Fits
}

// want makes one decision and compares all that is answered.
func (b *bench) want(refused int, states []limit.State, ops ...limit.Op) {
	b.Helper()
	gotRefused, got := b.take(ops...)
	if gotRefused != refused {
		b.Errorf("refused is %d, want %d", gotRefused, refused)
	}
	if diff := cmp.Diff(states, got); diff != "" {
		b.Errorf("states (-want +got)\n%s", diff)
	}
	if b.Failed() {
		b.FailNow()
	}
}

// peek looks at one op.
func (b *bench) peek(o limit.Op) limit.State {
	b.Helper()
	states := make([]limit.State, 1)
	if err := b.store.Peek(b.Context(), []limit.Op{o}, states); err != nil {
		b.Fatalf("Peek: %v", err)
	}
	return states[0]
}

func randomHistory(b *bench) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := NewPlayer(rng.IntN, b.clock, "", map[string]limit.Store{"store": b.store})
	for range 2000 {
		p.Step(b)
	}
}
