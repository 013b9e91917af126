package cmd

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"sluice/cmd/replay"
	"sluice/policies"
)

// width is how wide lines of help are, and what is not written to a terminal.
const width = 80

// screen is what text is written for.
type screen struct {
	paint
	width int // columns
}

// screenFor is the terminal, if the output is one, between what a line needs and
// what an eye follows.
func screenFor(e *env) screen {
	return screen{paintFor(e), min(max(widthOf(e, e.Out), 60), 120)}
}

// writeDiffText writes a difference for people: a section for each effect.
func writeDiffText(w io.Writer, p screen, o diffOptions, d difference) error {
	var b strings.Builder
	if len(d.Changes) == 0 {
		fmt.Fprintf(&b, "%s: no change in meaning since %s\n", o.New, o.Old)
	} else {
		head := fmt.Sprintf("%s: %s since %s", o.New, summaryOf(d.Difference), o.Old)
		b.WriteString(strings.Join(wrap(head, p.width-2), "\n  ") + "\n")
	}
	section := policies.Effect("")
	for i := range d.Changes {
		c := &d.Changes[i]
		if c.Effects[0] != section {
			section = c.Effects[0]
			fmt.Fprintf(&b, "\n%s\n", p.effect(section, sectionTitle(section)))
		}
		textChange(&b, p, c)
	}
	if _, err := io.WriteString(w, b.String()); err != nil || d.log == nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\n%s of the log:\n", grouped(int(d.log.Verdicts.Requests), "request")); err != nil {
		return err
	}
	return d.log.WriteChanges(w, replay.Style{Width: p.width, Colour: bool(p.paint)})
}

// summaryOf says how much changes, and for how many.
func summaryOf(d policies.Difference) string {
	parts := []string{grouped(len(d.Changes), "change")}
	if d.Everybody {
		parts = append(parts, "some for everybody")
	}
	if d.Tenants > 0 {
		parts = append(parts, grouped(d.Tenants, "tenant"))
	}
	if d.Keys > 0 {
		parts = append(parts, grouped(d.Keys, "key"))
	}
	return strings.Join(parts, ", ")
}

func sectionTitle(e policies.Effect) string {
	switch e {
	case policies.EffectTightened:
		return "Tightened: somebody may be refused who was not"
	case policies.EffectRestarts:
		return "Counters restart"
	case policies.EffectLoosened:
		return "Loosened"
	case policies.EffectMoved:
		return "Moved"
	case policies.EffectAdded:
		return "Added"
	case policies.EffectRemoved:
		return "Removed"
	}
	return "Changed otherwise"
}

// textChange writes one change: its subjects and whom it concerns, then a line
// for each value.
func textChange(b *strings.Builder, p screen, c *policies.Change) {
	head, who := subject(c, 3), concerned(c)
	if tag := tags(c.Effects[1:]); tag != "" {
		head += " (" + tag + ")"
	}
	for i, line := range wrap(head, p.width-4) {
		b.WriteString("  " + strings.Repeat("  ", min(i, 1)) + p.strong(line))
		if last := len(wrap(head, p.width-4)) - 1; i == last && who != "" {
			if room := p.width - 2 - 2*min(i, 1) - utf8.RuneCountInString(line); room >= utf8.RuneCountInString(who)+2 {
				b.WriteString(strings.Repeat(" ", room-utf8.RuneCountInString(who)) + p.faint(who))
			} else {
				b.WriteString("\n      " + p.faint(who))
			}
		}
		b.WriteString("\n")
	}
	longest := 0
	for _, f := range c.Fields {
		if n := utf8.RuneCountInString(f.Name); n <= 24 {
			longest = max(longest, n)
		}
	}
	for _, f := range c.Fields {
		textField(b, p, c, f, longest)
	}
}

