package limittest

import (
	"math/big"
	"time"

	"sluice/authz/limit"
)

// Model is a store as one would explain it: one step at a time, a map for each
// kind, integers without an end, and no thought of speed. The stores must answer
// as it does. It never drops a key.
type Model struct {
	now     func() time.Time
	buckets map[string]modelBucket
	windows map[string]modelWindow
	logs    map[string]modelLog
	quotas  map[string]modelQuota
	leases  map[string]map[string]time.Time // by key and id: when they are over
	charged map[string]modelMark            // by key and id of quotas
	settled map[string]modelMark            // by first key and id of corrections
}

// modelMark remembers that an id made something happen.
type modelMark struct {
	at    time.Time
	stamp int64
}

// NewModel makes an empty model.
func NewModel(now func() time.Time) *Model {
	return &Model{
		now:     now,
		buckets: map[string]modelBucket{},
		windows: map[string]modelWindow{},
		logs:    map[string]modelLog{},
		quotas:  map[string]modelQuota{},
		leases:  map[string]map[string]time.Time{},
		charged: map[string]modelMark{},
		settled: map[string]modelMark{},
	}
}

// Take answers as limit.Store's Take.
func (m *Model) Take(ops []limit.Op, states []limit.State) (refused int) {
	return m.step(ops, states, true)
}

// Peek answers as limit.Store's Peek.
func (m *Model) Peek(ops []limit.Op, states []limit.State) { m.step(ops, states, false) }

func (m *Model) step(ops []limit.Op, states []limit.State, charge bool) int {
	now := m.now()
	pass := true
	for i, op := range ops {
		states[i] = m.look(op, now)
		if !states[i].Fits && !op.Shadow {
			pass = false
		}
	}
	for i, op := range ops {
		if !charge {
			break
		}
		m.renumber(op, now)
		if states[i].Fits && (pass || op.Kind == limit.Retries) && !m.knows(op, now) {
			delay, share := m.charge(op, now)
			states[i] = m.look(op, now)
			states[i].Fits, states[i].Wait, states[i].Delay, states[i].Share = true, 0, delay, share
		}
	}
	return longest(ops, states)
}

// knows tells whether the op's id has been charged already.
func (m *Model) knows(op limit.Op, now time.Time) bool {
	switch op.Kind {
	case limit.Quota:
		mark, found := m.charged[string(op.Key)+"#"+string(op.ID)]
		return len(op.ID) > 0 && found && now.Sub(mark.at) < limit.Remember
	case limit.Concurrency:
		return m.leases[string(op.Key)][string(op.ID)].After(now)
	}
	return false
}

// look is what the op would be answered if it were alone and not charged.
func (m *Model) look(op limit.Op, now time.Time) limit.State {
	key := string(op.Key)
	switch op.Kind {
	case limit.Rate, limit.Retries:
		b, _ := m.bucket(op, now)
		return b.state(op, now)
	case limit.FixedWindow, limit.SlidingWindow:
		return m.windows[key].roll(op, now).state(op, now)
	case limit.LogWindow:
		return m.logs[key].under(op).state(op, now)
	case limit.Quota:
		s := m.quotas[key].roll(op, now).state(op, now)
		if m.knows(op, now) {
			s.Fits, s.Wait, s.Stamp = true, 0, m.charged[key+"#"+string(op.ID)].stamp
		}
		return s
	}
	held := int64(0)
	for _, over := range m.leases[key] {
		if over.After(now) {
			held++
		}
	}
	s := limit.State{Fits: held < op.Max || m.knows(op, now), Used: held, Remaining: max(0, op.Max-held)}
	if !s.Fits {
		s.Wait = time.Second
		if op.Max == 0 {
			s.Wait = limit.Never
		}
	}
	return s
}

