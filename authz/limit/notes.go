package limit

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Note is something that operators said about a tenant at run time. What it says
// is not the store's matter.
type Note struct {
	// Tag is the tenant, as the tags of his counters are; ID tells his notes apart.
	// Neither is empty, and an ID is at most MaxID bytes long.
	Tag, ID string
	Text    []byte
	// Until is when the note may be thrown away.
	Until time.Time
}

// Notes keep what is said at run time, where the counters are and as durable as
// they are: what all who share the counters must know. They are for people's
// changes, a few a minute at most, and no decision waits for them.
//
// Errors wrap ErrUnavailable; what failed may have happened all the same.
// Implementations are safe for concurrent use.
type Notes interface {
	// List is every note that is not over, in order, and a version that changes with
	// every change. When the version is still since, it lists none: changed is false.
	List(ctx context.Context, since string) (notes []Note, version string, changed bool, err error)
	// Put writes a note, in place of the one with its Tag and ID.
	Put(ctx context.Context, n Note) error
	// Remove takes a note away. It tells whether there was one.
	Remove(ctx context.Context, tag, id string) (bool, error)
	// Claim lets one of many do what is called name: it is owner's for so long,
	// or until Done. It tells whose it is; DoneOwner when it was done.
	Claim(ctx context.Context, name, owner string, lease time.Duration) (holder string, err error)
	// Done says that it was done, and is not to be done again for so long.
	Done(ctx context.Context, name string, life time.Duration) error
}

// DoneOwner is whose a thing is that was done.
const DoneOwner = "done"

// MemoryNotes are the Notes of one process, and end with it. The zero value is
// ready.
type MemoryNotes struct {
	// Now is for tests: it stands in for time.Now.
	Now func() time.Time

	mu      sync.Mutex
	notes   map[[2]string]Note
	claims  map[string]claim
	version int
}

// claim is whose a thing is.
type claim struct {
	owner string
	until time.Time
}

func (m *MemoryNotes) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return time.Now()
}

// List implements Notes.
func (m *MemoryNotes) List(_ context.Context, since string) ([]Note, string, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	version := strconv.Itoa(m.version)
	if since == version {
		return nil, version, false, nil
	}
	var list []Note
	now := m.now()
	for name, n := range m.notes {
		if !now.Before(n.Until) {
			delete(m.notes, name)
			continue
		}
		list = append(list, n)
	}
	return inOrder(list), version, true, nil
}

func inOrder(list []Note) []Note {
	slices.SortFunc(list, func(a, b Note) int {
		if c := strings.Compare(a.Tag, b.Tag); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// Put implements Notes.
func (m *MemoryNotes) Put(_ context.Context, n Note) error {
	checkNote(n.Tag, n.ID)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.notes == nil {
		m.notes = map[[2]string]Note{}
	}
	n.Text = slices.Clone(n.Text)
	m.notes[[2]string{n.Tag, n.ID}] = n
	m.version++
	return nil
}

// checkNote stops what is a programmer's mistake.
func checkNote(tag, id string) {
	if tag == "" || id == "" || len(id) > MaxID {
		panic("BUG: a note without a name, or with a long one")
	}
}

// Remove implements Notes.
func (m *MemoryNotes) Remove(_ context.Context, tag, id string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := [2]string{tag, id}
	if _, ok := m.notes[name]; !ok {
		return false, nil
	}
	delete(m.notes, name)
	m.version++
	return true, nil
}

// Claim implements Notes.
func (m *MemoryNotes) Claim(_ context.Context, name, owner string, lease time.Duration) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.sweep(now)
	if c, ok := m.claims[name]; ok && c.owner != owner {
		return c.owner, nil
	}
	m.claims[name] = claim{owner, now.Add(lease)}
	return owner, nil
}

// sweep forgets the claims that are over: there are few.
func (m *MemoryNotes) sweep(now time.Time) {
	if m.claims == nil {
		m.claims = map[string]claim{}
	}
	for name, c := range m.claims {
		if !now.Before(c.until) {
			delete(m.claims, name)
		}
	}
}

// Done implements Notes.
func (m *MemoryNotes) Done(_ context.Context, name string, life time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.sweep(now)
	m.claims[name] = claim{DoneOwner, now.Add(life)}
	return nil
}
