package cmd

import (
	"fmt"
	"strings"

	"sluice/cmd/trial"
)

// explanationLines are the steps of a request, for people: a column for the
// stage, one for the mark, and the text.
func explanationLines(x *trial.Explanation, p paint, indent string) []string {
	const stages = 9 // columns
	var out []string
	last := ""
	for i := range x.Steps {
		s := &x.Steps[i]
		stage := s.Stage
		if stage == last {
			stage = ""
		}
		last = s.Stage
		head := indent + p.faint(pad(stage, stages)) + mark(s.Mark, p) + " "
		rest := indent + strings.Repeat(" ", stages+2)
		text := s.Text
		if s.Name != "" {
			text = s.Name + "  " + text
		}
		for n, line := range wrap(text, pageWidth-len(indent)-stages-3) {
			if n == 0 {
				if s.Name != "" {
					line = named(line, s, p)
				}
				out = append(out, head+line)
			} else {
				out = append(out, rest+faintIf(s.Mark == trial.Skipped, line, p))
			}
		}
		if s.Key != "" && s.Mark != trial.Skipped {
			out = append(out, rest+p.faint("counter "+s.Key))
		}
	}
	return out
}

// named is the first line of a step that has a name.
func named(line string, s *trial.Step, p paint) string {
	rest := strings.TrimLeft(strings.TrimPrefix(line, s.Name), " ")
	if s.Mark == trial.Skipped {
		return p.faint(s.Name + "  " + rest)
	}
	return strings.TrimRight(p.strong(s.Name)+"  "+rest, " ")
}

func faintIf(faint bool, s string, p paint) string {
	if faint {
		return p.faint(s)
	}
	return s
}

// mark is one column: what a step came to.
func mark(m trial.Mark, p paint) string {
	switch m {
	case trial.Passes:
		return p.good("+")
	case trial.Refuses:
		return p.bad("x")
	case trial.Would:
		return p.warn("!")
	case trial.Skipped:
		return p.faint("-")
	}
	return " "
}

// headerLines are the headers of ours that the client gets.
func headerLines(x *trial.Explanation, p paint, indent string) []string {
	var out []string
	for _, f := range x.Header {
		out = append(out, fmt.Sprintf("%s%s %s", indent, p.faint(f.Name+":"), f.Value))
	}
	return out
}
