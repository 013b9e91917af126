package policies

import (
	"fmt"
	"iter"
)

// place is where something stands: a path, and a line of a list file when it
// came from one.
type place struct {
	path string
	file FileName
	line int
}

// where is a place for the middle of a message.
func (f *findings) where(at place) string {
	if at.file != "" {
		return fmt.Sprintf("%s:%d", f.policy.fileName(at.file), at.line)
	}
	return f.at(at.path)
}

// from is the line of a list file that an entry came from, in parentheses and
// with a space before; nothing for an entry of the policy itself.
func (f *findings) from(at place) string {
	if at.file == "" {
		return ""
	}
	return " (" + f.where(at) + ")"
}

// places are the values of a list, each with its place.
func places[T any](path string, list List[T]) iter.Seq2[T, place] {
	return func(yield func(T, place) bool) {
		for i, e := range list {
			at := place{path: elem(path, i), file: e.File}
			if e.File == "" {
				if !yield(e.Value, at) {
					return
				}
				continue
			}
			for _, it := range e.Items {
				at.line = it.Line
				if !yield(it.Value, at) {
					return
				}
			}
		}
	}
}

// firsts remembers where each thing was seen first.
type firsts[K comparable] map[K]place

// taken is where k was seen before; else it notes the place.
func (m firsts[K]) taken(k K, at place) (place, bool) {
	first, ok := m[k]
	if !ok {
		m[k] = at
	}
	return first, ok
}

// repeats warns about a list that says the same thing more than once: one
// warning for the list, however long.
func repeats[T comparable](f *findings, path string, list List[T]) {
	seen := firsts[T]{}
	var value T
	var first, again place
	times := 0
	for v, at := range places(path, list) {
		before, twice := seen.taken(v, at)
		if !twice {
			continue
		}
		if times == 0 {
			value, first, again = v, before, at
		}
		times++
	}
	switch {
	case times == 0:
	case again.file != "":
		f.warnf(again.path, ruleEntryTwice, "%v is here twice, %s and %s%s; want it once", value, f.where(first), f.where(again), more(times-1))
	default:
		f.warnf(again.path, ruleEntryTwice, "%v is here already: %s%s; want it once", value, f.where(first), more(times-1))
	}
}

// more says that a finding stands for others of its kind.
func more(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more like it)", n)
}
