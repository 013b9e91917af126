package accesslog

import (
	"bytes"
	"slices"
	"time"
)

// Problem is why a line could not be read.
type Problem uint8

// The problems of lines.
const (
	Fine     Problem = iota
	Unlike           // it is not written as the format says
	CutShort         // it ends in the middle
	NoTime           // its time cannot be read
	TooLong          // longer than MaxLine
	Leap             // its time is a day or more ahead of the lines around it
	problems         // how many there are
)

// String says what is wrong, for people.
func (p Problem) String() string {
	switch p {
	case Unlike:
		return "not written as the log format says"
	case CutShort:
		return "ends in the middle"
	case NoTime:
		return "has no time that can be read"
	case TooLong:
		return "is too long"
	case Leap:
		return "is days ahead of the lines around it"
	}
	return "fine"
}

// maxRequestTime is the longest $request_time that is believed, in seconds.
const maxRequestTime = 30 * 24 * 3600

// layout says where the values of a format's variables are kept.
type layout struct {
	format *Format
	vars   *Vars
	slots  []int16 // by Var; -1: lines of this format do not say it
	parts  []int16 // by part of the format; -1: nobody wants it
	width  int     // how many spans an entry has
	now    time.Time
}

func newLayout(f *Format, vars *Vars, now time.Time) *layout {
	l := &layout{format: f, vars: vars, slots: make([]int16, vars.Len()), parts: make([]int16, len(f.parts)), now: now}
	for i := range l.slots {
		l.slots[i] = -1
	}
	if f.json {
		for i := range l.slots {
			l.slots[i] = int16(i)
		}
		l.width = len(l.slots)
		return l
	}
	for i, p := range f.parts {
		l.parts[i] = -1
		v, wanted := vars.inFormat(p.name)
		if !wanted {
			continue
		}
		// Of two pieces that say the same the first counts.
		if l.slots[v] < 0 {
			l.slots[v] = int16(l.width)
			l.parts[i] = l.slots[v]
			l.width++
		}
	}
	return l
}

// parse reads the line between two offsets of the batch and appends an entry.
func (b *batch) parse(from, to int, line int64) {
	for to > from && (b.text[to-1] == '\r' || b.text[to-1] == ' ') {
		to--
	}
	if from == to {
		return
	}
	b.lines++
	from, logged := b.skipSyslog(from, to)
	e := Entry{Line: line, batch: b, first: len(b.spans)}
	b.grow(b.layout.width)
	spans := b.spans[e.first:]
	problem, repaired := Fine, false
	if b.layout.format.json {
		problem, repaired = b.parseJSON(spans, from, to)
	} else {
		problem = b.parseText(spans, from, to)
	}
	if problem == Fine {
		problem = e.times(logged)
	}
	if problem != Fine {
		b.spans = b.spans[:e.first]
		b.bad(problem, line)
		return
	}
	if repaired {
		b.repair(line)
	}
	b.entries = append(b.entries, e)
}

// grow adds n empty spans.
func (b *batch) grow(n int) {
	old := len(b.spans)
	b.spans = slices.Grow(b.spans, n)[:old+n]
	clear(b.spans[old:])
}

// times reads when the request ended and began.
func (e *Entry) times(logged int64) Problem {
	text := e.Value(VarMsec)
	if text == nil {
		text = e.Value(VarTime)
	}
	whole, ok := true, false
	switch {
	case text != nil:
		e.End, whole, ok = readTime(text)
	case logged != 0:
		e.End, ok = logged, true
	}
	if !ok {
		return NoTime
	}
	if whole {
		e.batch.whole++
	}
	e.Start = e.End
	if took, fraction, ok := readDecimal(e.Value(VarRequestTime)); ok && took <= maxRequestTime {
		e.Start -= took*second + fraction
		e.batch.timed++
	}
	return Fine
}

