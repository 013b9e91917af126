package cmd

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"sluice/cmd/policytest"
	"sluice/policies"
)

// The elements of a JUnit report, as CI systems read it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string       `xml:"name,attr"`
		Class   string       `xml:"classname,attr"`
		File    string       `xml:"file,attr"`
		Line    int          `xml:"line,attr,omitempty"`
		Time    string       `xml:"time,attr"`
		Failure *junitDetail `xml:"failure"`
		Error   *junitDetail `xml:"error"`
	}
	junitDetail struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes all files as suites. A finding is an error of the suite of
// its file.
func writeJUnit(w io.Writer, reports []*policytest.Report, found policies.Diagnostics) error {
	all := junitSuites{}
	for _, r := range reports {
		all.add(junitReport(r))
	}
	for _, d := range found {
		all.add(junitSuite{Name: d.Pos.File, Tests: 1, Errors: 1, Time: "0", Cases: []junitCase{{
			Name: "the file can be read", Class: d.Pos.File, File: d.Pos.File, Line: d.Pos.Line, Time: "0",
			Error: &junitDetail{Message: d.Message, Text: d.String()},
		}}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuites) add(one junitSuite) {
	s.Tests, s.Failures, s.Errors = s.Tests+one.Tests, s.Failures+one.Failures, s.Errors+one.Errors
	s.Suites = append(s.Suites, one)
}

func junitReport(r *policytest.Report) junitSuite {
	s := junitSuite{Name: r.File, Tests: len(r.Tests), Failures: r.Failed()}
	seconds := 0.0
	for i := range r.Tests {
		t := &r.Tests[i]
		seconds += t.Took.Seconds()
		c := junitCase{Name: t.Name, Class: r.File, File: r.File, Line: t.Line, Time: fmt.Sprintf("%.3f", t.Took.Seconds())}
		if len(t.Failures) > 0 {
			var lines []string
			for j := range t.Failures {
				lines = append(lines, failureLines(&t.Failures[j], paint(false))...)
			}
			first := &t.Failures[0]
			m := first.Mismatches[0]
			c.Failure = &junitDetail{
				Message: fmt.Sprintf("%s: %s: %s: expected %s, came %s", first.Where, first.Request, m.What, m.Expected, m.Came),
				Text:    strings.Join(lines, "\n"),
			}
		}
		s.Cases = append(s.Cases, c)
	}
	s.Time = fmt.Sprintf("%.3f", seconds)
	return s
}
