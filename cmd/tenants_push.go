package cmd

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"sluice/authz/directory"
	"sluice/policies"
)

// tenantsVariable is where serve and push find the Redis of tenants.
const tenantsVariable = "SLUICE_TENANTS"

type pushOptions struct {
	Policy string
	Files  []string
	To     string
	DryRun bool
	Prune  bool
	Format string
}

func newPushCmd(e *env) *cobra.Command {
	var o pushOptions
	c := &cobra.Command{
		Use:   "push POLICY [TENANT_FILE...]",
		Short: "Write the tenants of a policy into Redis",
		Long: `Writes the tenants of POLICY, those of its tenant_files, and those of each
TENANT_FILE (a list of tenants, as tenant_files have it) into the Redis that
serve --tenants reads. They are checked against the plans of POLICY first, and
nothing is written when one is wrong. Running services feel each change at once.

Only what differs is written, so that it can be run again. What Redis has
besides is listed and left alone; --prune removes it: keys that are no longer in
the files are good until then.

The URL may hold a password: better in ` + tenantsVariable + ` than in --to.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("push needs POLICY, whose plans the tenants have")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			o.Policy, o.Files = args[0], args[1:]
			if to, ok := e.LookupEnv(tenantsVariable); ok && !c.Flags().Changed("to") {
				o.To = to
			}
			return runPush(c.Context(), e, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.To, "to", "", "the Redis, named as serve --tenants names it; $"+tenantsVariable+" when left out")
	f.BoolVar(&o.DryRun, "dry-run", false, "show what would change, and change nothing")
	f.BoolVar(&o.Prune, "prune", false, "also remove tenants, keys, claims and certificates that are not in the files")
	f.StringVar(&o.Format, "format", "text", "text or json")
	return c
}

func runPush(ctx context.Context, e *env, o pushOptions) error {
	switch {
	case o.Format != "text" && o.Format != "json":
		return usagef("--format %q; want text or json", o.Format)
	case o.To == "":
		return usagef("push needs --to redis://..., or $%s", tenantsVariable)
	}
	wanted, err := wantedRecords(e, o)
	if err != nil {
		return err
	}
	if o.Prune && len(wanted) == 0 {
		return usagef("--prune would remove all tenants, for there is none in the files")
	}
	w, err := directory.OpenWriter(o.To, slog.New(slog.DiscardHandler))
	if err != nil {
		return usagef("--to: %w", err)
	}
	defer w.Close()
	d, err := w.Compare(ctx, wanted)
	if err != nil {
		return err
	}
	changes := d.Changes
	if o.Prune {
		changes = append(changes, d.Others...)
	}
	if !o.DryRun {
		if made, err := w.Apply(ctx, changes); err != nil {
			return fmt.Errorf("%d of %d changes were made: %w; run it again", made, len(changes), err)
		}
	}
	report := newPushReport(d, o)
	if o.Format == "json" {
		return e.printJSON(report)
	}
	return report.print(e.Out)
}

// wantedRecords are the records of all tenants of a policy and files. Findings are
// printed; an error among them ends the verb.
func wantedRecords(e *env, o pushOptions) ([]directory.Record, error) {
	if _, err := os.Stat(o.Policy); err != nil {
		return nil, fmt.Errorf("cannot read policy %q: %w", o.Policy, cause(err))
	}
	p, found := policies.LoadWith(o.Policy, o.Files)
	if _, err := compileLoaded(e, p, found); err != nil {
		return nil, err
	}
	// A service may well serve the policy without these tenants.
	bare := *p
	bare.Tenants, bare.TenantFiles = nil, nil
	without := policies.Compile(&bare)
	var wanted []directory.Record
	for i := range p.Tenants {
		t := &p.Tenants[i]
		if _, err := without.Admit(t); err != nil {
			return nil, fmt.Errorf("tenant %s: %w", t.ID, err)
		}
		records, err := directory.RecordsOf(t)
		if err != nil {
			return nil, err
		}
		wanted = append(wanted, records...)
	}
	return wanted, nil
}
