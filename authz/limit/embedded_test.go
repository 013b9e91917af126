package limit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"sluice/authz/limit"
	"sluice/authz/limit/limittest"
)

func TestEmbedded(t *testing.T) {
	t.Parallel()
	limittest.Run(t, func(t testing.TB) (limit.Store, *limittest.Clock) {
		clock := limittest.NewClock()
		store := openEmbedded(t, filepath.Join(t.TempDir(), "sluice.db"), limit.EmbeddedOptions{
			Memory: limit.MemoryOptions{Now: clock.Now, Grace: limittest.Grace},
		})
		return store, clock
	})
}

func openEmbedded(t testing.TB, path string, o limit.EmbeddedOptions) *limit.Embedded {
	t.Helper()
	store, err := limit.OpenEmbedded(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// monthly is a quota of 100 a month and 20 more, under a key of its own.
func monthly(key string, cost int64) limit.Op {
	return limit.Op{
		Tag: []byte("acme"), Key: []byte("sluice:{acme}:" + key), Kind: limit.Quota, Cost: cost,
		Max: 100, Overage: 20, Calendar: utcMonths,
	}
}

var utcMonths = limit.NewCalendar(limit.Month, time.UTC, 1)

func closeStore(t testing.TB, store limit.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func peekOne(t testing.TB, store limit.Store, op limit.Op) limit.State {
	t.Helper()
	states := make([]limit.State, 1)
	if err := store.Peek(t.Context(), []limit.Op{op}, states); err != nil {
		t.Fatalf("Peek: %v", err)
	}
	return states[0]
}

func TestEmbeddedRemembersWhatWasSold(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	store := openEmbedded(t, path, limit.EmbeddedOptions{})
	soft := monthly("soft", 7)
	soft.Soft = true
	named := monthly("named", 5)
	named.ID = []byte("request-1")
	takeOne(t, store, monthly("hard", 90))
	straddling := takeOne(t, store, monthly("hard", 15))
	takeOne(t, store, soft)
	takeOne(t, store, named)
	takeOne(t, store, monthly("gone", 3))
	back := monthly("hard", 1)
	back.Stamp = straddling.Stamp
	for range 2 { // the second is known, now and after the restart
		if err := store.Settle(t.Context(), []byte("end-1"), []limit.Op{back}, []int64{-2}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Reset(t.Context(), []limit.Op{monthly("gone", 1)}); err != nil {
		t.Fatal(err)
	}
	closeStore(t, store)

	store = openEmbedded(t, path, limit.EmbeddedOptions{})
	if err := store.Settle(t.Context(), []byte("end-1"), []limit.Op{back}, []int64{-2}); err != nil {
		t.Fatal(err)
	}
	takeOne(t, store, named)
	f := func(op limit.Op, used, over int64) {
		t.Helper()
		if s := peekOne(t, store, op); s.Used != used || s.Over != over {
			t.Errorf("%s: used %d, over %d; want %d, %d", op.Key, s.Used, s.Over, used, over)
		}
	}
	f(monthly("hard", 1), 103, 3)
	f(soft, 7, 0)
	f(named, 5, 0)
	f(monthly("gone", 1), 0, 0)
}

func TestEmbeddedKeepsWhatIsNotClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "sluice.db")
	store := openEmbedded(t, path, limit.EmbeddedOptions{FlushEvery: time.Hour})
	soft := monthly("soft", 7)
	soft.Soft = true
	takeOne(t, store, soft)
	takeOne(t, store, monthly("hard", 9))
	if s := store.Stats(); s.Waiting != 1 || s.Lag <= 0 || s.Commits != 1 || s.Err != nil {
		t.Errorf("stats %+v; want one quota waiting and one commit", s)
	}
	// A copy is what a crash leaves.
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, "left.db")
	if err := os.WriteFile(left, data, 0o600); err != nil {
		t.Fatal(err)
	}
	after := openEmbedded(t, left, limit.EmbeddedOptions{})
	if s := peekOne(t, after, monthly("hard", 1)); s.Used != 9 {
		t.Errorf("hard: used %d, want 9", s.Used)
	}
	if s := peekOne(t, after, soft); s.Used != 0 {
		t.Errorf("soft: used %d before the flush, want 0", s.Used)
	}
}

func TestEmbeddedFlushesSoft(t *testing.T) {
	t.Parallel()
	store := openEmbedded(t, filepath.Join(t.TempDir(), "sluice.db"), limit.EmbeddedOptions{FlushEvery: time.Millisecond})
	soft := monthly("soft", 7)
	soft.Soft = true
	takeOne(t, store, soft)
	for deadline := time.Now().Add(10 * time.Second); store.Stats().Waiting > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not flushed")
		}
	}
}

func TestEmbeddedIsOneProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	openEmbedded(t, path, limit.EmbeddedOptions{})
	_, err := limit.OpenEmbedded(path, limit.EmbeddedOptions{LockWait: 10 * time.Millisecond})
	want := fmt.Sprintf("cannot open store %q: another process has it; want one service for a file, and a Redis for several", path)
	if err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
}

func TestEmbeddedLeavesOtherFilesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := filepath.Join(dir, "good.db")
	store := openEmbedded(t, good, limit.EmbeddedOptions{})
	for i := range 400 {
		takeOne(t, store, softOp(fmt.Sprintf("%0100d", i), 1))
	}
	closeStore(t, store)
	bytesOf := func(path string) []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	database := func(name string, fill func(tx *bbolt.Tx) error) []byte {
		t.Helper()
		path := filepath.Join(dir, name)
		db, err := bbolt.Open(path, 0o600, nil)
		if err == nil {
			err = errors.Join(db.Update(fill), db.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		return bytesOf(path)
	}
	whole := bytesOf(good)
	holed := append([]byte(nil), whole...)
	clear(holed[4*os.Getpagesize():]) // behind both heads
	f := func(name string, data []byte, want string) {
		t.Helper()
		path := filepath.Join(dir, "bad-"+name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := limit.OpenEmbedded(path, limit.EmbeddedOptions{})
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v; want %q", name, err, want)
		}
		if string(bytesOf(path)) != string(data) {
			t.Errorf("%s: the file was changed", name)
		}
	}
	f("text", []byte("routes:\n"), "no store of Sluice's")
	f("page", make([]byte, 64<<10), "no store of Sluice's")
	f("cut", whole[:len(whole)/2], "damaged")
	f("short", whole[:100], "no store of Sluice's")
	f("holed", holed, "damaged")
	f("other", database("other.db", func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket([]byte("boxes"))
		return err
	}), "another program")
	f("later", database("later.db", func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("sluice"))
		if err != nil {
			return err
		}
		return b.Put([]byte("format"), []byte("2"))
	}), `format "2"; want "1"`)

	_, err := limit.OpenEmbedded(filepath.Join(dir, "nowhere", "sluice.db"), limit.EmbeddedOptions{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

func softOp(key string, cost int64) limit.Op {
	op := monthly(key, cost)
	op.Soft = true
	return op
}

func TestEmbeddedRemovesOldPeriods(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	clock := limittest.NewClock()
	o := limit.EmbeddedOptions{Memory: limit.MemoryOptions{Now: clock.Now}, FlushEvery: time.Millisecond}
	store := openEmbedded(t, path, o)
	old := monthly("old", 1)
	old.Calendar = limit.NewCalendar(limit.Hour, time.UTC, 1)
	takeOne(t, store, old)
	takeOne(t, store, monthly("now", 1))
	clock.Advance(26 * time.Hour)
	commits := store.Stats().Commits
	for deadline := time.Now().Add(10 * time.Second); store.Stats().Commits < commits+3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no flush")
		}
	}
	closeStore(t, store)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_ = db.View(func(tx *bbolt.Tx) error {
		quotas := tx.Bucket([]byte("quotas"))
		if quotas.Get(old.Key) != nil || quotas.Get(monthly("now", 1).Key) == nil {
			t.Error("want the old hour gone and this month kept")
		}
		return nil
	})
}

func TestEmbeddedSharesCommits(t *testing.T) {
	t.Parallel()
	store := openEmbedded(t, filepath.Join(t.TempDir(), "sluice.db"), limit.EmbeddedOptions{})
	op := monthly("shared", 1)
	op.Max = limit.Unlimited
	const clients, each = 64, 20
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			states := make([]limit.State, 1)
			for range each {
				if _, err := store.Take(t.Context(), []limit.Op{op}, states); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := store.Stats()
	t.Logf("%d charges in %d commits", clients*each, s.Commits)
	if s.Commits > clients*each/4 {
		t.Errorf("%d commits for %d charges", s.Commits, clients*each)
	}
	if used := peekOne(t, store, op).Used; used != clients*each {
		t.Errorf("used %d, want %d", used, clients*each)
	}
}

func TestEmbeddedAfterItsEnd(t *testing.T) {
	t.Parallel()
	store := openEmbedded(t, filepath.Join(t.TempDir(), "sluice.db"), limit.EmbeddedOptions{})
	closeStore(t, store)
	closeStore(t, store)
	_, err := store.Take(t.Context(), []limit.Op{monthly("hard", 1)}, make([]limit.State, 1))
	if !errors.Is(err, limit.ErrUnavailable) {
		t.Errorf("error %v; want ErrUnavailable", err)
	}
}
