package limit_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

func TestMemoryNotes(t *testing.T) {
	t.Parallel()
	notes := &limit.MemoryNotes{}
	testNotes(t, notes, notes)
}

func TestRedisNotes(t *testing.T) {
	t.Parallel()
	addr := limittest.StartRedis(t)
	one, other := openRedis(t, addr, limit.RedisOptions{}), openRedis(t, addr, limit.RedisOptions{})
	testNotes(t, one.Notes(), other.Notes())
	// Nothing is kept for ever but which version it is, and the index.
	plain := plainClient(t, addr)
	if err := one.Notes().Put(t.Context(), limit.Note{Tag: "acme", ID: "x", Text: []byte("x"), Until: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if ttl := plain.PTTL(t.Context(), "sluice:{acme}:notes").Val(); ttl < 50*time.Minute {
		t.Errorf("the tenant's notes live %s; want an hour", ttl)
	}
}

func TestClusterNotes(t *testing.T) {
	t.Parallel()
	cluster := limittest.StartCluster(t, 3)
	store, err := limit.OpenRedis("redis+cluster://"+cluster.Nodes[0].Addr, limit.RedisOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	testNotes(t, store.Notes(), store.Notes())
}

func TestEmbeddedNotes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	store, err := limit.OpenEmbedded(path, limit.EmbeddedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	notes := store.Notes()
	testNotes(t, notes, notes)
	kept := limit.Note{Tag: "acme", ID: "kept", Text: []byte("for the next process"), Until: time.Now().Add(time.Hour).Truncate(time.Microsecond)}
	if err := notes.Put(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	if err := notes.Done(t.Context(), "told", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := notes.Put(t.Context(), kept); err == nil {
		t.Error("a store that is closed takes notes")
	}
	store, err = limit.OpenEmbedded(path, limit.EmbeddedOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	list, _, _, err := store.Notes().List(t.Context(), "")
	if err != nil || !cmp.Equal(list, []limit.Note{kept}) {
		t.Errorf("after a restart: %v, %v", list, err)
	}
	if holder, err := store.Notes().Claim(t.Context(), "told", "me", time.Minute); holder != limit.DoneOwner || err != nil {
		t.Errorf("after a restart what was done is %q's, %v", holder, err)
	}
}

// testNotes is what all Notes do. The two are of two processes, or the same.
func testNotes(t *testing.T, one, other limit.Notes) {
	t.Helper()
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(n limit.Notes, since string, want ...string) (version string) {
		t.Helper()
		found, version, changed, err := n.List(ctx, since)
		must(err)
		var got []string
		for _, note := range found {
			got = append(got, note.Tag+"/"+note.ID+"="+string(note.Text))
		}
		if !cmp.Equal(got, want) || !changed {
			t.Fatalf("changed %t, notes %q; want %q", changed, got, want)
		}
		return version
	}
	none := list(other, "")
	hour := time.Now().Add(time.Hour)
	must(one.Put(ctx, limit.Note{Tag: "b", ID: "1", Text: []byte("one"), Until: hour}))
	must(one.Put(ctx, limit.Note{Tag: "a", ID: "2", Text: []byte{0, 1, '}'}, Until: hour.Add(24 * time.Hour)}))
	must(one.Put(ctx, limit.Note{Tag: "a", ID: "1", Text: []byte("short"), Until: time.Now().Add(50 * time.Millisecond)}))
	must(one.Put(ctx, limit.Note{Tag: "b", ID: "1", Text: []byte("two"), Until: hour}))
	time.Sleep(60 * time.Millisecond)
	version := list(other, none, "a/2=\x00\x01}", "b/1=two")
	if _, same, changed, err := other.List(ctx, version); err != nil || changed || same != version {
		t.Errorf("nothing has changed, and version %q became %q, changed %t, %v", version, same, changed, err)
	}
	there, err := other.Remove(ctx, "a", "2")
	must(err)
	gone, err := one.Remove(ctx, "a", "2")
	must(err)
	if !there || gone {
		t.Errorf("removed %t, and once more %t; want true and false", there, gone)
	}
	list(one, version, "b/1=two")
	_, err = other.Remove(ctx, "b", "1")
	must(err)
	list(one, version)
	testClaims(t, one, other)
}

func testClaims(t *testing.T, one, other limit.Notes) {
	t.Helper()
	ctx := context.Background()
	claim := func(n limit.Notes, name, owner string, lease time.Duration, want string) {
		t.Helper()
		if holder, err := n.Claim(ctx, name, owner, lease); err != nil || holder != want {
			t.Errorf("%s claims %s: it is %q's, %v; want %q", owner, name, holder, err, want)
		}
	}
	claim(one, "deed", "ann", time.Hour, "ann")
	claim(other, "deed", "bob", time.Hour, "ann")
	claim(one, "deed", "ann", time.Hour, "ann")
	if err := one.Done(ctx, "deed", time.Hour); err != nil {
		t.Fatal(err)
	}
	claim(one, "deed", "ann", time.Hour, limit.DoneOwner)
	claim(other, "deed", "bob", time.Hour, limit.DoneOwner)
	claim(one, "left undone", "ann", 20*time.Millisecond, "ann")
	time.Sleep(40 * time.Millisecond)
	claim(other, "left undone", "bob", time.Hour, "bob")
	claim(one, "left undone", "ann", time.Hour, "bob")
}
