package policies

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

// diffFields collects the values of one subject that changed.
type diffFields []FieldChange

// add notes a value that changed.
func (f *diffFields) add(name, old, new string, effects ...Effect) {
	*f = append(*f, FieldChange{Name: name, Old: old, New: new, Effects: effects})
}

// value notes a value if it changed.
func (f *diffFields) value(name, old, new string, effects ...Effect) {
	if old != new {
		f.add(name, old, new, effects...)
	}
}

// number compares two numbers of which the larger one has the effect more.
func (f *diffFields) number(name string, old, new int64, more Effect, show func(int64) string, also ...Effect) {
	switch {
	case old < new:
		f.add(name, show(old), show(new), append([]Effect{more}, also...)...)
	case old > new:
		f.add(name, show(old), show(new), append([]Effect{more.opposite()}, also...)...)
	}
}

// toggle compares two answers of which yes has the effect.
func (f *diffFields) toggle(name string, old, new bool, yes Effect) {
	if old != new {
		effect := yes
		if old {
			effect = yes.opposite()
		}
		f.add(name, strconv.FormatBool(old), strconv.FormatBool(new), effect)
	}
}

// word compares two words, of which the later one in the list has the effect later.
func (f *diffFields) word(name, old, new string, later Effect, order ...string) {
	f.number(name, int64(slices.Index(order, old)), int64(slices.Index(order, new)), later, func(i int64) string {
		return order[max(0, i)]
	})
}

// entries compares two sets, of which more entries have the effect more. Nil is
// everything, and is written as all.
func (f *diffFields) entries(name string, old, new []string, all string, more Effect) {
	if old == nil || new == nil {
		switch {
		case old != nil:
			f.add(name, listed(old), all, more)
		case new != nil:
			f.add(name, all, listed(new), more.opposite())
		}
		return
	}
	gone, come := missingFrom(old, new), missingFrom(new, old)
	var effects []Effect
	if len(come) > 0 {
		effects = append(effects, more)
	}
	if len(gone) > 0 && !slices.Contains(effects, more.opposite()) {
		effects = append(effects, more.opposite())
	}
	switch {
	case len(effects) == 0:
		return
	case len(old) <= fewEntries && len(new) <= fewEntries:
		f.add(name, listed(old), listed(new), effects...)
	default:
		f.add(name, countOf(len(old)), countOf(len(new))+":"+signed(" +", come)+signed(" -", gone), effects...)
	}
	last := &(*f)[len(*f)-1]
	last.Gone, last.Come = gone, come
}

// fewEntries is how many entries of a list are shown as they are.
const fewEntries = 4

// listed is a list for a reader.
func listed(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// signed are entries that came or went, the first of them by name.
func signed(sign string, list []string) string {
	var b strings.Builder
	for _, e := range list[:min(len(list), fewEntries)] {
		b.WriteString(sign + e)
	}
	if more := len(list) - fewEntries; more > 0 {
		fmt.Fprintf(&b, "%s(%d more)", sign, more)
	}
	return b.String()
}

// missingFrom are the entries of a that are not in b.
func missingFrom(a, b []string) []string {
	in := asSet(b)
	var out []string
	for _, e := range a {
		if !in[e] {
			out = append(out, e)
		}
	}
	return out
}

// rate compares two rates by what they let through; 60/m and 1/s are the same.
func (f *diffFields) rate(name string, old, new Rate, more Effect) {
	c := compareRatio(old.Micro, old.Per, new.Micro, new.Per)
	if c != 0 {
		effect := more
		if c > 0 {
			effect = more.opposite()
		}
		f.add(name, old.String(), new.String(), effect)
	}
}

// compareRatio compares a in each p with b in each q, exactly.
func compareRatio(a int64, p time.Duration, b int64, q time.Duration) int {
	x := new(big.Int).Mul(big.NewInt(a), big.NewInt(int64(max(q, 1))))
	y := new(big.Int).Mul(big.NewInt(b), big.NewInt(int64(max(p, 1))))
	return x.Cmp(y)
}

// perTime compares two limits of so many in each length: looser in both ways,
// tighter in both ways, or neither.
func (f *diffFields) perTime(name, oldText, newText string, old, new int64, p, q time.Duration, also ...Effect) {
	ratio := compareRatio(old, p, new, q)
	effect := EffectChanged
	switch {
	case old == new && p == q:
		return
	case old <= new && ratio <= 0:
		effect = EffectLoosened
	case old >= new && ratio >= 0:
		effect = EffectTightened
	}
	f.add(name, oldText, newText, append([]Effect{effect}, also...)...)
}

// within puts the name of a limit in front of the names of its fields.
func (f diffFields) within(limit string) diffFields {
	out := slices.Clone(f)
	for i := range out {
		out[i].Name = limit + "." + out[i].Name
	}
	return out
}

// equal tells whether two subjects changed alike.
func (f diffFields) equal(g diffFields) bool {
	return slices.EqualFunc(f, g, func(a, b FieldChange) bool { return a.Name == b.Name && a.Old == b.Old && a.New == b.New })
}

// plainNumber writes a number as the policy does.
func plainNumber(n int64) string { return strconv.FormatInt(n, 10) }

// span writes a duration, nothing for none.
func span(n int64) string {
	if n == 0 {
		return ""
	}
	return Duration(n).String()
}

// words turns what can write itself into text; nil stays nil.
func words[T fmt.Stringer](list []T) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = e.String()
	}
	return out
}

// countOf is how long a list is.
func countOf(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return strconv.Itoa(n) + " entries"
}
