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

// Player keeps one history going: random decisions and corrections of all kinds
// of limits on a few keys, with the clock moving on, jumping and stepping back,
// with numbers changing under the counters as reloads change them, and with
// commands that come late or twice.
type Player struct {
	draw   Draw
	clock  *Clock
	latest time.Time
	model  *Model
	stores map[string]limit.Store
	keys   []limit.Op // what the policy says of every key now
	past   [][]limit.Op
	seen   map[string]int
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
	p := &Player{draw: draw, clock: clock, latest: clock.Now(), model: NewModel(clock.Now), stores: stores, seen: map[string]int{}}
	for _, tag := range []string{"acme", "ip=192.0.2.7", "b"} {
		for kind := limit.Rate; kind <= limit.Retries; kind++ {
			for _, name := range []string{"one", "two:x"} {
				p.keys = append(p.keys, limit.Op{
					Tag: []byte(prefix + tag), Key: fmt.Appendf(nil, "sluice:{%s%s}:%d:%s", prefix, tag, kind, name), Kind: kind,
				})
			}
		}
	}
	for i := range p.keys {
		p.keys[i].Calendar = calendars[draw(len(calendars))] // another one is another counter
		p.renumber(&p.keys[i])
	}
	return p
}

// Step makes one step everywhere and compares every answer with the model's.
func (p *Player) Step(t testing.TB) {
	t.Helper()
	p.tick()
	for range 2 {
		if p.draw(10) == 0 {
			p.renumber(&p.keys[p.draw(len(p.keys))])
		}
	}
	switch n := p.draw(40); {
	case n < 7 && len(p.past) > 0:
		p.settle(t)
	case n == 7:
		p.reset(t)
	case n < 10 && len(p.past) > 0: // once more, perhaps much later
		p.decide(t, p.past[p.draw(len(p.past))], false)
	case n < 14 && len(p.past) > 0: // a crowd that wants the same
		for range 1 + p.draw(4) {
			p.decide(t, p.past[len(p.past)-1], false)
		}
	default:
		p.decide(t, p.ops(), n < 18)
	}
}

// decide makes one decision everywhere.
func (p *Player) decide(t testing.TB, ops []limit.Op, peek bool) {
	t.Helper()
	want, got := make([]limit.State, len(ops)), make([]limit.State, len(ops))
	refused := -1
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
			t.Fatalf("%s: peek %t refused %d, the model %d\nops %s\nstates (-model +%s)\n%s",
				name, peek, answer, refused, describe(ops), name, cmp.Diff(want, got))
		}
	}
	if !peek {
		p.remember(ops, want)
		p.count(ops, want)
	}
}

// count keeps what has happened, so that a history can be seen to be worth it.
func (p *Player) count(ops []limit.Op, states []limit.State) {
	for i, s := range states {
		kind := ops[i].Kind
		p.seen[fmt.Sprintf("kind %d fits %t", kind, s.Fits)]++
		if s.Delay > 0 {
			p.seen["held"]++
		}
		if s.Share > 0 {
			p.seen["shares"]++
		}
		if s.Over > 0 {
			p.seen["overage"]++
		}
		if s.Wait > 0 {
			p.seen[fmt.Sprintf("kind %d waits", kind)]++
		}
	}
}

// Rare tells what has happened less than often times.
func (p *Player) Rare(often int) (rare []string) {
	want := []string{"held", "overage", "shares"}
	for kind := limit.Rate; kind <= limit.Retries; kind++ {
		want = append(want, fmt.Sprintf("kind %d fits true", kind), fmt.Sprintf("kind %d fits false", kind), fmt.Sprintf("kind %d waits", kind))
	}
	for _, name := range want {
		if p.seen[name] < often {
			rare = append(rare, fmt.Sprintf("%s: %d", name, p.seen[name]))
		}
	}
	return rare
}

// remember keeps what was decided, with its stamps, for corrections to come.
func (p *Player) remember(ops []limit.Op, states []limit.State) {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Stamp = states[i].Stamp
	}
	if p.past = append(p.past, ops); len(p.past) > 20 {
		p.past = slices.Delete(p.past, 0, 1)
	}
}

