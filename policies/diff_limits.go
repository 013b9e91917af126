package policies

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// limits compares two lists of limits, sorted by name, that belong to one subject.
func (d *differ) limits(scope Scope, name, path string, old, new []Limit, finish func(*Change)) {
	limitChanges(old, new, func(limit string, f diffFields, effects ...Effect) {
		finish(d.note(scope, name, limit, field(path, limit), f, effects...))
	})
}

// limitChanges yields each limit that changed, with its fields or as a whole.
func limitChanges(old, new []Limit, yield func(limit string, f diffFields, effects ...Effect)) {
	was := make(map[string]*Limit, len(old))
	for i := range old {
		was[old[i].Name] = &old[i]
	}
	for i := range new {
		n := &new[i]
		o, ok := was[n.Name]
		delete(was, n.Name)
		if !ok {
			yield(n.Name, diffFields{{Name: string(n.Kind), New: describeLimit(n), Effects: presence(n)}}, EffectAdded)
		} else if f := limitFields(o, n); len(f) > 0 {
			yield(n.Name, f)
		}
	}
	for i := range old {
		if o := &old[i]; was[o.Name] != nil {
			var effects []Effect
			for _, e := range presence(o) {
				effects = append(effects, e.opposite())
			}
			yield(o.Name, diffFields{{Name: string(o.Kind), Old: describeLimit(o), Effects: effects}}, EffectRemoved)
		}
	}
}

// presence is what a limit means by being there; nothing in shadow.
func presence(l *Limit) []Effect {
	if l.Shadow {
		return nil
	}
	return []Effect{EffectTightened}
}

// describeLimit is a limit in a few words.
func describeLimit(l *Limit) string {
	s := strings.Join(append([]string{numbersOf(l), "per " + strings.Join(perWords(l.Per), " and ")}, extras(l)...), ", ")
	return s
}

func numbersOf(l *Limit) string {
	switch l.Kind {
	case KindRate:
		return fmt.Sprintf("%s, burst %d", l.Rate, l.Burst)
	case KindRetries:
		return l.Rate.String()
	case KindWindow:
		return l.Window.String()
	case KindQuota:
		return l.Quota.String()
	}
	return strconv.FormatInt(l.Concurrency, 10)
}

func extras(l *Limit) []string {
	var out []string
	if l.Wait > 0 {
		out = append(out, "wait "+span(int64(l.Wait)))
	}
	if l.Overage > 0 {
		out = append(out, "overage "+plainNumber(l.Overage))
	}
	if l.Shadow {
		out = append(out, "in shadow")
	}
	return out
}

// limitFields are the values of a limit that changed. Which of them start a new
// counter is seen in the counter's own name.
func limitFields(o, n *Limit) diffFields {
	var f diffFields
	var anew []Effect
	if o.ID != n.ID {
		anew = []Effect{EffectRestarts}
	}
	if o.Kind != n.Kind {
		f.add("kind", string(o.Kind)+" "+numbersOf(o), string(n.Kind)+" "+numbersOf(n), append([]Effect{EffectChanged}, anew...)...)
	} else {
		f.kind(o, n, anew)
	}
	f.per(perWords(o.Per), perWords(n.Per), anew)
	f.counted(o, n, anew)
	f.word("mode", modeWord(o.Shadow), modeWord(n.Shadow), EffectTightened, string(LimitShadow), string(LimitEnforce))
	f.value("status", strconv.Itoa(o.Status), strconv.Itoa(n.Status), EffectChanged)
	if anew != nil && !slices.ContainsFunc(f, func(c FieldChange) bool { return slices.Contains(c.Effects, EffectRestarts) }) {
		f.add("counter", o.ID, n.ID, EffectRestarts)
	}
	return f
}

func modeWord(shadow bool) string {
	if shadow {
		return string(LimitShadow)
	}
	return string(LimitEnforce)
}

