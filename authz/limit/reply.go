package limit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// replySize is how many bytes of take.lua's output an op has.
const replySize = 5 * 8

// claim takes a reply for that of a call, if it is: replies have nothing but their
// order to tell whose they are, and one that comes twice, or one that is left of a
// call before, moves all behind it. It returns the reply without the number.
func (c *call) claim(reply string) (string, error) {
	if len(reply) >= 8 {
		if n, ok := number(reply, 0, maxMicros); ok && n == c.number {
			return reply[8:], nil
		}
	}
	return "", errors.New("cannot read the script's reply: it is another call's")
}

// decode reads take.lua's output, and believes nothing that cannot be.
func decode(reply string, ops []Op, states []State) error {
	if len(reply) != 8+len(ops)*replySize {
		return fmt.Errorf("cannot read the script's reply: %d bytes for %d ops", len(reply), len(ops))
	}
	now, ok := number(reply, 0, maxMicros)
	if !ok {
		return fmt.Errorf("cannot read the script's reply: its time is out of range")
	}
	reply = reply[8:]
	for i := range ops {
		s, ok := ops[i].decode(reply[i*replySize:], now)
		if !ok {
			return fmt.Errorf("cannot read the script's reply: op %d of %d is out of range", i, len(ops))
		}
		states[i] = s
	}
	return nil
}

// decode reads what is said of one op.
func (op *Op) decode(s string, now int64) (State, bool) {
	fits, ok := number(s, 0, 1)
	if !ok {
		return State{}, false
	}
	switch op.Kind {
	case Rate, Retries:
		return op.decodeBucket(s[8:], now, fits == 1)
	case FixedWindow, SlidingWindow:
		start, ok1 := number(s[8:], 0, maxMicros)
		count, ok2 := number(s[16:], 0, MaxCount)
		last, ok3 := number(s[24:], 0, MaxCount)
		w := window{start: start, length: op.length(), count: count, last: last}
		if !ok1 || !ok2 || !ok3 || start%w.length != 0 || start+w.length <= now {
			return State{}, false
		}
		return w.state(op, now, fits == 1), true
	case LogWindow:
		counted, ok1 := number(s[8:], 0, MaxCount)
		newest, ok2 := number(s[16:], 0, maxMicros)
		leaves, ok3 := number(s[24:], 0, maxMicros)
		t := logTally{counted, newest, leaves}
		return t.state(op, now, fits == 1), ok1 && ok2 && ok3
	case Quota:
		stamp, ok1 := number(s[8:], -maxMicros, maxMicros)
		end, ok2 := number(s[16:], -maxMicros, maxMicros)
		used, ok3 := number(s[24:], 0, MaxCount)
		over, ok4 := number(s[32:], 0, used)
		q := quota{start: stamp, end: end, used: used, over: over}
		return q.state(op, now, fits == 1), ok1 && ok2 && ok3 && ok4
	}
	held, ok := number(s[8:], 0, MaxCount)
	return leaseState(op, held, fits == 1), ok
}

func (op *Op) decodeBucket(s string, now int64, fits bool) (State, bool) {
	level, ok1 := number(s, minLevel, op.Burst*Unit)
	time, ok2 := number(s[8:], 0, maxMicros)
	level0, ok3 := number(s[16:], minLevel, op.Burst*Unit)
	time0, ok4 := number(s[24:], 0, maxMicros)
	if !ok1 || !ok2 || !ok3 || !ok4 || (fits && op.Cost > op.Burst-op.Reserve) {
		return State{}, false
	}
	b := bucket{level: level, time: time, refill: op.Refill, burst: op.Burst}
	state := b.state(op, now, fits)
	before := bucket{level: level0, time: time0, refill: op.Refill, burst: op.Burst}
	switch {
	case before == b:
	case op.ahead() > 0:
		state.Delay = micros(before.until(op.need(), now))
	case op.Share > 0:
		state.Share = (before.held(now)-level)/Unit - op.Cost
	}
	return state, state.Share >= 0 && state.Share <= op.Share
}

// number is the whole number, least to most, that a double at the start of s is.
func number(s string, least, most int64) (int64, bool) {
	f := math.Float64frombits(binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), 8)))
	n := int64(f)
	return n, float64(n) == f && n >= least && n <= most
}
