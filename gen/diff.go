package gen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kind is how a file in a directory differs from what was rendered.
type Kind string

// The kinds of changes.
const (
	Missing   Kind = "missing"   // it is not there
	Different Kind = "different" // its content is another
	Orphan    Kind = "orphan"    // an earlier rendering wrote it, this one does not
)

// Change is one file that differs.
type Change struct {
	Name string
	Kind Kind
	// Text shows the first lines that differ, with a few around them; for a
	// missing file and an orphan it is empty.
	Text string
}

// String is the change for people.
func (c Change) String() string {
	if c.Text == "" {
		return fmt.Sprintf("%s: %s", c.Name, c.Kind)
	}
	return fmt.Sprintf("%s: %s\n%s", c.Name, c.Kind, c.Text)
}

// Diff compares a directory with the files, and returns what Write would
// change, sorted by name.
func (f Files) Diff(dir string) ([]Change, error) {
	var changes []Change
	for _, name := range f.Names() {
		have, err := os.ReadFile(place(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			changes = append(changes, Change{Name: name, Kind: Missing})
		case err != nil:
			return nil, fmt.Errorf("cannot read %q: %w", name, err)
		case !bytes.Equal(have, f[name]):
			changes = append(changes, Change{name, Different, firstDifference(string(have), string(f[name]))})
		}
	}
	old, err := orphans(dir, f)
	if err != nil {
		return nil, err
	}
	for _, name := range old {
		changes = append(changes, Change{Name: name, Kind: Orphan})
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Name, b.Name) })
	return changes, nil
}

// orphans are the files of an earlier rendering that this one does not have:
// those its manifest lists, and any other file of ours below sluice/.
func orphans(dir string, f Files) ([]string, error) {
	found := map[string]bool{}
	content, err := os.ReadFile(place(dir, manifestName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read %q: %w", manifestName, err)
	}
	for _, name := range listed(content) {
		if _, err := os.Lstat(place(dir, name)); err == nil {
			found[name] = true
		}
	}
	root := place(dir, "sluice")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return fs.SkipAll
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		head, err := os.ReadFile(path)
		if err != nil || !stamped(head) {
			return err
		}
		name, err := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot look through %q: %w", root, err)
	}
	var names []string
	for name := range found {
		if _, wanted := f[name]; !wanted {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// firstDifference shows where two texts first differ, as diff -u would.
func firstDifference(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	const around, most = 2, 8
	var out strings.Builder
	fmt.Fprintf(&out, "@@ line %d @@\n", start+1)
	for _, l := range a[max(0, start-around):start] {
		fmt.Fprintf(&out, " %s\n", l)
	}
	for _, l := range a[start:min(endA, start+most)] {
		fmt.Fprintf(&out, "-%s\n", l)
	}
	for _, l := range b[start:min(endB, start+most)] {
		fmt.Fprintf(&out, "+%s\n", l)
	}
	if endA > start+most || endB > start+most {
		out.WriteString(" …\n")
	}
	return out.String()
}
