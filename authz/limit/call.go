package limit

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// The arguments of one script call: EVALSHA, the script's hash, the number of
// keys, the keys, one packed argument.
const firstKey = 3

// call is the memory of one script call, used again and again. The client reads
// strings through pointers, so that handing them over allocates nothing. Keys are
// copied: nothing borrowed outlives Take, even if the client is late.
type call struct {
	args   []any
	count  int
	keys   [MaxOps]string
	packed string
	buf    []byte
}

func newCall(sha *string) *call {
	c := &call{args: make([]any, 0, firstKey+MaxOps+1)}
	name := "evalsha"
	c.args = append(c.args, &name, sha, &c.count)
	return c
}

// encode is take.lua's KEYS and ARGV. The result lives until the next encode.
func (c *call) encode(ops []Op, now, grace int64, charge bool) []any {
	size := (3 + 5*len(ops)) * 8
	for i := range ops {
		size += len(ops[i].Key)
	}
	if cap(c.buf) < size {
		// All at once: the strings below point into it.
		c.buf = make([]byte, 0, size*2)
	}
	b := c.buf[:0]
	b = appendNumbers(b, now, grace, truth(charge))
	for i := range ops {
		op := &ops[i]
		b = appendNumbers(b, op.Refill.Micro, op.Refill.Period, op.Burst, min(op.Cost, MaxBurst+1), truth(op.Shadow))
	}
	c.packed = text(b)
	c.count = len(ops)
	c.args = c.args[:firstKey]
	for i := range ops {
		start := len(b)
		b = append(b, ops[i].Key...)
		c.keys[i] = text(b[start:])
		c.args = append(c.args, &c.keys[i])
	}
	c.args = append(c.args, &c.packed)
	return c.args
}

// decode reads take.lua's output, and believes nothing that cannot be.
func decode(reply string, ops []Op, states []State) error {
	if len(reply) != len(ops)*24 {
		return fmt.Errorf("cannot read the script's reply: %d bytes for %d ops", len(reply), len(ops))
	}
	for i := range ops {
		op := &ops[i]
		fits, ok1 := number(reply[i*24:], 0, 1)
		level, ok2 := number(reply[i*24+8:], 0, op.Burst*Unit)
		age, ok3 := number(reply[i*24+16:], -maxMicros, maxMicros)
		if !ok1 || !ok2 || !ok3 || (fits == 1 && op.Cost > op.Burst) {
			return fmt.Errorf("cannot read the script's reply: op %d of %d is out of range", i, len(ops))
		}
		b := bucket{level: level, time: -age, refill: op.Refill, burst: op.Burst}
		states[i] = b.state(op, 0, fits == 1)
	}
	return nil
}

// number is the whole number, least to most, that a double at the start of s is.
func number(s string, least, most int64) (int64, bool) {
	f := math.Float64frombits(binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(s), 8)))
	n := int64(f)
	return n, float64(n) == f && n >= least && n <= most
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
