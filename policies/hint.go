package policies

import (
	"fmt"
	"slices"
	"strings"
)

// didYouMean is the end of a message that names the known word closest to an
// unknown one, or nothing when none is close.
func didYouMean(text string, known []string) string {
	if near := nearest(text, known); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// nearest is the known word that a slip of the keyboard could have turned into
// text, or one of the same parts in another order.
func nearest(text string, known []string) string {
	best, most := "", max(1, len(text)/3)
	for _, k := range known {
		d := distance(fold(text), fold(k))
		if slices.Equal(parts(text), parts(k)) {
			d = 0
		}
		if d < most || d == most && best == "" {
			best, most = k, d
		}
	}
	return best
}

// fold makes spellings alike that differ in case and in how words are joined.
func fold(s string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
}

// parts are the words of a key in the order of the alphabet.
func parts(s string) []string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !alnum(r) })
	slices.Sort(words)
	return words
}

// distance counts the letters to insert, drop, change or swap with a neighbour
// to turn a into b.
func distance(a, b string) int {
	const long = 64 // no word of ours is longer
	if len(a) > long || len(b) > long {
		return long
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(last[j]+1, row[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
