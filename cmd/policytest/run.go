package policytest

import (
	"fmt"
	"strings"
	"time"

	"sluice/cmd/trial"
	"sluice/geo"
	"sluice/policies"
)

// Options are the choices of a run.
type Options struct {
	Geo geo.Tables
	// Run tells the tests to run by a part of their names; empty: all.
	Run string
}

// Report is what came of one file.
type Report struct {
	File     string   `json:"file"`
	Policy   string   `json:"policy"`
	Tests    []Result `json:"tests"`
	Coverage Coverage `json:"coverage"`
}

// Failed is how many tests failed.
func (r *Report) Failed() int {
	n := 0
	for i := range r.Tests {
		if len(r.Tests[i].Failures) > 0 {
			n++
		}
	}
	return n
}

// Result is what came of one test.
type Result struct {
	Name     string        `json:"name"`
	Line     int           `json:"line"`
	Requests int           `json:"requests"`
	Took     time.Duration `json:"-"`
	Failures []Failure     `json:"failures,omitempty"`
}

// Failure is an entry whose requests came otherwise than expected: the first of
// them, and how many others there were.
type Failure struct {
	Pos        policies.Pos       `json:"-"`
	Where      string             `json:"where"` // file:line:col
	Request    string             `json:"request"`
	At         string             `json:"at"`            // since the test's start
	N          int64              `json:"n"`             // which of the entry's, from 1
	Of         int64              `json:"of"`            // how many the entry has
	More       int64              `json:"more"`          // that failed besides
	Mismatches []Mismatch         `json:"mismatches"`    //
	Why        *trial.Explanation `json:"why,omitempty"` // of the one request
}

// Run runs the tests of a file on its policy. Findings are mistakes of the file;
// then nothing was run.
func Run(f *policies.TestFile, c *policies.Compiled, o Options) (*Report, policies.Diagnostics, error) {
	if ds := f.Check(c); ds.HasErrors() {
		return nil, ds, nil
	}
	q, ds := prepare(f, c)
	if ds.HasErrors() {
		return nil, ds, nil
	}
	report := &Report{File: f.Name(), Policy: f.PolicyFile(), Coverage: newCoverage(c)}
	cover := newCover(q.cast.Policy())
	for i := range f.Tests {
		if t := &f.Tests[i]; o.Run == "" || strings.Contains(string(t.Name), o.Run) {
			began := time.Now()
			result, err := runTest(f, t, q, o, cover)
			if err != nil {
				return nil, nil, err
			}
			result.Took = time.Since(began)
			report.Tests = append(report.Tests, *result)
		}
	}
	report.Coverage.fill(cover)
	return report, nil, nil
}

// runner is one run of one test.
type runner struct {
	test   *policies.TestSpec
	q      *requests
	start  time.Time
	opt    Options
	cover  *cover
	plan   []planned
	passed []int64         // by entry
	first  map[int]Failure // by entry
	more   map[int]int64
}

// runTest runs one test, and once more with traces where it failed.
func runTest(f *policies.TestFile, t *policies.TestSpec, q *requests, o Options, cover *cover) (*Result, error) {
	r := &runner{test: t, q: q, start: startOf(f, t), opt: o, cover: cover, passed: make([]int64, len(t.Requests)), first: map[int]Failure{}, more: map[int]int64{}}
	r.plan = schedule(t, r.start)
	if err := r.run(); err != nil {
		return nil, err
	}
	result := &Result{Name: string(t.Name), Line: t.Pos.Line, Requests: len(r.plan)}
	if len(r.first) > 0 {
		if err := r.explain(); err != nil {
			return nil, err
		}
	}
	for i := range t.Requests {
		req := &t.Requests[i]
		if x, failed := r.first[i]; failed {
			x.More = r.more[i]
			result.Failures = append(result.Failures, x)
		}
		if req.Expect != nil {
			if list := allowed(req.Expect, r.passed[i], req.Requests()); list != nil {
				result.Failures = append(result.Failures, Failure{
					Pos: req.Expect.Pos, Where: where(req.Expect.Pos), Request: q.title(req), Of: req.Requests(), Mismatches: list,
				})
			}
		}
	}
	return result, nil
}

func startOf(f *policies.TestFile, t *policies.TestSpec) time.Time {
	for _, s := range []policies.Instant{t.Start, f.Start} {
		if at := time.Time(s); !at.IsZero() {
			return at
		}
	}
	return defaultStart()
}

// run sends all requests, and looks at each outcome.
func (r *runner) run() error {
	tr, err := trial.New(r.q.cast.Policy(), trial.Options{Start: r.start, Geo: r.opt.Geo})
	if err != nil {
		return fmt.Errorf("cannot try the policy: %w", err)
	}
	for i := range r.plan {
		p := &r.plan[i]
		spec := &r.test.Requests[p.entry]
		req := r.q.request(spec, p)
		if p.n == 0 {
			req.Trace = &trial.Trace{} // for coverage
		}
		tr.Submit(req, func(o *trial.Outcome) { r.look(spec, p, o) })
	}
	tr.Drain()
	return nil
}

func (r *runner) look(spec *policies.TestRequest, p *planned, o *trial.Outcome) {
	r.cover.note(o)
	if !o.Denied {
		r.passed[p.entry]++
	}
	if spec.Expect == nil {
		return
	}
	list := compare(spec.Expect, o)
	if len(list) == 0 {
		return
	}
	if _, failed := r.first[p.entry]; failed {
		r.more[p.entry]++
		return
	}
	r.first[p.entry] = Failure{
		Pos: spec.Expect.Pos, Where: where(spec.Expect.Pos), Request: r.q.title(spec), At: p.at.Sub(r.start).String(),
		N: p.n + 1, Of: spec.Requests(), Mismatches: list,
	}
}

// explain runs the test once more, the same way, and traces the requests that failed.
func (r *runner) explain() error {
	tr, err := trial.New(r.q.cast.Policy(), trial.Options{Start: r.start, Geo: r.opt.Geo})
	if err != nil {
		return fmt.Errorf("cannot try the policy: %w", err)
	}
	for i := range r.plan {
		p := &r.plan[i]
		req := r.q.request(&r.test.Requests[p.entry], p)
		failure, failed := r.first[p.entry]
		if failed = failed && failure.N == p.n+1; failed {
			req.Trace = &trial.Trace{}
		}
		trace := req.Trace
		tr.Submit(req, func(*trial.Outcome) {
			if failed {
				failure.Why = tr.Explain(trace)
				r.first[p.entry] = failure
			}
		})
	}
	tr.Drain()
	return nil
}

func where(p policies.Pos) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }
