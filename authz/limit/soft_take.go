package limit

import "context"

// softCall is the memory of one decision: what is left to the store behind, and what
// was admitted alone.
type softCall struct {
	rest   int // ops for the store
	ops    [MaxOps]Op
	states [MaxOps]State
	from   [MaxOps]int // where each came from

	counters [MaxOps]*softCounter // of soft ops
	alone    [MaxOps]*softEpoch   // of those admitted alone
	believed bool                 // an enforced op is believed to be exhausted
}

// Take implements Store. Without a soft op it is the store's own.
func (s *Soft) Take(ctx context.Context, ops []Op, states []State) (int, error) {
	soft := 0
	for i := range ops {
		if ops[i].soft() {
			soft++
		}
	}
	if soft == 0 {
		return s.inner.Take(ctx, ops, states)
	}
	checkTake(ops, states)
	if s.closed.Load() {
		return -1, errClosed
	}
	call := s.calls.Get().(*softCall)
	defer s.recycle(call, len(ops))
	now := s.now()
	for i := range ops {
		s.place(call, &ops[i], &states[i], i, now, soft == len(ops))
	}
	if err := s.ask(ctx, call, states, now); err != nil {
		call.giveBack(ops)
		return -1, err
	}
	for i := range ops {
		if e := call.alone[i]; e != nil {
			states[i] = e.state(&ops[i], now, true)
		}
	}
	refused := refusal(ops, states)
	if refused >= 0 {
		call.giveBack(ops)
		for i := range ops {
			if e := call.alone[i]; e != nil {
				states[i] = e.state(&ops[i], now, true)
			}
		}
	}
	return refused, nil
}

// recycle forgets what was borrowed.
func (s *Soft) recycle(call *softCall, ops int) {
	clear(call.ops[:call.rest])
	clear(call.counters[:ops])
	clear(call.alone[:ops])
	call.rest, call.believed = 0, false
	s.calls.Put(call)
}

// place decides who decides about op: this instance or the store. An exhausted
// quota is refused here when no other limit is to be asked in the same step; a
// refusal in shadow concerns no other.
func (s *Soft) place(call *softCall, op *Op, state *State, i int, now int64, pure bool) {
	if op.soft() {
		c := s.counter(op)
		call.counters[i] = c
		if c != nil {
			if !c.active.Load() {
				c.active.Store(true)
			}
			if e := c.current(op, now); e != nil && (pure || op.Shadow) && now < e.denied.Load() {
				*state = e.state(op, now, false)
				call.believed = call.believed || !op.Shadow
				return
			}
			e, crowded := c.admit(op, now, s.share(op))
			if crowded {
				s.hurry(c)
			}
			if e != nil {
				call.alone[i] = e
				return
			}
		}
	}
	call.ops[call.rest], call.from[call.rest] = *op, i
	call.rest++
}

// ask leaves the rest to the store. What this instance has admitted of the same
// quotas is written first: near the end every unit counts.
func (s *Soft) ask(ctx context.Context, call *softCall, states []State, now int64) error {
	if call.rest == 0 {
		return nil
	}
	for j := range call.rest {
		if c := call.counters[call.from[j]]; c != nil {
			if err := s.write(ctx, c); err != nil {
				return err
			}
		}
	}
	var err error
	ops, answers := call.ops[:call.rest], call.states[:call.rest]
	if call.believed {
		err = s.inner.Peek(ctx, ops, answers)
	} else {
		_, err = s.inner.Take(ctx, ops, answers)
	}
	if err != nil {
		return err
	}
	for j := range call.rest {
		i := call.from[j]
		states[i] = answers[j]
		if c := call.counters[i]; c != nil {
			c.learn(&ops[j], &answers[j], now, false)
		}
	}
	return nil
}

// giveBack returns what was admitted alone.
func (call *softCall) giveBack(ops []Op) {
	for i := range ops {
		if e := call.alone[i]; e != nil {
			call.counters[i].giveBack(e, ops[i].Cost)
		}
	}
}
