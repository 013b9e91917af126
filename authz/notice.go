package authz

import (
	"hash/maphash"
	"sync/atomic"
	"time"

	"sluice/authz/limit"
)

const (
	// noticeQueue is how many notices wait for the notifier.
	noticeQueue = 1024
	// noticeSets and noticeWays are the size of the table of what was noticed:
	// 65,536 counters.
	noticeSets, noticeWays = 1 << 14, 4
	// exhausted is the step after all percentages: the quota has refused somebody.
	exhausted = 101
)

// notice is that a counter of a quota has reached a step. It holds names of the
// policy and numbers, nothing borrowed.
type notice struct {
	tenant, key, plan, limit string
	counter                  string
	percent                  int // a step of `notify`, or exhausted
	used, max                int64
	start, end               time.Time // of the period
}

// notices is the way from decisions to the notifier: a decision hands over what it
// has just seen and goes on. What does not fit is counted, and noticed again by the
// next request, since it is the level that counts and not its crossing.
type notices struct {
	seed    maphash.Seed
	queue   chan notice
	seen    [][noticeWays]atomic.Uint64
	dropped atomic.Uint64
}

func newNotices() *notices {
	return &notices{seed: maphash.MakeSeed(), queue: make(chan notice, noticeQueue), seen: make([][noticeWays]atomic.Uint64, noticeSets)}
}

// look notices what the quotas of a decision have reached. It takes no lock, and
// allocates only when there is something new to tell.
func (n *notices) look(d *Decision, refused int) {
	if n == nil || d.Tenant == "" {
		return
	}
	for i, r := range d.rules {
		op := &d.ops[i]
		if len(r.limit.Notify) == 0 || op.Kind != limit.Quota || op.Max == limit.Unlimited {
			continue
		}
		step := r.step(op, &d.states[i], i == refused)
		if step == 0 {
			continue
		}
		bounds := op.Calendar.Bounds(d.now)
		slot, old, fresh := n.claim(op.Key, bounds.Start(), step)
		if !fresh {
			continue
		}
		select {
		case n.queue <- notice{
			tenant: d.Tenant, key: d.Key, plan: d.Plan, limit: r.limit.Name, counter: string(op.Key),
			percent: step, used: d.states[i].Used, max: op.Max, start: bounds.Start(), end: bounds.End(),
		}:
		default:
			slot.Store(old)
			n.dropped.Add(1)
		}
	}
}

// step is the highest step that a quota has reached; 0: none. One that can never
// hold anything has none.
func (r *rule) step(op *limit.Op, s *limit.State, refused bool) int {
	switch {
	case op.Max <= 0:
		return 0
	case refused && s.Wait != limit.Never:
		return exhausted
	}
	step := 0
	for _, percent := range r.limit.Notify {
		if s.Used*100 >= int64(percent)*min(op.Max, limit.MaxCount) { // 2^53 times 100 has room
			step = percent
		}
	}
	return step
}

// claim tells whether this step of a counter's period is new here. Of those that
// notice it at the same time one is told so. The slot can be given back old.
func (n *notices) claim(key []byte, start time.Time, step int) (slot *atomic.Uint64, old uint64, fresh bool) {
	hash := maphash.Bytes(n.seed, key) ^ uint64(start.Unix())*0x9e3779b97f4a7c15
	mark := hash&^0xff | uint64(step)
	set := &n.seen[hash>>48%noticeSets]
	slot = &set[hash>>40%noticeWays]
	for i := range set {
		held := set[i].Load()
		if held&^0xff == hash&^0xff {
			slot = &set[i]
			if held >= mark {
				return slot, held, false
			}
			break
		}
		if held == 0 {
			slot = &set[i]
			break
		}
	}
	old = slot.Load()
	return slot, old, old != mark && slot.CompareAndSwap(old, mark)
}
