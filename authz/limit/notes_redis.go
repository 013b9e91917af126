package limit

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// What Redis holds of notes:
//
//	sluice:{TAG}:notes              a hash of the tenant's notes: id -> until, text
//	sluice:{+notes}:index           a sorted set of the tenants that have some: until when
//	sluice:{+notes}:version         another text after every change
//	sluice:{+claim}:NAME            whose a thing is
//
// No counter has such a name: theirs have a subject behind one more colon, and +
// is in no tenant's.
const (
	noteIndex   = "sluice:{+notes}:index"
	noteVersion = "sluice:{+notes}:version"
	claimPrefix = "sluice:{+claim}:"
)

// noteTimeout is how long a call about notes may take when its context does not say.
const noteTimeout = 2 * time.Second

// RedisNotes are the Notes that many processes share.
type RedisNotes struct {
	client redis.UniversalClient
	write  *redis.Script
}

// Notes are those in the store's Redis. They end with the store.
func (r *Redis) Notes() *RedisNotes {
	text, err := lua.ReadFile("note.lua")
	if err != nil {
		panic("BUG: no note.lua")
	}
	return &RedisNotes{client: r.client, write: redis.NewScript(string(text))}
}

func notesKey(tag string) string { return "sluice:{" + tag + "}:notes" }

// List implements Notes.
func (n *RedisNotes) List(ctx context.Context, since string) (list []Note, version string, changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	version, err = n.client.Get(ctx, noteVersion).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, "", false, unavailable(ctx, err)
	}
	if version == "" {
		version = "none" // since the beginning, or since Redis forgot
	}
	if version == since {
		return nil, version, false, nil
	}
	now := time.Now()
	tags, err := n.client.ZRangeByScore(ctx, noteIndex, &redis.ZRangeBy{Min: strconv.FormatInt(now.UnixMilli(), 10), Max: "+inf"}).Result()
	if err != nil {
		return nil, "", false, unavailable(ctx, err)
	}
	list, err = n.read(ctx, tags, now)
	if err != nil {
		return nil, "", false, unavailable(ctx, err)
	}
	return inOrder(list), version, true, nil
}

// read gets the notes of some tenants, in one trip for each server.
func (n *RedisNotes) read(ctx context.Context, tags []string, now time.Time) (list []Note, err error) {
	replies := make([]*redis.MapStringStringCmd, len(tags))
	_, err = n.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, tag := range tags {
			replies[i] = p.HGetAll(ctx, notesKey(tag))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, tag := range tags {
		for id, value := range replies[i].Val() {
			if until, text := stamped([]byte(value)); now.Before(until) {
				list = append(list, Note{Tag: tag, ID: id, Text: text, Until: until})
			}
		}
	}
	return list, nil
}

// Put implements Notes.
func (n *RedisNotes) Put(ctx context.Context, note Note) error {
	checkNote(note.Tag, note.ID)
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	_, err := n.change(ctx, note.Tag, note.ID, stamp(note.Until, note.Text), note.Until)
	return err
}

// Remove implements Notes.
func (n *RedisNotes) Remove(ctx context.Context, tag, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	return n.change(ctx, tag, id, nil, time.Now())
}

// change writes a note and then tells everybody: who hears of it finds it.
func (n *RedisNotes) change(ctx context.Context, tag, id string, value []byte, until time.Time) (there bool, err error) {
	there, err = n.write.Run(ctx, n.client, []string{notesKey(tag)}, id, value, until.UnixMilli()).Bool()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, unavailable(ctx, err)
	}
	_, err = n.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if value != nil {
			p.ZAddGT(ctx, noteIndex, redis.Z{Score: float64(until.UnixMilli()), Member: tag})
		}
		p.ZRemRangeByScore(ctx, noteIndex, "-inf", strconv.FormatInt(time.Now().UnixMilli(), 10))
		p.Set(ctx, noteVersion, rand.Text(), 0)
		return nil
	})
	if err != nil {
		return false, unavailable(ctx, err)
	}
	return there, nil
}

// Claim implements Notes.
func (n *RedisNotes) Claim(ctx context.Context, name, owner string, lease time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	key := claimPrefix + name
	// A claim that ends between the two is tried once more.
	for range 2 {
		err := n.client.SetArgs(ctx, key, owner, redis.SetArgs{Mode: "NX", TTL: lease}).Err()
		if err == nil {
			return owner, nil
		}
		if !errors.Is(err, redis.Nil) {
			return "", unavailable(ctx, err)
		}
		holder, err := n.client.Get(ctx, key).Result()
		if err == nil && holder == owner {
			err = n.client.PExpire(ctx, key, lease).Err()
		}
		if err == nil {
			return holder, nil
		}
		if !errors.Is(err, redis.Nil) {
			return "", unavailable(ctx, err)
		}
	}
	return "", nil // somebody's, for a moment ago it was
}

// Done implements Notes.
func (n *RedisNotes) Done(ctx context.Context, name string, life time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, noteTimeout)
	defer cancel()
	if err := n.client.Set(ctx, claimPrefix+name, DoneOwner, life).Err(); err != nil {
		return unavailable(ctx, err)
	}
	return nil
}
