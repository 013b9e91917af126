package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice/authz"
	"sluice/authz/limit"
	"sluice/cmd/policytest"
	"sluice/gen"
	"sluice/policies"
)

type testOptions struct {
	Files   []string
	Format  string
	Run     string
	Verbose bool
	Watch   bool
	Store   string
	Geo     geoOptions
}

func newTestCmd(e *env) *cobra.Command {
	var o testOptions
	c := &cobra.Command{
		Use:   "test [FILE...]",
		Short: "Run the tests of a policy",
		Long: `Runs tests of policies, through the edge and the service alike, on a clock of
their own. FILE is policy_test.yaml when left out. Each names its policy:

    policy: policy.yaml
    tests:
      - name: a burst passes, the next is refused
        requests:
          - {at: 0s, times: 10, key: web, url: /v1/items, expect: {status: 200}}
          - {at: 0s, key: web, url: /v1/items, expect: {status: 429}}

A failure tells the line, the request, what was expected, what came, and why. At
the end stands what of the policy no request touches. Exits 1 when a test fails.`,
		RunE: func(c *cobra.Command, args []string) error {
			o.Files = args
			return runTests(c.Context(), e, o)
		},
	}
	c.Flags().StringVar(&o.Format, "format", "text", "text, json or junit")
	c.Flags().StringVar(&o.Run, "run", "", "only tests that have this in their name")
	c.Flags().BoolVarP(&o.Verbose, "verbose", "v", false, "also name the tests that pass")
	c.Flags().StringVar(&o.Store, "store", "", "also run them on a real store, such as redis://127.0.0.1/9, under names of their own, in real time")
	c.Flags().BoolVar(&o.Watch, "watch", false, "run them again whenever one of the files changes, until interrupted")
	o.Geo.flags(c.Flags())
	return c
}

func runTests(ctx context.Context, e *env, o testOptions) error {
	switch {
	case !slices.Contains([]string{"text", "json", "junit"}, o.Format):
		return usagef("--format %q; want text, json or junit", o.Format)
	case o.Watch && o.Format != "text":
		return usagef("--watch is for people; want --format text")
	case slices.Contains(o.Files, "-"):
		return usagef("a test file names its policy beside it, so it cannot come from standard input")
	}
	if len(o.Files) == 0 {
		o.Files = []string{"policy_test.yaml"}
	}
	if o.Watch {
		return watchTests(ctx, e, o)
	}
	_, _, err := testOnce(e, o)
	return err
}

// watchTests runs the tests again whenever something changes, until ctx ends.
func watchTests(ctx context.Context, e *env, o testOptions) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	names, patterns := o.Files, []string(nil)
	var failed error
	authz.Watch(ctx, authz.WatchOptions{
		Log:   slog.New(slog.NewTextHandler(e.Err, nil)),
		Files: func() ([]string, []string) { return names, patterns },
		Changed: func() {
			fmt.Fprintf(e.Out, "---- %s\n", time.Now().Format(time.TimeOnly))
			var err error
			// What cannot be done may be possible after the next change.
			if names, patterns, err = testOnce(e, o); err != nil && !errors.Is(err, errNo) {
				fmt.Fprintf(e.Err, "sluice: %v\n", err)
			}
			failed = err
		},
	})
	return failed
}

// testOnce runs all files once, and returns what they were read from, and the
// patterns in which more may appear.
func testOnce(e *env, o testOptions) (read, patterns []string, err error) {
	var opt gen.Options
	if err := o.Geo.open(&opt); err != nil {
		return o.Files, nil, err
	}
	store, err := o.openStore()
	if err != nil {
		return o.Files, nil, err
	}
	if store != nil {
		defer store.Close()
	}
	run := &testRun{e: e, o: o, run: policytest.Options{Geo: opt.Geo, Run: o.Run, Store: store}, policies: map[string]*testedPolicy{}}
	for _, file := range o.Files {
		if err := run.file(file); err != nil {
			return run.read, run.patterns, err
		}
	}
	if err := run.write(); err != nil {
		return run.read, run.patterns, err
	}
	if run.broken || slices.ContainsFunc(run.reports, func(r *policytest.Report) bool { return r.Failed() > 0 }) {
		return run.read, run.patterns, errNo
	}
	return run.read, run.patterns, nil
}

// openStore opens the store that tests also run on; nil: none. Its troubles are
// those of the tests, which tell them.
func (o *testOptions) openStore() (limit.Store, error) {
	if o.Store == "" {
		return nil, nil
	}
	opened, err := openStore(o.Store, storeOptions{Instances: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return opened.Store, nil
}

// testRun is one run of some files.
type testRun struct {
	e        *env
	o        testOptions
	run      policytest.Options
	policies map[string]*testedPolicy
	reports  []*policytest.Report
	found    policies.Diagnostics
	broken   bool // a file or policy has an error
	read     []string
	patterns []string
}

// testedPolicy is a policy that files test, read once.
type testedPolicy struct {
	compiled *policies.Compiled // nil: it has errors
	found    policies.Diagnostics
}

// file runs one file. What is wrong with it is a finding.
func (r *testRun) file(name string) error {
	r.read = append(r.read, name)
	f, ds := policies.LoadTests(name)
	if ds.HasErrors() {
		r.fail(ds)
		return nil
	}
	p, err := r.policy(f.PolicyFile())
	switch {
	case err != nil:
		return err
	case p.compiled == nil:
		r.fail(p.found)
		return nil
	}
	report, ds, err := policytest.Run(f, p.compiled, r.run)
	switch {
	case err != nil:
		return err
	case ds.HasErrors():
		r.fail(ds)
	default:
		r.reports = append(r.reports, report)
	}
	return nil
}

func (r *testRun) fail(ds policies.Diagnostics) {
	r.broken = true
	r.found = append(r.found, ds...)
}

func (r *testRun) policy(name string) (*testedPolicy, error) {
	if p := r.policies[name]; p != nil {
		return p, nil
	}
	r.read = append(r.read, name)
	p, ds, err := loadPolicy(r.e, name)
	if err != nil {
		return nil, err
	}
	c, ds := ready(p, ds)
	t := &testedPolicy{compiled: c, found: slices.DeleteFunc(ds, func(d policies.Diagnostic) bool { return d.Warning })}
	names, patterns := p.Files()
	r.read, r.patterns = append(r.read, names...), append(r.patterns, patterns...)
	r.policies[name] = t
	return t, nil
}

func (r *testRun) write() error {
	if r.o.Format == "json" {
		return r.writeJSON()
	}
	if err := writeText(r.e.Err, r.found); err != nil {
		return err
	}
	if r.o.Format == "junit" {
		return writeJUnit(r.e.Out, r.reports, r.found)
	}
	return r.writeText()
}

func (r *testRun) writeJSON() error {
	out := struct {
		Failed   int                  `json:"failed"`
		Files    []*policytest.Report `json:"files"`
		Findings []authz.Finding      `json:"findings"`
	}{Files: r.reports, Findings: authz.Findings(r.found)}
	for _, report := range r.reports {
		out.Failed += report.Failed()
	}
	if out.Files == nil {
		out.Files = []*policytest.Report{}
	}
	return writeIndented(r.e.Out, out)
}
