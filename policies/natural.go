package policies

import (
	"cmp"
	"maps"
	"slices"
)

// CompareNatural orders names as people count: p2 before p10.
func CompareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		if digit(rune(x[0])) && digit(rune(y[0])) {
			nx, restX := number(x)
			ny, restY := number(y)
			if c := cmp.Or(cmp.Compare(len(nx), len(ny)), cmp.Compare(nx, ny)); c != 0 {
				return c
			}
			x, y = restX, restY
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	// Names that differ in leading zeros alone must still differ.
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// number cuts the digits off the front of s, without leading zeros.
func number(s string) (digits, rest string) {
	end := 0
	for end < len(s) && digit(rune(s[end])) {
		end++
	}
	digits = s[:end]
	for len(digits) > 1 && digits[0] == '0' {
		digits = digits[1:]
	}
	return digits, s[end:]
}

// sortedKeys are the keys of a map in natural order.
func sortedKeys[K ~string, V any](m map[K]V) []K {
	return slices.SortedFunc(maps.Keys(m), func(a, b K) int { return CompareNatural(string(a), string(b)) })
}
