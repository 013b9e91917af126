package cmd

import (
	"fmt"
	"io"
	"strings"

	"sluice/cmd/policytest"
)

func (r *testRun) writeText() error {
	paint := paintFor(r.e)
	var lines []string
	for _, report := range r.reports {
		lines = append(lines, testLines(report, r.o.Verbose, paint)...)
	}
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(r.e.Out, strings.Join(lines, "\n")+"\n")
	return err
}

// testLines are what came of one file, for people.
func testLines(r *policytest.Report, verbose bool, p paint) []string {
	var out []string
	requests, onStore := 0, 0
	var away []string
	for i := range r.Tests {
		t := &r.Tests[i]
		requests += t.Requests
		if t.NotOnStore != "" {
			away = append(away, fmt.Sprintf("%s does not run on the store: %s", t.Name, t.NotOnStore))
		}
		if t.OnStore {
			onStore++
		}
		if len(t.Failures) == 0 {
			if verbose {
				out = append(out, fmt.Sprintf("%s %s %s", p.good("ok  "), t.Name, p.faint("("+plural(t.Requests, "request")+")")))
			}
			continue
		}
		out = append(out, p.bad("FAIL")+" "+p.strong(t.Name))
		for j := range t.Failures {
			out = append(out, failureLines(&t.Failures[j], p)...)
		}
		out = append(out, "")
	}
	verdict := p.good("ok")
	if n := r.Failed(); n > 0 {
		verdict = p.bad(fmt.Sprintf("%d failed", n))
	}
	sum := fmt.Sprintf("%s: %s, %s, %s", r.File, verdict, plural(len(r.Tests), "test"), plural(requests, "request"))
	if onStore+len(away) > 0 {
		sum += fmt.Sprintf(", %d on the store", onStore)
	}
	out = append(out, sum)
	for _, line := range away {
		out = append(out, wrapIndent(line, 2, 4)...)
	}
	return append(out, coverageLines(&r.Coverage, p)...)
}

// failureLines are one failure: where, what, expected, came, why.
func failureLines(f *policytest.Failure, p paint) []string {
	const indent = "    "
	what := f.Request
	if f.At != "" {
		what += " at " + f.At
	}
	if f.Of > 1 && f.N > 0 {
		what += fmt.Sprintf(" (%d of %d)", f.N, f.Of)
	}
	out := []string{"  " + f.Where + ": " + what}
	width := 0
	for _, m := range f.Mismatches {
		width = max(width, len(m.What))
	}
	for _, m := range f.Mismatches {
		out = append(out, fmt.Sprintf("%s%s  expected %s, came %s", indent, pad(m.What, width), p.good(m.Expected), p.bad(m.Came)))
	}
	if f.More > 0 {
		out = append(out, fmt.Sprintf("%sand %d more of them fail", indent, f.More))
	}
	if f.Why != nil {
		out = append(out, explanationLines(f.Why, p, indent)...)
	}
	return out
}

// coverageLines tell what no request touches.
func coverageLines(c *policytest.Coverage, p paint) []string {
	var out []string
	for _, line := range c.Lines() {
		for i, l := range wrap(line, pageWidth-4) {
			indent := "  "
			if i > 0 {
				indent = "    "
			}
			out = append(out, indent+p.faint(l))
		}
	}
	return out
}
