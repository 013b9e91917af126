package accesslog

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Source is a log: a file, or standard input. What is packed by gzip or zstd is
// unpacked, whatever it is called.
type Source struct {
	Name string
	// Reader is where it comes from; nil: Name is the path of a file.
	Reader io.Reader
}

// opened is a source that is being read.
type opened struct {
	io.Reader
	closers []func() error
}

// open opens a source. Bytes are counted as they come, before they are unpacked.
func (s Source) open(read *atomic.Int64) (*opened, error) {
	o := &opened{}
	raw := s.Reader
	if raw == nil {
		f, err := os.Open(s.Name)
		if err != nil {
			return nil, fmt.Errorf("cannot read log %q: %w", s.Name, pathCause(err))
		}
		o.closers = append(o.closers, f.Close)
		raw = f
	}
	buffered := bufio.NewReaderSize(&counted{raw, read}, 64<<10)
	unpacked, err := o.unpack(buffered)
	if err != nil {
		o.Close()
		return nil, fmt.Errorf("cannot unpack log %q: %w", s.Name, err)
	}
	o.Reader = unpacked
	return o, nil
}

// unpack looks at the first bytes.
func (o *opened) unpack(r *bufio.Reader) (io.Reader, error) {
	magic, err := r.Peek(4)
	if err != nil && err != io.EOF {
		return nil, pathCause(err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		o.closers = append(o.closers, z.Close)
		return z, nil
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		if err != nil {
			return nil, err
		}
		o.closers = append(o.closers, func() error { z.Close(); return nil })
		return z, nil
	}
	return r, nil
}

// Close closes what open opened. The log has been read: errors tell nothing.
func (o *opened) Close() {
	for _, c := range o.closers {
		_ = c()
	}
}

// size is how long the source is, 0 when nobody knows before.
func (s Source) size() int64 {
	if s.Reader != nil {
		return 0
	}
	info, err := os.Stat(s.Name)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// counted counts bytes.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// pathCause strips the verb and path that a *os.PathError repeats.
func pathCause(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err
	}
	return err
}
