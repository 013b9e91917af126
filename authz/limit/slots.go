package limit

import (
	"bytes"
	"context"
	"slices"
	"sync"
)

// On a cluster a script sees one slot. A decision about several is made in parts:
// first the tag of the first op, a tenant's own limits as a rule; if it passes,
// all others at once. When one of these refuses, what was taken elsewhere is
// given back, once: a give-back that is lost costs the tenant a request, and
// never a limit anything. Between the two trips others may be refused for units
// that then come back; nobody is let pass for units that are not there.

// part is the ops of one tag, and what came of them.
type part struct {
	at     []int // where its ops are in the decision
	ops    []Op
	states []State
	err    error
}

// split groups ops by tag, in the order in which the tags come.
func split(ops []Op) []*part {
	var parts []*part
next:
	for i := range ops {
		for _, p := range parts {
			if bytes.Equal(p.ops[0].Tag, ops[i].Tag) {
				p.add(i, ops[i])
				continue next
			}
		}
		p := &part{}
		p.add(i, ops[i])
		parts = append(parts, p)
	}
	return parts
}

func (p *part) add(at int, op Op) {
	p.at = append(p.at, at)
	p.ops = append(p.ops, op)
	p.states = append(p.states, State{})
}

// apart tells whether ops may be in several slots.
func (r *Redis) apart(ops []Op) bool {
	if r.cluster == nil {
		return false
	}
	for i := 1; i < len(ops); i++ {
		if !bytes.Equal(ops[i].Tag, ops[0].Tag) {
			return true
		}
	}
	return false
}

// stepParts is step for several slots.
func (r *Redis) stepParts(ctx context.Context, v verb, ops []Op, states []State) (int, error) {
	parts := split(ops)
	if v == verbPeek {
		err := r.trips(ctx, v, parts)
		scatter(parts, states)
		return refusal(ops, states), err
	}
	first, rest := parts[:1:1], parts[1:]
	if err := r.trips(ctx, v, first); err != nil {
		return -1, err
	}
	passed := refusal(first[0].ops, first[0].states) < 0
	var retries []*part
	then := v
	if !passed {
		// What is left to do is to look, and to charge the retries all the same.
		rest, retries = withoutRetries(rest)
		then = verbPeek
	}
	if err := r.trips(ctx, then, rest); err != nil {
		return -1, err
	}
	if err := r.trips(ctx, v, retries); err != nil {
		return -1, err
	}
	parts = slices.Concat(first, rest, retries)
	scatter(parts, states)
	refused := refusal(ops, states)
	if passed && refused >= 0 {
		r.giveBack(ctx, parts)
		scatter(parts, states)
	}
	return refused, nil
}

// trips asks about parts at the same time.
func (r *Redis) trips(ctx context.Context, v verb, parts []*part) error {
	return inParallel(parts, func(p *part) error { return r.trip(ctx, v, p.ops, p.states) })
}

// withoutRetries takes the retries out of parts.
func withoutRetries(parts []*part) (rest, retries []*part) {
	for _, p := range parts {
		look, take := &part{}, &part{}
		for i, op := range p.ops {
			if op.Kind == Retries {
				take.add(p.at[i], op)
			} else {
				look.add(p.at[i], op)
			}
		}
		if len(look.ops) > 0 {
			rest = append(rest, look)
		}
		if len(take.ops) > 0 {
			retries = append(retries, take)
		}
	}
	return rest, retries
}

// settleParts is Settle for several slots. Each remembers the correction by its
// own first key.
func (r *Redis) settleParts(ctx context.Context, id []byte, ops []Op, deltas []int64) error {
	return inParallel(split(ops), func(p *part) error {
		own := make([]int64, len(p.at))
		for i, at := range p.at {
			own[i] = deltas[at]
		}
		_, err := r.call(ctx, verbSettle, p.ops, own, id)
		return err
	})
}

// resetParts is Reset for several slots.
func (r *Redis) resetParts(ctx context.Context, ops []Op) error {
	return inParallel(split(ops), func(p *part) error {
		_, err := r.call(ctx, verbReset, p.ops, nil, nil)
		return err
	})
}

// giveBack returns what the parts of a refused decision have taken, and looks how
// they are then. The caller waits no longer than ctx allows, but what has to be
// given back is given back after that, too; its states then show it as taken.
func (r *Redis) giveBack(ctx context.Context, parts []*part) {
	var taken []*part
	for _, p := range parts {
		if refusal(p.ops, p.states) < 0 {
			taken = append(taken, p.own())
		}
	}
	later, cancel := context.WithTimeout(context.WithoutCancel(ctx), clientTimeout)
	done := make(chan struct{})
	go func() {
		defer cancel()
		defer close(done)
		_ = inParallel(taken, func(p *part) error { return r.untake(later, p) })
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return
	}
	for _, p := range parts {
		for _, q := range taken {
			if p.at[0] == q.at[0] && q.err == nil {
				p.states = q.states
			}
		}
	}
}

// own is a copy of p that borrows nothing.
func (p *part) own() *part {
	q := &part{at: p.at, ops: make([]Op, len(p.ops)), states: make([]State, len(p.states))}
	for i, op := range p.ops {
		op.Tag, op.Key, op.ID = bytes.Clone(op.Tag), bytes.Clone(op.Key), bytes.Clone(op.ID)
		op.Stamp = p.states[i].Stamp
		q.ops[i] = op
	}
	copy(q.states, p.states)
	return q
}

// untake gives back what a Take of p has charged: whatever fitted, but retries.
func (r *Redis) untake(ctx context.Context, p *part) error {
	var ops []Op
	var deltas []int64
	for i, op := range p.ops {
		if p.states[i].Fits && op.Kind != Retries {
			ops, deltas = append(ops, op), append(deltas, -op.Cost-p.states[i].Share)
		}
	}
	if len(ops) > 0 {
		if err := r.Settle(ctx, nil, ops, deltas); err != nil {
			return err
		}
	}
	return r.trip(ctx, verbPeek, p.ops, p.states)
}

// scatter writes what came of the parts where the decision wants it.
func scatter(parts []*part, states []State) {
	for _, p := range parts {
		for i, at := range p.at {
			states[at] = p.states[i]
		}
	}
}

// inParallel waits for f of each part, and returns the first one's error. A
// single one needs no goroutine.
func inParallel(parts []*part, f func(*part) error) error {
	if len(parts) == 1 {
		parts[0].err = f(parts[0])
		return parts[0].err
	}
	var all sync.WaitGroup
	for _, p := range parts {
		all.Go(func() { p.err = f(p) })
	}
	all.Wait()
	for _, p := range parts {
		if p.err != nil {
			return p.err
		}
	}
	return nil
}
