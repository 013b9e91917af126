package limit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// soldFile is the file of an Embedded: what was sold.
//
//	bucket sluice   format -> "1"
//	bucket quotas   the counter's key -> start, end, used, over, TAG
//	bucket marks    time, the mark's name -> stamp, TAG
//
// Numbers are 8 bytes, big-endian. Marks begin with their time, so that new ones
// are written side by side at the end, and old ones are found at the beginning.
type soldFile struct {
	db   *bbolt.DB
	path string
	hand []byte // the key after which the next search for old periods begins
}

const (
	soldFormat = "1"
	quotaSize  = 4 * 8 // before the tag
	// sweepQuotas is how many counters a flush looks at for old periods, and
	// sweepMarks how many old marks a commit removes: more than come.
	sweepQuotas = 2000
	sweepMarks  = 2000
	// keepPeriod is how long after its end a period is kept: a machine whose clock
	// was ahead for a while has not lost what was sold today.
	keepPeriod = 24 * time.Hour
)

// errForeign is the cause when a file is a bbolt database, and none of ours.
var errForeign = errors.New("it is a database of another program; nothing was changed")

// bucket names a bucket of the file.
type bucketName string

const (
	sluiceBucket bucketName = "sluice"
	quotasBucket bucketName = "quotas"
	marksBucket  bucketName = "marks"
)

// openSoldFile opens the file or makes it, and waits so long for a process that
// has it.
func openSoldFile(path string, wait time.Duration) (*soldFile, error) {
	f := &soldFile{path: path}
	err := guarded(func() (err error) {
		f.db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: wait, FreelistType: bbolt.FreelistMapType})
		if err != nil {
			return err
		}
		return f.claim()
	})
	if err == nil {
		return f, nil
	}
	if f.db != nil {
		_ = f.db.Close()
	}
	return nil, openError(path, err)
}

func openError(path string, err error) error {
	var pathError *fs.PathError
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("cannot open store %q: another process has it; want one service for a file, and a Redis for several", path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return fmt.Errorf("cannot open store %q: it is no store of Sluice's, or is damaged (%w); nothing was changed", path, err)
	case errors.As(err, &pathError):
		return fmt.Errorf("cannot open store %q: %w", path, pathError.Err)
	}
	return fmt.Errorf("cannot open store %q: %w", path, err)
}

// claim checks that the file is ours, or makes an empty one so.
func (f *soldFile) claim() error {
	empty := false
	err := f.db.View(func(tx *bbolt.Tx) error {
		name, _ := tx.Cursor().First()
		empty = name == nil
		return checkFormat(tx)
	})
	if !empty {
		return err
	}
	return f.db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []bucketName{sluiceBucket, quotasBucket, marksBucket} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return tx.Bucket([]byte(sluiceBucket)).Put([]byte("format"), []byte(soldFormat))
	})
}

func checkFormat(tx *bbolt.Tx) error {
	b := tx.Bucket([]byte(sluiceBucket))
	if b == nil {
		return errForeign
	}
	if format := b.Get([]byte("format")); string(format) != soldFormat {
		return fmt.Errorf("it has format %q; want %q; nothing was changed", format, soldFormat)
	}
	if tx.Bucket([]byte(quotasBucket)) == nil || tx.Bucket([]byte(marksBucket)) == nil {
		return errors.New("it is damaged: a part is missing; nothing was changed")
	}
	return nil
}

// guarded turns what bbolt does with damaged pages into an error: it panics, or
// reads past the end of the file.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it is damaged (%v)", r)
		}
	}()
	return f()
}

// load tells of every quota and mark that still counts.
func (f *soldFile) load(at moment, quotas func(key []byte, s soldQuota), marks func(m soldMark)) error {
	err := guarded(func() error {
		return f.db.View(func(tx *bbolt.Tx) error {
			err := tx.Bucket([]byte(quotasBucket)).ForEach(func(key, value []byte) error {
				s, ok := decodeQuota(value)
				if !ok {
					return fmt.Errorf("it is damaged: no quota can be what %q holds; nothing was changed", key)
				}
				if s.end > at.wall {
					quotas(key, s)
				}
				return nil
			})
			if err != nil {
				return err
			}
			return tx.Bucket([]byte(marksBucket)).ForEach(func(key, value []byte) error {
				m, ok := decodeMark(key, value)
				if !ok {
					return errors.New("it is damaged: a mark cannot be read; nothing was changed")
				}
				if m.knows(at.now) {
					marks(m)
				}
				return nil
			})
		})
	})
	if err != nil {
		return fmt.Errorf("cannot open store %q: %w", f.path, err)
	}
	return nil
}