// skipSyslog finds where the message of a line begins that went through syslog, or
// through a container's runtime, with the time that syslog wrote; 0 if there is none.
func (b *batch) skipSyslog(from, to int) (int, int64) {
	s := b.text[from:to]
	switch {
	case s[0] == '<':
		i := bytes.IndexByte(s, '>')
		if i < 2 || i > 4 {
			return from, 0
		}
		s = s[i+1:]
	case '0' <= s[0] && s[0] <= '9':
		return b.skipContainer(from, to), 0
	case s[0] < 'A' || s[0] > 'S':
		return from, 0
	}
	at, ok := readSyslog(s, b.layout.now)
	if !ok {
		return from, 0
	}
	i := bytes.Index(s, []byte(": "))
	if i < 0 {
		return from, 0
	}
	return to - len(s) + i + 2, at
}

// skipContainer finds where the message begins of a line that a container's
// runtime has kept: 2026-12-01T03:04:05.123456789Z stdout F MESSAGE.
func (b *batch) skipContainer(from, to int) int {
	const least = len("2026-12-01T03:04:05Z stdout F ")
	s := b.text[from:min(to, from+64)]
	if len(s) < least || s[4] != '-' || s[10] != 'T' {
		return from
	}
	i := bytes.IndexByte(s, ' ')
	if i < 0 {
		return from
	}
	for _, mark := range []string{" stdout F ", " stderr F "} {
		if bytes.HasPrefix(s[i:], []byte(mark)) {
			return from + i + len(mark)
		}
	}
	return from
}

// parseText reads a line by its format.
func (b *batch) parseText(spans []span, from, to int) Problem {
	f := b.layout.format
	if !bytes.HasPrefix(b.text[from:to], []byte(f.head)) {
		return Unlike
	}
	at := from + len(f.head)
	for i := range f.parts {
		p := &f.parts[i]
		n := p.find(b.text[at:to])
		if n < 0 && f.loose && i == len(f.parts)-1 && len(p.end) == 1 && p.end[0] == ' ' {
			n = to - at // the last of what must be there, and nothing follows it
		}
		if n < 0 {
			return Unlike
		}
		if slot := b.layout.parts[i]; slot >= 0 {
			value, _ := unescape(b.text[at:at+n], f.escape)
			if !absent(value) {
				spans[slot] = span{uint32(at), uint32(at + len(value))}
			}
		}
		at = min(at+n+len(p.end), to)
	}
	if at < to && !f.loose {
		return Unlike
	}
	return Fine
}

// find is the length of the value at the beginning of s, -1 when its end is not there.
func (p *part) find(s []byte) int {
	switch {
	case p.end == "":
		return len(s)
	case p.shape == list:
		return p.findList(s)
	case p.shape == target:
		// The line's own protocol ends it: "GET /a b HTTP/1.1".
		if i := bytes.Index(s, []byte(" HTTP/")); i >= 0 {
			return i
		}
	case p.shape == quoted:
		return p.findQuoted(s)
	case len(p.end) == 1:
		return bytes.IndexByte(s, p.end[0])
	}
	return bytes.Index(s, p.literal)
}

// findQuoted passes over ends whose quote has a backslash before it: it is a part
// of the value.
func (p *part) findQuoted(s []byte) int {
	for from := 0; ; {
		i := bytes.Index(s[from:], p.literal)
		if i < 0 {
			return -1
		}
		i += from
		backslashes := 0
		for backslashes < i && s[i-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return i
		}
		from = i + 1
	}
}

func (p *part) findList(s []byte) int {
	for i := 0; i < len(s); i++ {
		if s[i] != ' ' || i > 0 && (s[i-1] == ',' || s[i-1] == ':') || i+1 < len(s) && s[i+1] == ':' {
			continue
		}
		if bytes.HasPrefix(s[i:], []byte(p.end)) {
			return i
		}
	}
	return -1
}

func absent(value []byte) bool {
	return len(value) == 0 || len(value) == 1 && value[0] == '-'
}
