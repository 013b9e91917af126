package cmd

import (
	"fmt"
	"io"
	"strings"

	"sluice/policies"
)

// mostRows is how many changes a comment shows: code hosts cut off long ones.
const mostRows = 100

// writeDiffMarkdown writes a difference as a comment under a change. All that a
// policy says stands in code spans, where nothing is a link, a mention or markup.
func writeDiffMarkdown(w io.Writer, o diffOptions, d difference) error {
	var b strings.Builder
	if len(d.Changes) == 0 {
		fmt.Fprintf(&b, "**Policy:** no change in meaning of %s since %s.\n", code(o.New), code(o.Old))
		markdownLog(&b, d.log)
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "**Policy:** %s in %s since %s.\n\n", summaryOf(d.Difference), code(o.New), code(o.Old))
	b.WriteString("| effect | where | what | concerns |\n|---|---|---|---|\n")
	for i := range d.Changes[:min(mostRows, len(d.Changes))] {
		c := &d.Changes[i]
		var what []string
		for _, f := range c.Fields {
			what = append(what, markdownField(f))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", effectList(c.Effects), markdownSubject(c), strings.Join(what, "<br>"), concerned(c))
	}
	if more := len(d.Changes) - mostRows; more > 0 {
		fmt.Fprintf(&b, "\nand %s more, which `sluice diff` shows.\n", group(more))
	}
	markdownLog(&b, d.log)
	_, err := io.WriteString(w, b.String())
	return err
}

// effectList are effects, the one that matters most in bold.
func effectList(effects []policies.Effect) string {
	words := make([]string, len(effects))
	for i, e := range effects {
		words[i] = string(e)
	}
	words[0] = "**" + words[0] + "**"
	return strings.Join(words, ", ")
}

func markdownSubject(c *policies.Change) string {
	if c.Scope == policies.ScopePolicy {
		return "the whole policy"
	}
	s := string(c.Scope)
	const few = 5
	if len(c.Names) > 0 {
		if len(c.Names) > 1 {
			s = grouped(len(c.Names), s) + ":"
		}
		var names []string
		for _, name := range c.Names[:min(few, len(c.Names))] {
			names = append(names, code(name))
		}
		s += " " + strings.Join(names, ", ")
		if more := len(c.Names) - few; more > 0 {
			s += " and " + group(more) + " more"
		}
	}
	if c.Limit != "" {
		if c.Scope != policies.ScopeLimit {
			s += ", limit"
		}
		s += " " + code(c.Limit)
	}
	return s
}

func markdownField(f policies.FieldChange) string {
	switch {
	case f.Old == "":
		return code(f.Name) + ": " + code(f.New)
	case f.New == "":
		return code(f.Name) + ": " + code(f.Old) + " → none"
	}
	return code(f.Name) + ": " + code(f.Old) + " → " + code(f.New)
}

// code is text in a code span in a table: it ends at a run of as many backticks
// as it began with, and the table at a bar.
func code(s string) string {
	if s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)); s == "" {
		return "(empty)"
	}
	longest, run := 0, 0
	for _, r := range s {
		if r == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	mark, pad := strings.Repeat("`", longest+1), ""
	if longest > 0 {
		pad = " "
	}
	return mark + pad + strings.ReplaceAll(s, "|", `\|`) + pad + mark
}
