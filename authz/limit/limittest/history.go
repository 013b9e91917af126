package limittest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/authz/limit"
)

// Draw is where a history's chances come from: a whole number from 0 to n-1. A
// seeded generator gives long histories, rapid gives short ones that shrink.
type Draw func(n int) int

// Player keeps one history going: random decisions on a few keys, with the clock
// moving on, jumping and stepping back, and with numbers changing under the
// buckets as reloads change them.
type Player struct {
	draw   Draw
	clock  *Clock
	latest time.Time
	model  *Model
	stores map[string]limit.Store
	keys   []limit.Op // what the policy says of every key now
}

// stepBack is how far a history's clock falls behind its latest time: half the
// Grace that stores under test have.
const stepBack = Grace / 2

// Grace is what a store under test keeps full buckets for: long enough for the
// suite's clock, which moves without Redis' own.
const Grace = time.Hour

// NewPlayer starts a history for stores that share clock. Keys begin with prefix,
// so that histories can follow each other in one store.
func NewPlayer(draw Draw, clock *Clock, prefix string, stores map[string]limit.Store) *Player {
	p := &Player{draw: draw, clock: clock, latest: clock.Now(), model: NewModel(clock.Now), stores: stores}
	for _, tag := range []string{"acme", "ip=192.0.2.7", "b"} {
		for _, name := range []string{"speed", "org", "speed:x"} {
			p.keys = append(p.keys, limit.Op{Tag: []byte(prefix + tag), Key: []byte("sluice:{" + prefix + tag + "}:" + name)})
		}
	}
	for i := range p.keys {
		p.renumber(&p.keys[i])
	}
	return p
}

// Step makes one decision everywhere and compares every answer with the model's.
func (p *Player) Step(t testing.TB) {
	t.Helper()
	p.tick()
	if p.draw(25) == 0 {
		p.renumber(&p.keys[p.draw(len(p.keys))])
	}
	ops := p.ops()
	want, got := make([]limit.State, len(ops)), make([]limit.State, len(ops))
	peek, refused := p.draw(8) == 0, -1
	if peek {
		p.model.Peek(ops, want)
	} else {
		refused = p.model.Take(ops, want)
	}
	for name, store := range p.stores {
		var err error
		answer := -1
		if peek {
			err = store.Peek(t.Context(), ops, got)
		} else {
			answer, err = store.Take(t.Context(), ops, got)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if answer != refused || !slices.Equal(got, want) {
			t.Fatalf("%s: refused %d, the model %d\nops %s\nstates (-model +%s)\n%s",
				name, answer, refused, describe(ops), name, cmp.Diff(want, got))
		}
	}
}

// tick moves the clock, most often a little.
func (p *Player) tick() {
	var d time.Duration
	switch p.draw(12) {
	case 0, 1, 2:
		return
	case 3, 4:
		d = time.Duration(p.draw(1000)) * time.Microsecond
	case 5, 6, 7:
		d = time.Duration(p.draw(2_000_000)) * time.Microsecond
	case 8:
		d = time.Duration(p.draw(3_600_000)) * time.Millisecond
	case 9:
		d = time.Duration(p.draw(24*3600)) * time.Second
		if p.draw(10) == 0 {
			d *= 300
		}
	default:
		d = -time.Duration(p.draw(int(stepBack/time.Microsecond))) * time.Microsecond
		if p.draw(2) == 0 {
			d = (d / 1000).Truncate(time.Microsecond) // as fine as the stores' clocks
		}
	}
	if earliest := p.latest.Add(-stepBack); p.clock.Now().Add(d).Before(earliest) {
		return
	}
	p.clock.Advance(d)
	p.latest = later(p.latest, p.clock.Now())
}

// renumber is a reload that changes one limit's numbers, or changes them back.
func (p *Player) renumber(op *limit.Op) {
	rates := []limit.Refill{
		limit.NewRefill(5*limit.Unit, time.Second),
		limit.NewRefill(100*limit.Unit, time.Second),
		limit.NewRefill(7*limit.Unit, 3*time.Second),
		limit.NewRefill(6*limit.Unit, time.Hour),
		limit.NewRefill(10_000_007*limit.Unit, 30*24*time.Hour),
		limit.NewRefill(999_999_937*limit.Unit+1, 31*24*time.Hour-time.Microsecond),
		limit.NewRefill(1, time.Second),
		limit.NewRefill(1, limit.MaxPeriod),
		limit.NewRefill(999_999_999_999_989, limit.MaxPeriod),
		limit.NewRefill(limit.MaxBurst*limit.Unit, time.Microsecond),
	}
	bursts := []int64{0, 1, 1, 3, 3, 10, 10, 10, 100, 1_000_000, limit.MaxBurst}
	op.Refill = rates[p.draw(len(rates))]
	op.Burst = bursts[p.draw(len(bursts))]
}

// ops are one to four of the keys, each once.
func (p *Player) ops() []limit.Op {
	ops := make([]limit.Op, 1+p.draw(4))
	first, stride := p.draw(len(p.keys)), 1+p.draw(2) // 9 keys: strides 1 and 2 meet each of them once
	for i := range ops {
		ops[i] = p.keys[(first+i*stride)%len(p.keys)]
		ops[i].Shadow = p.draw(4) == 0
		switch p.draw(8) {
		case 0:
			ops[i].Cost = max(1, ops[i].Burst)
		case 1:
			ops[i].Cost = ops[i].Burst + 1
		case 2:
			ops[i].Cost = 1 + int64(p.draw(1_000_000))
		case 3:
			ops[i].Cost = max(1, ops[i].Burst/2)
		default:
			ops[i].Cost = 1 + int64(p.draw(3))
		}
	}
	return ops
}

func describe(ops []limit.Op) string {
	var s string
	for _, op := range ops {
		s += fmt.Sprintf("\n  %s refill %d/%dus burst %d cost %d shadow %t", op.Key, op.Refill.Micro, op.Refill.Period, op.Burst, op.Cost, op.Shadow)
	}
	return s
}
