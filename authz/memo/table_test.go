package memo

import (
	"sync"
	"testing"
	"time"
)

func entry(place, n byte, until time.Time) *Entry[byte] {
	e := &Entry[byte]{Until: until, Value: n}
	e.Key[0], e.Key[8], e.Key[31] = place, n, n
	return e
}

// A full table forgets, and never finds what it does not hold.
func TestTable(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	table := New[byte]()
	for n := range byte(8) {
		e := entry(1, n, now.Add(time.Hour))
		table.Add(e, now)
		if table.Find(&e.Key) != e {
			t.Fatalf("entry %d is not found at once", n)
		}
	}
	found := 0
	for n := range byte(8) {
		if e := table.Find(&entry(1, n, now).Key); e != nil && e.Value == n {
			found++
		}
	}
	if found != ways {
		t.Errorf("%d entries of one set are found, want %d", found, ways)
	}
	if table.Find(&entry(2, 7, now).Key) != nil {
		t.Error("an entry of another set is found")
	}
	// What is over makes room first, and is found until then.
	for n := range byte(4) {
		table.Add(entry(4, n, now.Add(time.Duration(1+n)*time.Minute)), now)
	}
	later := now.Add(90 * time.Second)
	if table.Find(&entry(4, 0, now).Key) == nil {
		t.Error("what is over is gone before its place is wanted")
	}
	table.Add(entry(4, 101, later.Add(time.Hour)), later)
	if table.Find(&entry(4, 0, now).Key) != nil || table.Find(&entry(4, 1, now).Key) == nil {
		t.Error("not the entry that was over made room")
	}
	// A newer entry takes the place of the older one.
	table.Add(&Entry[byte]{Key: entry(4, 3, now).Key, Until: later.Add(time.Hour), Value: 33}, later)
	if e := table.Find(&entry(4, 3, now).Key); e == nil || e.Value != 33 {
		t.Errorf("after another of its key: %v", e)
	}
	table.Drop(&entry(4, 3, now).Key)
	if table.Find(&entry(4, 3, now).Key) != nil || table.Find(&entry(4, 101, now).Key) == nil {
		t.Error("not what was dropped is gone")
	}
	table.Clear()
	if table.Find(&entry(4, 101, now).Key) != nil {
		t.Error("something is left of what was cleared")
	}
}

// All are those that are there, and no more are looked at than are wanted.
func TestTableAll(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	table := New[byte]()
	for i := range byte(100) {
		table.Add(entry(i, i, now.Add(time.Hour)), now)
	}
	gone := entry(7, 7, now)
	table.Drop(&gone.Key)
	seen := map[Key]bool{}
	for e := range table.All() {
		seen[e.Key] = true
	}
	if len(seen) != 99 || seen[gone.Key] {
		t.Errorf("%d are there, want 99", len(seen))
	}
	n := 0
	for range table.All() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d were looked at", n)
	}
}

func TestTableTogether(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	table := New[byte]()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 20_000 {
				e := entry(byte(i%3), byte(i%16), now.Add(time.Hour))
				table.Add(e, now)
				if found := table.Find(&e.Key); found != nil && found.Value != e.Value {
					t.Errorf("%d is found as %d", e.Value, found.Value)
				}
				if i%5 == 0 {
					table.Drop(&e.Key)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkFind(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	table := New[byte]()
	e := entry(1, 1, now.Add(time.Hour))
	table.Add(e, now)
	b.ReportAllocs()
	for b.Loop() {
		if table.Find(&e.Key) == nil {
			b.Fatal("not found")
		}
	}
}
