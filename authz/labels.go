package authz

import (
	"strings"
	"sync"
)

const (
	// maxLabels is how many names of routes, plans and limits appear in metrics
	// while the process lives; later ones are labelOther. Names come from policies
	// only, so nobody who sends requests can use them up.
	maxLabels = 4096
	// otherName stands for all that a metric has no room for.
	otherName = "other"
)

// The labels that are always there.
const (
	labelNone  uint32 = iota // the empty name
	labelOther               // otherName
)

// labels numbers the names that metrics show. Decisions count by number; names
// are looked up when a policy is swapped in, and when metrics are read. A name
// keeps its number, so that what was counted goes on across policies.
type labels struct {
	mu    sync.Mutex
	ids   map[string]uint32
	names []string
}

func newLabels() *labels {
	return &labels{ids: map[string]uint32{"": labelNone, otherName: labelOther}, names: []string{"", otherName}}
}

// id is the number of a name.
func (l *labels) id(name string) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if id, ok := l.ids[name]; ok {
		return id
	}
	if len(l.names) >= maxLabels {
		return labelOther
	}
	id := uint32(len(l.names))
	l.ids[name] = id
	l.names = append(l.names, labelText(name))
	return id
}

// all are the names by number.
func (l *labels) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.names[:len(l.names):len(l.names)]
}

// labelText is a name as a label's value: valid UTF-8, of a bearable length.
func labelText(name string) string {
	const longest = 128
	if len(name) > longest {
		name = name[:longest]
	}
	return strings.ToValidUTF8(name, "\ufffd")
}