// settle corrects one of the last decisions, sometimes again and sometimes under
// the name of another.
func (p *Player) settle(t testing.TB) {
	t.Helper()
	n := p.draw(len(p.past))
	ops := slices.Clone(p.past[n])
	var id []byte
	if p.draw(3) > 0 {
		id = fmt.Appendf(nil, "settle %d", p.draw(5))
	}
	deltas := make([]int64, len(ops))
	for i := range ops {
		op := &ops[i]
		now := p.numbers(*op) // it may have been before a reload
		now.Cost, now.ID, now.Stamp = op.Cost, op.ID, op.Stamp
		*op = now
		switch p.draw(8) {
		case 0:
			deltas[i] = -1_000_000_000
		case 1:
			deltas[i] = int64(p.draw(2_000_000_000)) - 1_000_000_000
		case 2, 3:
			deltas[i] = -min(op.Cost, limit.MaxBurst)
		case 4:
			deltas[i] = 0
		default:
			deltas[i] = int64(p.draw(7)) - 3
		}
	}
	p.model.Settle(id, ops, deltas)
	for name, store := range p.stores {
		if err := store.Settle(t.Context(), id, ops, deltas); err != nil {
			t.Fatalf("%s: Settle: %v", name, err)
		}
	}
	p.look(t, ops)
}

// numbers are what the policy says now of the op's key.
func (p *Player) numbers(op limit.Op) limit.Op {
	for i := range p.keys {
		if string(p.keys[i].Key) == string(op.Key) {
			return p.keys[i]
		}
	}
	panic("BUG: no such key")
}

func (p *Player) reset(t testing.TB) {
	t.Helper()
	ops := p.ops()
	p.model.Reset(ops)
	for name, store := range p.stores {
		if err := store.Reset(t.Context(), ops); err != nil {
			t.Fatalf("%s: Reset: %v", name, err)
		}
	}
	p.look(t, ops)
}

// look compares what is there without charging it.
func (p *Player) look(t testing.TB, ops []limit.Op) {
	t.Helper()
	p.decide(t, ops, true)
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

// ops are one to five of the keys, each once.
func (p *Player) ops() []limit.Op {
	ops := make([]limit.Op, 1+p.draw(5))
	first, stride := p.draw(len(p.keys)), []int{1, 5, 11}[p.draw(3)] // 42 keys: each is met once
	for i := range ops {
		ops[i] = p.keys[(first+i*stride)%len(p.keys)]
		p.ask(&ops[i])
	}
	return ops
}

// ask makes an op a question: how much, by whom, in earnest or not.
func (p *Player) ask(op *limit.Op) {
	size := min(op.Limit(), limit.MaxCount)
	op.Shadow = p.draw(4) == 0
	switch p.draw(8) {
	case 0:
		op.Cost = max(1, size)
	case 1:
		op.Cost = size + 1
	case 2:
		op.Cost = 1 + int64(p.draw(1_000_000))
	case 3:
		op.Cost = max(1, size/2)
	default:
		op.Cost = 1 + int64(p.draw(3))
	}
	switch {
	case op.Kind == limit.Concurrency:
		op.Cost = 1
		op.ID = fmt.Appendf(nil, "lease %d", p.draw(12))
	case op.Kind == limit.Quota && p.draw(2) == 0:
		op.ID = fmt.Appendf(nil, "request %d", p.draw(8))
	}
	if op.Max >= limit.MaxCount { // the model does not end where counting does
		op.Cost = min(op.Cost, limit.MaxBurst)
	}
}

func describe(ops []limit.Op) string {
	var s string
	for _, op := range ops {
		s += fmt.Sprintf("\n  %s cost %d shadow %t id %q stamp %d", op.Key, op.Cost, op.Shadow, op.ID, op.Stamp)
		if op.Kind == limit.Rate || op.Kind == limit.Retries {
			s += fmt.Sprintf(" refill %d/%dus burst %d reserve %d wait %v share %d", op.Refill.Micro, op.Refill.Period, op.Burst, op.Reserve, op.MaxWait, op.Share)
		} else {
			s += fmt.Sprintf(" max %d length %v overage %d", op.Max, op.Length, op.Overage)
		}
	}
	return s
}
