package limit

import (
	"encoding/binary"
	"math"
	"time"
	"unsafe"
)

// The arguments of one script call: EVALSHA, the script's hash, the number of
// keys, the keys, one packed argument, the ids of leases.
const firstKey = 3

// maxKeys is the most keys of one call: each op may bring a mark, and the call one.
const maxKeys = 2*MaxOps + 1

// verb is what a call asks of the script.
type verb int64

const (
	verbPeek verb = iota
	verbTake
	verbSettle
	verbReset
)

// call is the memory of one script call, used again and again. The client reads
// strings through pointers, so that handing them over allocates nothing. Keys and
// ids are copied: nothing borrowed outlives the call, even if the client is late.
type call struct {
	number int64 // what its reply must begin with; see claim
	args   []any
	count  int // of keys
	texts  [maxKeys + MaxOps]string
	used   int // of texts
	packed string
	buf    []byte
}

func newCall(sha *string) *call {
	c := &call{args: make([]any, 0, firstKey+maxKeys+1+MaxOps)}
	name := "evalsha"
	c.args = append(c.args, &name, sha, &c.count)
	return c
}

// encode is take.lua's KEYS and ARGV. costs stand in for those of the ops in a
// correction, whose name is id; c.number is set. The result lives until the next encode.
func (c *call) encode(v verb, ops []Op, costs []int64, id []byte, now time.Time, grace int64) []any {
	c.room(ops, id)
	clock := int64(-1)
	if !now.IsZero() {
		clock = now.UnixMicro()
	}
	b := appendNumbers(c.buf[:0], c.number, clock, grace, int64(v), truth(len(id) > 0), int64(len(ops)))
	for i := range ops {
		op := &ops[i]
		switch v {
		case verbTake, verbPeek:
			b = op.appendTake(b, now)
		case verbSettle:
			b = op.appendSettle(b, costs[i])
		}
	}
	c.packed = text(b)
	c.args, c.used = c.args[:firstKey], 0
	for i := range ops {
		op := &ops[i]
		b = c.add(append(b, op.Key...), len(op.Key))
		if op.marked(v) {
			b = c.add(appendMarkKey(b, op.Key, op.ID), len(op.Key)+1+len(op.ID))
		}
	}
	if len(id) > 0 {
		b = c.add(appendMarkKey(b, ops[0].Key, id), len(ops[0].Key)+1+len(id))
	}
	c.count = c.used
	c.args = append(c.args, &c.packed)
	for i := range ops {
		if op := &ops[i]; op.Kind == Concurrency && v != verbReset {
			b = c.add(append(b, op.ID...), len(op.ID))
		}
	}
	return c.args
}

// room makes the buffer large enough for all at once: strings point into it.
func (c *call) room(ops []Op, id []byte) {
	size := (callNumbers + opNumbers*len(ops)) * 8
	for i := range ops {
		size += 2*len(ops[i].Key) + 1 + len(ops[i].ID)
	}
	if len(id) > 0 {
		size += len(ops[0].Key) + 1 + len(id)
	}
	if cap(c.buf) < size {
		c.buf = make([]byte, 0, size*2)
	}
}

// add makes the last size bytes of b an argument.
func (c *call) add(b []byte, size int) []byte {
	c.texts[c.used] = text(b[len(b)-size:])
	c.args = append(c.args, &c.texts[c.used])
	c.used++
	return b
}

// marked tells whether the op brings the mark of its id.
func (op *Op) marked(v verb) bool {
	return op.Kind == Quota && len(op.ID) > 0 && (v == verbTake || v == verbPeek)
}

// How many numbers a call and each of its ops have in take.lua's ARGV.
const (
	callNumbers = 6
	opNumbers   = 9
)

// appendTake appends the numbers of an op that is charged or looked at.
func (op *Op) appendTake(b []byte, now time.Time) []byte {
	cost := min(op.Cost, MaxCount)
	flags := truth(op.Shadow)
	switch op.Kind {
	case Rate, Retries:
		cost = min(cost, MaxBurst+1)
		return appendNumbers(b, int64(op.Kind), flags, cost, op.Refill.Micro, op.Refill.Period, op.Burst, op.Reserve, op.ahead(), op.Share)
	case Quota:
		if now.IsZero() {
			now = time.Now()
		}
		limit := op.max()
		if op.Max == Unlimited {
			limit = -1
		}
		p := op.Calendar.around(now.UnixMicro())
		return appendNumbers(b, int64(op.Kind), flags+2*truth(len(op.ID) > 0), cost, limit, op.overage(), p[0], p[1], p[2], p[3])
	}
	return appendNumbers(b, int64(op.Kind), flags, cost, op.max(), op.length(), 0, 0, 0, 0)
}

// appendSettle appends the numbers of an op that is corrected.
func (op *Op) appendSettle(b []byte, delta int64) []byte {
	switch op.Kind {
	case Rate, Retries:
		return appendNumbers(b, int64(op.Kind), 0, delta, op.Refill.Micro, op.Refill.Period, op.Burst, 0, 0, 0)
	case Quota:
		limit := op.max()
		if op.Max == Unlimited {
			limit = -1
		}
		return appendNumbers(b, int64(op.Kind), 0, delta, limit, op.overage(), 0, op.Stamp, 0, 0)
	}
	return appendNumbers(b, int64(op.Kind), 0, delta, op.max(), op.length(), 0, op.Stamp, 0, 0)
}

// appendNumbers appends doubles; whole numbers below 2^53 are exact.
func appendNumbers(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(n)))
	}
	return b
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// text views b as a string, valid while b is not written.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
