package accesslog

import "bytes"

// batch is a piece of a source: whole lines, and what was read out of them.
type batch struct {
	source  string
	layout  *layout
	text    []byte // the lines; values are decoded in place
	spans   []span
	entries []Entry
	line    int64         // number of the first line
	done    chan struct{} // gets one when the batch is parsed
	live    int           // entries that nobody has seen yet
	err     error         // the source failed behind this batch

	lines    int64 // that are not blank
	whole    int64 // with a time in whole seconds
	timed    int64 // with a $request_time
	repaired Tally
	problems [problems]Tally
}

// Tally counts lines, and says where the first one is.
type Tally struct {
	Lines  int64
	Source string
	Line   int64
}

func (t *Tally) add(n int64, source string, line int64) {
	if t.Lines == 0 {
		t.Source, t.Line = source, line
	}
	t.Lines += n
}

func (t *Tally) join(o Tally) {
	if o.Lines > 0 {
		t.add(o.Lines, o.Source, o.Line)
	}
}

func (b *batch) bad(p Problem, line int64) { b.problems[p].add(1, b.source, line) }

func (b *batch) repair(line int64) { b.repaired.add(1, b.source, line) }

// parseAll reads every line of the batch.
func (b *batch) parseAll() {
	line := b.line
	for at := 0; at < len(b.text); line++ {
		end := len(b.text)
		if i := bytes.IndexByte(b.text[at:], '\n'); i >= 0 {
			end = at + i
		}
		b.parse(at, end, line)
		at = end + 1
	}
	b.live = len(b.entries)
}

// reset makes the batch ready for other lines, and keeps its memory.
func (b *batch) reset() {
	*b = batch{text: b.text[:0], spans: b.spans[:0], entries: b.entries[:0], done: b.done}
}