// kind compares what a kind of limit has of its own.
func (f *diffFields) kind(o, n *Limit, anew []Effect) {
	switch o.Kind {
	case KindRate:
		f.rate("rate", o.Rate, n.Rate, EffectLoosened)
		f.number("burst", o.Burst, n.Burst, EffectLoosened, plainNumber)
		f.number("wait", int64(o.Wait), int64(n.Wait), EffectLoosened, span)
		f.number("reserve.high", int64(o.Reserve.High), int64(n.Reserve.High), EffectTightened, percentWord)
		f.number("reserve.normal", int64(o.Reserve.Normal), int64(n.Reserve.Normal), EffectTightened, percentWord)
		if o.Leased != n.Leased { // instances hold back what they lease and do not spend
			f.word("sync", syncWord(o.Leased), syncWord(n.Leased), EffectTightened, "none", string(SyncLeased))
		}
	case KindRetries:
		f.perTime("retries", o.Rate.String(), n.Rate.String(), o.Rate.Micro, n.Rate.Micro, o.Rate.Per, n.Rate.Per)
	case KindWindow:
		f.perTime("window", o.Window.String(), n.Window.String(), o.Window.Limit, n.Window.Limit, o.Window.Length, n.Window.Length, alsoIf(anew, o.Window.Length != n.Window.Length)...)
		f.algorithm(o.Algorithm, n.Algorithm, anew)
	case KindQuota:
		f.quota(o, n, anew)
	case KindConcurrency:
		f.number("concurrency", o.Concurrency, n.Concurrency, EffectLoosened, plainNumber)
		f.number("lease", int64(o.Lease), int64(n.Lease), EffectTightened, span) // what is lost is held longer
	}
}

// alsoIf is the effects if the condition holds, else none.
func alsoIf(effects []Effect, holds bool) []Effect {
	if holds {
		return effects
	}
	return nil
}

func percentWord(n int64) string { return plainNumber(n) + "%" }

func syncWord(leased bool) string {
	if leased {
		return string(SyncLeased)
	}
	return "none"
}

// algorithm compares how windows count: a log is exact, the others let a burst
// across an edge reach twice the limit.
func (f *diffFields) algorithm(o, n Algorithm, anew []Effect) {
	effect := EffectChanged
	switch {
	case o == n:
		return
	case n == AlgorithmLog:
		effect = EffectTightened
	case o == AlgorithmLog:
		effect = EffectLoosened
	}
	f.add("algorithm", string(o), string(n), append([]Effect{effect}, anew...)...)
}

// perWords are the dimensions as text.
func perWords(per Per) []string {
	out := make([]string, len(per))
	for i, d := range per {
		out[i] = string(d.Kind)
		if d.Name != "" {
			out[i] += " " + d.Name
		}
		if d.Capture != nil {
			out[i] += " " + strconv.Quote(d.Capture.Source)
		}
	}
	return out
}

// per compares what is counted by: more dimensions are smaller counters, each of
// which has the whole limit.
func (f *diffFields) per(old, new []string, anew []Effect) {
	if slices.Equal(old, new) {
		return
	}
	fine := func(dims []string) []string {
		var out []string
		for _, d := range dims {
			switch DimKind(d) {
			case DimGlobal: // no dimension at all
			case DimKey, DimUser:
				out = append(out, string(DimTenant), d)
			default:
				out = append(out, d)
			}
		}
		return out
	}
	gone, come := missingFrom(fine(old), fine(new)), missingFrom(fine(new), fine(old))
	effect := EffectChanged
	switch {
	case len(gone) == 0 && len(come) == 0 && anew == nil:
		return // another order
	case len(gone) == 0 && len(come) > 0:
		effect = EffectLoosened
	case len(come) == 0 && len(gone) > 0:
		effect = EffectTightened
	}
	f.add("per", strings.Join(old, " and "), strings.Join(new, " and "), append([]Effect{effect}, anew...)...)
}

// counted compares what a limit counts. Counting requests is never more than
// counting units, for a request costs at least one.
func (f *diffFields) counted(o, n *Limit, anew []Effect) {
	old, new := countWord(o), countWord(n)
	if old == new || o.Kind != n.Kind {
		return
	}
	effect := EffectChanged
	switch {
	case len(o.Statuses) > 0 && len(n.Statuses) > 0:
		a, b := statusWords(o.Statuses), statusWords(n.Statuses)
		switch {
		case len(missingFrom(a, b)) == 0:
			effect = EffectTightened
		case len(missingFrom(b, a)) == 0:
			effect = EffectLoosened
		}
	case len(n.Statuses) > 0, n.Requests && !o.Requests:
		effect = EffectLoosened
	default:
		effect = EffectTightened
	}
	f.add("count", old, new, append([]Effect{effect}, anew...)...)
}

func countWord(l *Limit) string {
	switch {
	case len(l.Statuses) > 0:
		return "status " + strings.Join(statusWords(l.Statuses), ", ")
	case l.Requests:
		return "requests"
	}
	return "units"
}

func statusWords(list []int) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strconv.Itoa(s)
		if s < 10 {
			out[i] += "xx"
		}
	}
	return out
}
