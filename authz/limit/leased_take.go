package limit

import "context"

// leasedCall is the memory of one decision: what is spent here, and what is left to
// the store behind.
type leasedCall struct {
	rest   int // ops for the store
	ops    [MaxOps]Op
	states [MaxOps]State
	from   [MaxOps]int // where each came from

	shares [MaxOps]*share // of leased ops
	until  [MaxOps]int64  // of those spent here, when that would have been void; else 0
	held   [MaxOps]bool   // this call is the one that asks for more
	refuse bool           // an enforced op is known not to fit
}

// Take implements Store. Without a leased op it is the store's own.
func (l *Leased) Take(ctx context.Context, ops []Op, states []State) (int, error) {
	leased := 0
	for i := range ops {
		if ops[i].leased() {
			leased++
		}
	}
	if leased == 0 {
		return l.inner.Take(ctx, ops, states)
	}
	checkTake(ops, states)
	if l.closed.Load() {
		return -1, errClosed
	}
	call := l.calls.Get().(*leasedCall)
	defer l.recycle(call, len(ops))
	now := l.now()
	for i := range ops {
		l.place(call, &ops[i], &states[i], i, now, leased == len(ops))
	}
	if err := l.ask(ctx, call, ops, states); err != nil {
		call.giveBack(ops)
		return -1, err
	}
	refused := refusal(ops, states)
	if refused >= 0 {
		call.giveBack(ops)
		for i := range ops {
			if call.until[i] != 0 {
				states[i].Remaining += ops[i].Cost
			}
		}
	}
	return refused, nil
}

// recycle forgets what was borrowed, and lets others ask.
func (l *Leased) recycle(call *leasedCall, ops int) {
	for i := range ops {
		if call.held[i] {
			call.shares[i].release()
		}
	}
	clear(call.ops[:call.rest])
	clear(call.shares[:ops])
	clear(call.until[:ops])
	clear(call.held[:ops])
	call.rest, call.refuse = 0, false
	l.calls.Put(call)
}

// place decides who decides about op: this instance or the store. What is known not
// to fit is refused here when no other limit is to be asked in the same step, or when
// it refuses nobody.
func (l *Leased) place(call *leasedCall, op *Op, state *State, i int, now int64, pure bool) {
	if op.leased() {
		s := l.share(op)
		call.shares[i] = s
		if s != nil {
			s.want(op)
			if l.settled(call, s, op, state, i, now, pure) {
				return
			}
		}
	}
	call.ops[call.rest], call.from[call.rest] = *op, i
	if op.leased() {
		call.ops[call.rest] = op.shared()
	}
	call.rest++
}

// settled tells whether op could be decided here.
func (l *Leased) settled(call *leasedCall, s *share, op *Op, state *State, i int, now int64, pure bool) bool {
	if !s.active.Load() {
		s.active.Store(true)
	}
	until, spent, low := s.spend(op, state, now)
	if spent {
		call.until[i] = until
		if low {
			l.hurry(s)
		}
		return true
	}
	if (pure || op.Shadow) && s.refuses(op, state, now) {
		call.refuse = call.refuse || !op.Shadow
		return true
	}
	return false
}

// ask leaves the rest to the store. One call at a time asks for more of a share; a
// decision about nothing else waits for it, since it may bring what is missing.
func (l *Leased) ask(ctx context.Context, call *leasedCall, ops []Op, states []State) error {
	if call.rest == 1 && call.shares[call.from[0]] != nil {
		i := call.from[0]
		if err := call.shares[i].acquire(ctx); err != nil {
			return err
		}
		call.held[i] = true
		if l.settled(call, call.shares[i], &ops[i], &states[i], i, l.now(), len(ops) == 1) {
			clear(call.ops[:1])
			call.rest = 0
		}
	}
	if call.rest == 0 {
		return nil
	}
	asked := l.now()
	for j := range call.rest {
		i := call.from[j]
		if s := call.shares[i]; s != nil && !call.refuse && (call.held[i] || s.tryAcquire()) {
			call.held[i] = true
			call.ops[j].Share = s.wants(&ops[i], asked)
		}
	}
	var err error
	refused := -1
	if call.refuse {
		err = l.inner.Peek(ctx, call.ops[:call.rest], call.states[:call.rest])
	} else {
		refused, err = l.inner.Take(ctx, call.ops[:call.rest], call.states[:call.rest])
	}
	if err != nil {
		return err
	}
	charged := !call.refuse && refused < 0
	for j := range call.rest {
		call.hear(j, ops, states, asked, charged)
	}
	return nil
}

// hear takes the store's answer about one op.
func (call *leasedCall) hear(j int, ops []Op, states []State, asked int64, charged bool) {
	i := call.from[j]
	answer, s := &call.states[j], call.shares[i]
	if s != nil {
		s.hear(&ops[i], answer, call.ops[j].Share, answer.Share, asked, charged && answer.Fits)
		if held := s.holds(&ops[i], asked); answer.Fits {
			answer.Remaining += held
		} else {
			answer.Remaining = max(answer.Remaining, held) // no cost is paid by both
		}
		answer.Share = 0
	}
	states[i] = *answer
}

// giveBack returns what was spent here.
func (call *leasedCall) giveBack(ops []Op) {
	for i := range ops {
		if call.until[i] != 0 {
			call.shares[i].giveBack(&ops[i], call.until[i])
		}
	}
}
