package policytest

import (
	"fmt"
	"strings"
	"time"

	"sluice/authz/limit"
	"sluice/cmd/trial"
	"sluice/geo"
	"sluice/policies"
)

// Options are the choices of a run.
type Options struct {
	Geo geo.Tables
	// Run tells the tests to run by a part of their names; empty: all.
	Run string
	// Store runs the tests on a real store too, see store.go; nil: on memory alone.
	Store limit.Store
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
	Name     string `json:"name"`
	Line     int    `json:"line"`
	Requests int    `json:"requests"`
	// OnStore tells that the test ran on a real store too; NotOnStore why it did not.
	OnStore    bool          `json:"on_store,omitempty"`
	NotOnStore string        `json:"not_on_store,omitempty"`
	Took       time.Duration `json:"-"`
	Failures   []Failure     `json:"failures,omitempty"`
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
	tr, err := trial.New(q.cast.Policy(), trial.Options{Geo: o.Geo})
	if err != nil {
		return nil, nil, fmt.Errorf("cannot try the policy: %w", err)
	}
	report := &Report{File: f.Name(), Policy: f.PolicyFile(), Coverage: newCoverage(c)}
	cover := newCover(q.cast.Policy())
	for i := range f.Tests {
		if t := &f.Tests[i]; o.Run == "" || strings.Contains(string(t.Name), o.Run) {
			began := time.Now()
			r := newRunner(f, t, q, tr, cover)
			result := r.result()
			if o.Store != nil {
				r.onStore(o.Store, result)
			}
			result.Took = time.Since(began)
			report.Tests = append(report.Tests, *result)
		}
	}
	report.Coverage.fill(cover)
	return report, nil, nil
}

// runner is one test.
type runner struct {
	test   *policies.TestSpec
	q      *requests
	start  time.Time
	trial  *trial.Trial // of which there is a fresh one for each run
	cover  *cover
	plan   []planned
	passed []int64         // by entry
	first  map[int]Failure // by entry
	more   map[int]int64
}

func newRunner(f *policies.TestFile, t *policies.TestSpec, q *requests, tr *trial.Trial, cover *cover) *runner {
	start := startOf(f, t)
	return &runner{
		test: t, q: q, start: start, trial: tr, cover: cover, plan: schedule(t, start),
		passed: make([]int64, len(t.Requests)), first: map[int]Failure{}, more: map[int]int64{},
	}
}

// result runs the test, and once more with traces where it failed.
func (r *runner) result() *Result {
	r.run()
	out := &Result{Name: string(r.test.Name), Line: r.test.Pos.Line, Requests: len(r.plan)}
	if len(r.first) > 0 {
		r.explain()
	}
	for i := range r.test.Requests {
		req := &r.test.Requests[i]
		if x, failed := r.first[i]; failed {
			x.More = r.more[i]
			out.Failures = append(out.Failures, x)
		}
		if req.Expect != nil {
			if list := allowed(req.Expect, r.passed[i], req.Requests()); list != nil {
				out.Failures = append(out.Failures, Failure{
					Pos: req.Expect.Pos, Where: where(req.Expect.Pos), Request: r.q.title(req), Of: req.Requests(), Mismatches: list,
				})
			}
		}
	}
	return out
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
func (r *runner) run() {
	tr := r.trial.Fresh(trial.Options{Start: r.start, Login: true})
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
func (r *runner) explain() {
	tr := r.trial.Fresh(trial.Options{Start: r.start, Login: true})
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
}

func where(p policies.Pos) string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }
