package authz

import (
	"math/bits"
	"sync/atomic"
	"time"

	"sluice/authz/limit"
	"sluice/policies"
)

const (
	// requestSlots is the size of the table behind sluice_requests_total: it holds
	// some 5,400 triples of route, plan and verdict.
	requestSlots = 8192
	// timeBuckets are the bounds of sluice_decision_seconds: 1 us, 2 us, 4 us, ... 131 ms.
	timeBuckets = 18
)

// metrics are what an Engine counts for people who watch it, by names. They
// belong to the engine and not to a policy: reloads lose nothing.
//
// A decision counts by number alone: names were numbered when its policy was
// swapped in (see label). All tables are of fixed size, so whatever is asked,
// the number of series is bounded (C120). No label holds a key, an address, a
// path, a host or a method.
type metrics struct {
	born     time.Time // what times of decisions are measured from
	labels   *labels
	requests *tally // by route, plan, verdict
	accounts accounts
	times    [timeBuckets + 1]atomic.Uint64 // the last: longer than all bounds
	spent    atomic.Uint64                  // nanoseconds
}

func newMetrics() *metrics {
	m := &metrics{born: time.Now(), labels: newLabels(), requests: newTally(requestSlots)}
	for v := range verdicts {
		m.requests.reserve(requestKey(labelOther, labelOther, v))
	}
	m.accounts.init()
	return m
}

// label numbers the names of a policy that is about to be in force, and gives
// its tenants their meters.
func (m *metrics) label(b *bound) {
	for i := range b.plans {
		b.planLabels = append(b.planLabels, m.labels.id(b.policy.Plans[i].Name))
		m.labelRules(b.plans[i])
	}
	for i := range b.routes {
		b.routes[i].label = m.labels.id(b.routes[i].Name)
		m.labelRules(b.routes[i].rules)
	}
	m.labelRules(b.top)
	b.meters = make([]meter, len(b.tenants))
	for i := range b.tenants {
		t := &b.tenants[i]
		t.meter = &b.meters[i]
		m.labelRules(t.rules)
		for j := range t.keys {
			m.labelRules(t.keys[j].rules)
		}
	}
	m.accounts.adopt(b)
}

func (m *metrics) labelRules(rules []rule) {
	for i := range rules {
		if rules[i].label == labelNone { // else it is shared, and numbered already
			rules[i].label = m.labels.id(rules[i].limit.Name)
		}
	}
}

// clock is a time to compare with another, read as cheaply as can be.
func (m *metrics) clock() time.Duration { return time.Since(m.born) }

// count counts a decision that began at a time of clock.
func (m *metrics) count(d *Decision, began time.Duration) {
	m.observe(m.clock() - began)
	m.requests.add(requestKey(d.routeLabel, d.planLabel, d.Verdict), requestKey(labelOther, labelOther, d.Verdict), 1)
	if d.meter != nil && d.Verdict == Deny {
		d.meter.denied.Add(1)
	}
	if len(d.ops) > 0 && d.Refused() != ReasonSimulate { // else they are imagined
		m.countLimits(d)
	}
}

// countLimits counts for the tenant what the limits said.
func (m *metrics) countLimits(d *Decision) {
	a := m.accounts.of(d)
	for i, r := range d.rules {
		s := &d.states[i]
		if d.recalled && i != d.told {
			continue // nobody asked about it
		}
		switch {
		case s.Fits:
		case d.ops[i].Shadow:
			a.refused(refusalKey(d.routeLabel, r.label, r.reason, true))
		case i == d.told && d.Verdict == Deny:
			a.refused(refusalKey(d.routeLabel, r.label, d.Reason, false))
		case i == d.told && d.Reason == ReasonShadow:
			a.refused(refusalKey(d.routeLabel, r.label, d.refused, true))
		}
		if a.left != nil && s.Remaining != limit.Unlimited {
			a.left.set(1<<63|uint64(r.label), uint64(s.Remaining))
		}
	}
}

// refuse counts a refusal of a limit that is not the store's.
func (m *metrics) refuse(d *Decision, limit string, reason Reason, shadow bool) {
	m.accounts.of(d).refused(refusalKey(d.routeLabel, m.labels.id(limit), reason, shadow))
}

// observe counts how long a decision took, without what its answer is held.
func (m *metrics) observe(took time.Duration) {
	if took < 0 {
		took = 0
	}
	// 0 up to 1 us, 1 up to 2 us, 2 up to 4 us, ...
	m.times[min(bits.Len64(uint64(max(took-1, 0)/time.Microsecond)), timeBuckets)].Add(1)
	m.spent.Add(uint64(took))
}

// requestKey is a number of the requests' table.
func requestKey(route, plan uint32, v Verdict) uint64 {
	return 1<<63 | uint64(v)<<48 | uint64(route)<<24 | uint64(plan)
}

// refusal is what a number of an account's table means.
type refusal struct {
	route, limit uint32
	reason       Reason
	shadow       bool // it would have been one
}

func refusalKey(route, limit uint32, reason Reason, shadow bool) uint64 {
	key := 1<<63 | uint64(reason)<<48 | uint64(route)<<24 | uint64(limit)
	if shadow {
		key |= 1 << 62
	}
	return key
}

func refusalOf(key uint64) refusal {
	return refusal{
		route: uint32(key >> 24 & 0xffffff), limit: uint32(key & 0xffffff),
		reason: Reason(key >> 48 & 0xff), shadow: key&(1<<62) != 0,
	}
}

// skew is what was heard of other policies than the one in force.
type skew struct {
	hash atomic.Uint64 // the last one, as a number; 0: none that can be read
	at   atomic.Int64  // Unix seconds
}

// hear notes a question from another policy. It allocates nothing.
func (s *skew) hear(hash []byte, now time.Time) {
	if n, ok := hashNumber(hash); ok {
		s.hash.Store(n)
	}
	s.at.Store(now.Unix())
}

// hashNumber is a policy's hash, 16 hexadecimal digits, as a number.
func hashNumber(hash []byte) (n uint64, ok bool) {
	if len(hash) != 16 {
		return 0, false
	}
	for _, c := range hash {
		switch {
		case '0' <= c && c <= '9':
			n = n<<4 | uint64(c-'0')
		case 'a' <= c && c <= 'f':
			n = n<<4 | uint64(c-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// foreign tells whether a question is from the configuration of another policy.
func foreign(req *Request, known bool, p *policies.Compiled) bool {
	return !known || len(req.Policy) > 0 && string(req.Policy) != p.Hash
}
