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
	b.dropLeaps()
	b.live = len(b.entries)
}

// leap is how far one line may be ahead of both its neighbours, in microseconds.
const leap = 24 * 3600 * second

// dropLeaps takes out single lines whose time lies far ahead of those around it: a
// clock was wrong for a moment, and all that follows would be late.
func (b *batch) dropLeaps() {
	kept := b.entries[:0]
	for i := range b.entries {
		e := b.entries[i]
		if len(kept) > 0 && i+1 < len(b.entries) && e.End-kept[len(kept)-1].End > leap && e.End-b.entries[i+1].End > leap {
			b.bad(Leap, e.Line)
			continue
		}
		kept = append(kept, e)
	}
	b.entries = kept
}

// reset makes the batch ready for other lines, and keeps its memory.
func (b *batch) reset() {
	*b = batch{text: b.text[:0], spans: b.spans[:0], entries: b.entries[:0], done: b.done}
}
