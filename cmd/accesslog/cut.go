package accesslog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the longest line that is read, in bytes; a longer one is counted and
// passed over.
const MaxLine = 64 << 10

// stream is one source on its way: a goroutine cuts it into batches, which come
// back parsed and in order.
type stream struct {
	log     *Log
	source  Source
	layout  *layout
	batches chan *batch // in the source's order
	current *batch      // whose entries are being handed out
	next    int         // of them
	ended   bool
}

// run cuts the source until its end, or until the log is closed.
func (s *stream) run() {
	defer close(s.batches)
	if err := s.cut(); err != nil {
		b := s.log.batch()
		b.source, b.err = s.source.Name, err
		b.done <- struct{}{}
		s.send(b, false)
	}
}

func (s *stream) cut() error {
	from, err := s.source.open(&s.log.read)
	if err != nil {
		return err
	}
	defer from.Close()
	c := cutter{stream: s, line: 1}
	for {
		more, err := c.batch(from)
		if err != nil {
			return fmt.Errorf("cannot read log %q: %w", s.source.Name, pathCause(err))
		}
		if !more {
			return nil
		}
	}
}

// cutter keeps what is left over between two batches.
type cutter struct {
	*stream
	rest []byte // the beginning of a line
	line int64
	long bool // in the middle of a line that is too long
}

// batch reads and sends one batch. It returns false at the end of the source.
func (c *cutter) batch(from io.Reader) (more bool, err error) {
	b := c.log.batch()
	b.source, b.line = c.source.Name, c.line
	b.text = append(b.text, c.rest...)
	c.rest = c.rest[:0]
	start := len(b.text)
	n, err := fill(from, b.text[start:cap(b.text)])
	b.text = b.text[:start+n]
	end := errors.Is(err, io.EOF)
	if err != nil && !end {
		return false, err
	}
	if !end {
		c.keepRest(b)
	}
	if c.layout == nil {
		f, err := c.format(b.text)
		if err != nil {
			return false, err
		}
		c.layout = newLayout(f, c.log.vars, c.log.now)
	}
	b.layout = c.layout
	c.line += int64(bytes.Count(b.text, []byte{'\n'}))
	return c.send(b, true) && !end, nil
}

// fill reads until buf is full. Unlike io.ReadFull it tells an end from a source
// that was cut short.
func fill(from io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = from.Read(buf[n:])
		n += m
	}
	return n, err
}

// keepRest takes the beginning of a line off the end of the batch. What is left of
// a line that is too long is passed over with those behind it.
func (c *cutter) keepRest(b *batch) {
	if c.long {
		i := bytes.IndexByte(b.text, '\n')
		if i < 0 {
			b.text = b.text[:0]
			return
		}
		// The newline stays, so that lines are counted.
		b.text = append(b.text[:0], b.text[i:]...)
		c.long = false
	}
	i := bytes.LastIndexByte(b.text, '\n') + 1
	if len(b.text)-i > MaxLine {
		b.bad(TooLong, c.line+int64(bytes.Count(b.text, []byte{'\n'})))
		b.lines++
		c.long = true
		b.text = b.text[:i]
		return
	}
	c.rest = append(c.rest, b.text[i:]...)
	b.text = b.text[:i]
}

// format is the one that was said, or the one that the first lines tell.
func (c *cutter) format(text []byte) (*Format, error) {
	if c.log.format != nil {
		return c.log.format, nil
	}
	return detect(text, c.log.now)
}

// send hands a batch to whoever reads the log, and to a worker. It returns false
// when nobody reads any more.
func (s *stream) send(b *batch, parse bool) bool {
	select {
	case s.batches <- b:
	case <-s.log.quit:
		return false
	}
	if !parse {
		return true
	}
	select {
	case s.log.jobs <- b:
	case <-s.log.quit:
		return false
	}
	return true
}