// write commits a batch, and removes some of what no longer counts. sweep also
// looks for old periods.
func (f *soldFile) write(b *batch, at moment, sweep bool) error {
	err := guarded(func() error {
		return f.db.Update(func(tx *bbolt.Tx) error {
			quotas, marks := tx.Bucket([]byte(quotasBucket)), tx.Bucket([]byte(marksBucket))
			if err := putQuotas(quotas, b.quotas); err != nil {
				return err
			}
			for i := range b.marks {
				if err := marks.Put(encodeMark(&b.marks[i])); err != nil {
					return err
				}
			}
			if err := dropMarks(marks, at); err != nil || !sweep {
				return err
			}
			return f.dropQuotas(quotas, at)
		})
	})
	if err != nil {
		return fmt.Errorf("%w: cannot write store %q: %w", ErrUnavailable, f.path, err)
	}
	return nil
}

func putQuotas(bucket *bbolt.Bucket, sold map[string]soldQuota) (err error) {
	for key, s := range sold {
		if s.end == 0 {
			err = bucket.Delete([]byte(key))
		} else {
			err = bucket.Put([]byte(key), encodeQuota(&s))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropMarks removes the oldest marks that no longer count.
func dropMarks(bucket *bbolt.Bucket, at moment) error {
	c := bucket.Cursor()
	for range sweepMarks {
		key, _ := c.First()
		if len(key) < 8 || int64(binary.BigEndian.Uint64(key))+2*remember > at.now {
			return nil
		}
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// dropQuotas looks at some counters, and removes those of periods long over.
func (f *soldFile) dropQuotas(bucket *bbolt.Bucket, at moment) error {
	var old [][]byte
	c := bucket.Cursor()
	key, value := c.Seek(f.hand)
	for n := 0; n < sweepQuotas && key != nil; n++ {
		if s, ok := decodeQuota(value); ok && s.end+keepPeriod.Microseconds() <= at.wall {
			old = append(old, key)
		}
		key, value = c.Next()
	}
	f.hand = append(f.hand[:0], key...)
	for _, key := range old {
		if err := bucket.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

func (f *soldFile) close() error { return f.db.Close() }

func encodeQuota(s *soldQuota) []byte {
	value := make([]byte, 0, quotaSize+len(s.tag))
	for _, n := range []int64{s.start, s.end, s.used, s.over} {
		value = binary.BigEndian.AppendUint64(value, uint64(n))
	}
	return append(value, s.tag...)
}

func decodeQuota(value []byte) (s soldQuota, ok bool) {
	if len(value) < quotaSize {
		return s, false
	}
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(value[i*8:])) }
	s.start, s.end, s.used, s.over = number(0), number(1), number(2), number(3)
	s.tag = string(value[quotaSize:])
	return s, s.start < s.end && s.used >= 0 && s.used <= MaxCount && s.over >= 0 && s.over <= s.used
}

func encodeMark(m *soldMark) (key, value []byte) {
	key = binary.BigEndian.AppendUint64(nil, uint64(m.time))
	value = binary.BigEndian.AppendUint64(nil, uint64(m.stamp))
	return append(key, m.name...), append(value, m.tag...)
}

func decodeMark(key, value []byte) (m soldMark, ok bool) {
	if len(key) < 8 || len(value) < 8 {
		return m, false
	}
	m.time, m.stamp = int64(binary.BigEndian.Uint64(key)), int64(binary.BigEndian.Uint64(value))
	m.name, m.tag = string(key[8:]), string(value[8:])
	return m, true
}

// sizeOf is how many bytes the file has.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
