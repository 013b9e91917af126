package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/cmd/accesslog"
	"sluice/cmd/replay"
	"sluice/policies"
)

type diffOptions struct {
	Old, New string
	Format   string
	ExitCode bool
	FailOn   []string
	Logs     []string
	Replay   replayOptions // of Logs
}

func newDiffCmd(e *env) *cobra.Command {
	o := diffOptions{Replay: replayOptions{CacheHits: true, Window: accesslog.DefaultWindow, Geo: geoOptions{Mode: "compiled"}}}
	c := &cobra.Command{
		Use:   "diff OLD [NEW]",
		Short: "Say what a change of a policy means",
		Long: `Says what changes in meaning from one policy to another: what is tightened,
loosened, added, removed or moved, which counters restart, and how many tenants
and keys that concerns, with the numbers that hold for them after extends,
overrides and grants. What matters most comes first. Comments, order and
spelling are no change.

OLD and NEW are files, "-" for standard input, or git:REV:PATH for the policy,
its lists and its tenants as they were in a revision: git:main:policy.yaml.
Without REV (git::policy.yaml) it is what is staged.

With --log both policies are also tried on access logs: who would newly be
denied, and who no longer.`,
		Example: `  sluice diff old.yaml policy.yaml
  sluice diff git:HEAD:policy.yaml
  sluice diff git:origin/main:policy.yaml policy.yaml --format markdown
  sluice diff git:main:policy.yaml --fail-on tightened,restarts`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("diff needs OLD, a policy to compare with, such as git:main:policy.yaml")
			case len(args) > 2:
				return usagef("diff compares two policies; got %q", args)
			case len(args) == 2 && args[0] == "-" && args[1] == "-":
				return usagef("standard input can be one of the two policies only")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			o.Old, o.New = args[0], policyArg(args[1:])
			return runDiff(e, o)
		},
	}
	c.Flags().StringVar(&o.Format, "format", "text", "text, json or markdown (for a comment under a change)")
	c.Flags().BoolVar(&o.ExitCode, "exit-code", false, "exit 1 when anything changes in meaning")
	c.Flags().StringSliceVar(&o.FailOn, "fail-on", nil, "exit 1 when a change is one of: "+strings.Join(effectWords(), ", ")+"; or newly-denied, with --log")
	c.Flags().StringArrayVar(&o.Logs, "log", nil, "an access log to try both policies on (repeatable)")
	c.Flags().StringVar(&o.Replay.LogFormat, "log-format", "", "combined, json or the text of a log_format, as of replay; the first lines tell")
	c.Flags().StringVar(&o.Replay.Tenant, "tenant", "", "the variable of the log that says whose a request is, as of replay")
	c.Flags().StringVar(&o.Replay.Geo.Countries, "country-db", "", "a country database (.mmdb), for --log")
	c.Flags().StringVar(&o.Replay.Geo.ASNs, "asn-db", "", "a database of autonomous systems (.mmdb), for --log")
	return c
}

func effectWords() []string {
	var words []string
	for _, e := range policies.Effects() {
		words = append(words, string(e))
	}
	return words
}

func runDiff(e *env, o diffOptions) error {
	for _, word := range o.FailOn {
		switch {
		case word == newlyDenied && len(o.Logs) == 0:
			return usagef("--fail-on %s needs --log", word)
		case word != newlyDenied && !slices.Contains(effectWords(), word):
			return usagef("--fail-on %q; want some of %s, %s", word, strings.Join(effectWords(), ", "), newlyDenied)
		}
	}
	if !slices.Contains([]string{"text", "json", "markdown"}, o.Format) {
		return usagef("--format %q; want text, json or markdown", o.Format)
	}
	from, to := readAside(e, o.Old), readAside(e, o.New)
	before, err := usable(e, <-from)
	if err != nil {
		return err
	}
	after, err := usable(e, <-to)
	if err != nil {
		return err
	}
	d := difference{Difference: policies.Diff(before, after)}
	if len(o.Logs) > 0 {
		if d.log, err = tryBoth(e, o, before, after); err != nil {
			return err
		}
	}
	switch o.Format {
	case "json":
		err = writeDiffJSON(e.Out, o, d)
	case "markdown":
		err = writeDiffMarkdown(e.Out, o, d)
	default:
		err = writeDiffText(e.Out, screenFor(e), o, d)
	}
	if err != nil {
		return err
	}
	if o.ExitCode && len(d.Changes) > 0 || failsOn(d, o.FailOn) {
		return errNo
	}
	return nil
}

// difference is what changes, and, when logs were tried, what that does to whom.
type difference struct {
	policies.Difference
	log *replay.Report // nil: none was tried
}

// failsOn tells whether a change has one of the effects.
func failsOn(d difference, effects []string) bool {
	if d.log != nil && d.log.Changes.NewlyDenied > 0 && slices.Contains(effects, newlyDenied) {
		return true
	}
	return slices.ContainsFunc(d.Changes, func(c policies.Change) bool {
		return slices.ContainsFunc(effects, func(word string) bool { return c.Has(policies.Effect(word)) })
	})
}

// reading is what came of reading a policy.
type reading struct {
	arg      string
	policy   *policies.Policy
	findings policies.Diagnostics
	err      error
}

// readAside reads a policy while another one is read.
func readAside(e *env, arg string) <-chan reading {
	done := make(chan reading, 1)
	go func() {
		r := reading{arg: arg}
		if strings.HasPrefix(arg, "git:") {
			r.policy, r.findings, r.err = loadRevision(arg)
		} else {
			r.policy, r.findings, r.err = loadPolicy(e, arg)
		}
		done <- r
	}()
	return done
}

// usable is a policy that can be compared. What only matters for putting it to
// work does not matter here, and neither do warnings.
func usable(e *env, r reading) (*policies.Policy, error) {
	if r.err != nil {
		return nil, r.err
	}
	if r.findings.HasErrors() {
		if err := writeText(e.Err, r.findings); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("cannot compare with %q, which has errors", r.arg)
	}
	return r.policy, nil
}
