package limit

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// The buckets of notes, made when there is something to say:
//
//	bucket notes    TAG, a zero byte, ID -> until, text
//	bucket claims   name -> until, owner
//
// Times are 8 bytes, big-endian, microseconds since 1970.
const (
	notesBucket  bucketName = "notes"
	claimsBucket bucketName = "claims"
)

// EmbeddedNotes are the Notes in the file of an Embedded. What was said is on disk
// before a call returns.
type EmbeddedNotes struct {
	file    *soldFile
	version atomic.Int64
}

// Notes are those in the store's file. They end with the store.
func (e *Embedded) Notes() *EmbeddedNotes { return &EmbeddedNotes{file: e.file} }

// List implements Notes.
func (n *EmbeddedNotes) List(_ context.Context, since string) (list []Note, version string, changed bool, err error) {
	version = strconv.FormatInt(n.version.Load(), 10)
	if since == version {
		return nil, version, false, nil
	}
	now := time.Now()
	err = n.view(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(notesBucket))
		if b == nil {
			return nil
		}
		return b.ForEach(func(key, value []byte) error {
			tag, id, ok := bytes.Cut(key, []byte{0})
			until, text := stamped(value)
			if ok && now.Before(until) {
				list = append(list, Note{Tag: string(tag), ID: string(id), Text: slices.Clone(text), Until: until})
			}
			return nil
		})
	})
	return list, version, true, err
}

// stamped takes the time off what stands behind it; the zero time when there is none.
func stamped(value []byte) (until time.Time, rest []byte) {
	if len(value) < 8 {
		return time.Time{}, nil
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(value))), value[8:]
}

func stamp(until time.Time, rest []byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(until.UnixMicro())), rest...)
}

func noteKey(tag, id string) []byte { return []byte(tag + "\x00" + id) }

// Put implements Notes.
func (n *EmbeddedNotes) Put(_ context.Context, note Note) error {
	checkNote(note.Tag, note.ID)
	return n.update(notesBucket, func(b *bbolt.Bucket) error {
		return b.Put(noteKey(note.Tag, note.ID), stamp(note.Until, note.Text))
	})
}

// Remove implements Notes.
func (n *EmbeddedNotes) Remove(_ context.Context, tag, id string) (there bool, err error) {
	err = n.update(notesBucket, func(b *bbolt.Bucket) error {
		there = b.Get(noteKey(tag, id)) != nil
		return b.Delete(noteKey(tag, id))
	})
	return there && err == nil, err
}

// Claim implements Notes.
func (n *EmbeddedNotes) Claim(_ context.Context, name, owner string, lease time.Duration) (holder string, err error) {
	now := time.Now()
	err = n.update(claimsBucket, func(b *bbolt.Bucket) error {
		until, held := stamped(b.Get([]byte(name)))
		if holder = string(held); now.Before(until) && holder != owner {
			return nil
		}
		holder = owner
		return b.Put([]byte(name), stamp(now.Add(lease), []byte(owner)))
	})
	return holder, err
}

// Done implements Notes.
func (n *EmbeddedNotes) Done(_ context.Context, name string, life time.Duration) error {
	return n.update(claimsBucket, func(b *bbolt.Bucket) error {
		return b.Put([]byte(name), stamp(time.Now().Add(life), []byte(DoneOwner)))
	})
}

// update changes a bucket, and removes what is over in it: there is little.
func (n *EmbeddedNotes) update(name bucketName, change func(*bbolt.Bucket) error) error {
	err := guarded(func() error {
		return n.file.db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte(name))
			if err != nil {
				return err
			}
			if err := dropOver(b, time.Now()); err != nil {
				return err
			}
			return change(b)
		})
	})
	n.version.Add(1)
	if err != nil {
		return fmt.Errorf("%w: cannot write store %q: %w", ErrUnavailable, n.file.path, err)
	}
	return nil
}

func dropOver(b *bbolt.Bucket, now time.Time) error {
	var over [][]byte
	err := b.ForEach(func(key, value []byte) error {
		if until, _ := stamped(value); !now.Before(until) {
			over = append(over, key)
		}
		return nil
	})
	for _, key := range over {
		if err == nil {
			err = b.Delete(key)
		}
	}
	return err
}

func (n *EmbeddedNotes) view(look func(*bbolt.Tx) error) error {
	if err := guarded(func() error { return n.file.db.View(look) }); err != nil {
		return fmt.Errorf("%w: cannot read store %q: %w", ErrUnavailable, n.file.path, err)
	}
	return nil
}
