package policies

import "sort"

// displaced are the entries of new that stand elsewhere among those that old has
// too: the fewest that must move to turn one order into the other. Entries are
// different from each other.
func displaced(old, new []string) []string {
	at := make(map[string]int, len(old))
	for i, name := range old {
		at[name] = i
	}
	var places []int // in old, in the order of new
	var names []string
	for _, name := range new {
		if i, ok := at[name]; ok {
			places, names = append(places, i), append(names, name)
		}
	}
	stay := rising(places)
	var out []string
	for i, name := range names {
		if !stay[i] {
			out = append(out, name)
		}
	}
	return out
}

// rising marks one longest rising subsequence.
func rising(list []int) []bool {
	var tails []int // indexes of list: the smallest end of a run of each length
	before := make([]int, len(list))
	for i, v := range list {
		n := sort.Search(len(tails), func(k int) bool { return list[tails[k]] >= v })
		before[i] = -1
		if n > 0 {
			before[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	in := make([]bool, len(list))
	if len(tails) > 0 {
		for i := tails[len(tails)-1]; i >= 0; i = before[i] {
			in[i] = true
		}
	}
	return in
}