func textField(b *strings.Builder, p screen, c *policies.Change, f policies.FieldChange, longest int) {
	var effects []policies.Effect
	for _, e := range f.Effects {
		if e != c.Effects[0] {
			effects = append(effects, e)
		}
	}
	value := change(f)
	if tag := tags(effects); tag != "" && len(c.Effects) > 1 && len(c.Fields) > 1 {
		value += "  (" + tag + ")"
	}
	name := f.Name + strings.Repeat(" ", max(0, longest-utf8.RuneCountInString(f.Name)))
	lead := "      " + name + "  "
	lines := wrap(value, p.width-utf8.RuneCountInString(lead))
	if utf8.RuneCountInString(lead) > p.width/2 {
		b.WriteString("      " + strings.Join(wrap(f.Name, p.width-6), "\n      ") + "\n")
		lead, lines = "        ", wrap(value, p.width-8)
	}
	for i, line := range lines {
		if i > 0 {
			lead = strings.Repeat(" ", utf8.RuneCountInString(lead))
		}
		fields := p.effect(leading(f, c), line)
		b.WriteString(lead + fields + "\n")
	}
}

// change is a value before and after.
func change(f policies.FieldChange) string {
	switch {
	case f.Old == "":
		return oneLine(f.New)
	case f.New == "":
		return oneLine(f.Old) + " -> none"
	}
	return oneLine(f.Old) + " -> " + oneLine(f.New)
}

// oneLine keeps what a policy says in one line, and away from the terminal's controls.
func oneLine(s string) string {
	quoted := strconv.Quote(s)
	if plain := quoted[1 : len(quoted)-1]; plain == s {
		return s
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || !strconv.IsPrint(r) }) {
		return s
	}
	return quoted
}

// subject names what a change is about; of many the first few.
func subject(c *policies.Change, few int) string {
	s := string(c.Scope)
	switch {
	case c.Scope == policies.ScopePolicy:
		s = "the whole policy"
	case c.Scope == policies.ScopeLimit:
		return "limit " + c.Limit + ", of every request"
	case len(c.Names) == 1:
		s += " " + oneLine(c.Names[0])
	case len(c.Names) > 1:
		s = grouped(len(c.Names), s) + ": " + someNames(c.Names, few)
	}
	if c.Limit != "" {
		s += ": limit " + c.Limit
	}
	return s
}

// someNames are the first of a list of names, and how many more there are.
func someNames(names []string, few int) string {
	shown := make([]string, 0, few)
	for _, name := range names[:min(few, len(names))] {
		shown = append(shown, oneLine(name))
	}
	s := strings.Join(shown, ", ")
	if more := len(names) - few; more > 0 {
		s += " and " + group(more) + " more"
	}
	return s
}

// concerned says whom a change concerns.
func concerned(c *policies.Change) string {
	var parts []string
	if c.Everybody {
		parts = append(parts, "everybody")
	}
	if c.Tenants > 0 {
		parts = append(parts, grouped(c.Tenants, "tenant"))
	}
	if c.Keys > 0 {
		parts = append(parts, grouped(c.Keys, "key"))
	}
	if c.Anonymous {
		parts = append(parts, "anonymous clients")
	}
	if len(parts) == 0 && c.Scope == policies.ScopePlan && !c.Has(policies.EffectAdded) {
		return "no tenant"
	}
	return strings.Join(parts, ", ")
}

// tags are effects in a few words.
func tags(effects []policies.Effect) string {
	var words []string
	for _, e := range effects {
		word := string(e)
		if e == policies.EffectRestarts {
			word = "counters restart"
		}
		if e != policies.EffectChanged && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// wrap breaks text between words into lines of at most so many characters; a
// longer word stays whole.
func wrap(s string, most int) []string {
	var lines []string
	line := ""
	for i, word := range strings.Split(s, " ") {
		switch {
		case i == 0:
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > most:
			lines, line = append(lines, strings.TrimRight(line, " ")), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// group writes a number with commas between thousands.
func group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// grouped is so many of something.
func grouped(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return group(n) + " " + noun + "s"
}

// leading is the effect that a value is coloured by.
func leading(f policies.FieldChange, c *policies.Change) policies.Effect {
	if len(f.Effects) > 0 {
		return f.Effects[0]
	}
	return c.Effects[0]
}