// renumber writes new numbers of buckets, charged or not.
func (m *Model) renumber(op limit.Op, now time.Time) {
	if op.Kind == limit.Rate || op.Kind == limit.Retries {
		if b, renumbered := m.bucket(op, now); renumbered {
			m.buckets[string(op.Key)] = b
		}
	}
}

// charge takes what fits, and tells how long the answer must be held, and how much
// came of a share.
func (m *Model) charge(op limit.Op, now time.Time) (delay time.Duration, share int64) {
	key := string(op.Key)
	switch op.Kind {
	case limit.Rate, limit.Retries:
		b, _ := m.bucket(op, now)
		if op.MaxWait > 0 && op.Reserve == 0 {
			delay = b.until(micro(op.Cost), now)
		}
		if op.Share > 0 {
			left := new(big.Int).Div(b.at(now), big.NewInt(limit.Unit)).Int64()
			share = min(op.Share, left-op.Cost-op.Reserve)
		}
		m.buckets[key] = b.charged(op.Cost+share, now)
	case limit.FixedWindow, limit.SlidingWindow:
		w := m.windows[key].roll(op, now)
		w.count += op.Cost
		m.windows[key] = w
	case limit.LogWindow:
		m.logs[key] = m.logs[key].under(op).charged(op, now)
	case limit.Quota:
		q := m.quotas[key].roll(op, now).charged(op)
		m.quotas[key] = q
		if len(op.ID) > 0 {
			m.charged[key+"#"+string(op.ID)] = modelMark{now, q.start.UnixMicro()}
		}
	case limit.Concurrency:
		if m.leases[key] == nil {
			m.leases[key] = map[string]time.Time{}
		}
		for id, over := range m.leases[key] {
			if !over.After(now) {
				delete(m.leases[key], id)
			}
		}
		m.leases[key][string(op.ID)] = now.Add(op.Length)
	}
	return delay, share
}

// Settle corrects as limit.Store's Settle.
func (m *Model) Settle(id []byte, ops []limit.Op, deltas []int64) {
	now := m.now()
	name := string(ops[0].Key) + "#" + string(id)
	if mark, found := m.settled[name]; len(id) > 0 && found && now.Sub(mark.at) < limit.Remember {
		return
	}
	m.settled[name] = modelMark{at: now}
	for i, op := range ops {
		key := string(op.Key)
		_, used := m.quotas[key]
		switch {
		case op.Kind == limit.Concurrency:
			delete(m.leases[key], string(op.ID))
		case deltas[i] == 0:
		case op.Kind == limit.Rate || op.Kind == limit.Retries:
			b, _ := m.bucket(op, now)
			if full := b.at(now).Cmp(micro(b.burst)) == 0; deltas[i] > 0 || !full {
				m.buckets[key] = b.charged(deltas[i], now)
			}
		case op.Kind == limit.LogWindow:
			m.logs[key] = m.logs[key].settled(op, now, deltas[i])
		case op.Kind == limit.Quota && used:
			m.quotas[key] = m.quotas[key].settled(op, deltas[i])
		case op.Kind == limit.FixedWindow || op.Kind == limit.SlidingWindow:
			m.windows[key] = m.windows[key].settled(op, now, deltas[i])
		}
	}
}

// Reset forgets as limit.Store's Reset.
func (m *Model) Reset(ops []limit.Op) {
	for _, op := range ops {
		key := string(op.Key)
		delete(m.buckets, key)
		delete(m.windows, key)
		delete(m.logs, key)
		delete(m.quotas, key)
		delete(m.leases, key)
	}
}

// longest is the enforced op that refused and has the longest wait.
func longest(ops []limit.Op, states []limit.State) int {
	found := -1
	for i, op := range ops {
		if op.Shadow || states[i].Fits {
			continue
		}
		if found < 0 || rank(states[i].Wait) > rank(states[found].Wait) {
			found = i
		}
	}
	return found
}

func rank(wait time.Duration) time.Duration {
	if wait == limit.Never {
		return 1<<63 - 1
	}
	return wait
}
