package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sluice/gen"
	"sluice/policies"
)

type validateOptions struct {
	Policies []string
	Strict   bool
	NGINX    bool
	Format   string
	Geo      geoOptions
}

func newValidateCmd(e *env) *cobra.Command {
	var o validateOptions
	c := &cobra.Command{
		Use:   "validate [POLICY...]",
		Short: "Check policies and print every finding",
		Long: `Checks policies and prints every finding as
file:line:col: path: what is wrong; want ... [rule], sorted. Exits 1 when there
is an error, with --strict also when there is a warning.`,
		RunE: func(c *cobra.Command, args []string) error {
			o.Policies = args
			return runValidate(c.Context(), e, o)
		},
	}
	c.Flags().BoolVar(&o.Strict, "strict", false, "make warnings count")
	c.Flags().BoolVar(&o.NGINX, "nginx", false, "also render and run nginx -t, away from the system's nginx")
	c.Flags().StringVar(&o.Format, "format", "text", findingFormats)
	o.Geo.flags(c.Flags())
	return c
}

func runValidate(ctx context.Context, e *env, o validateOptions) error {
	if err := checkFormat(o.Format); err != nil {
		return err
	}
	if len(o.Policies) == 0 {
		o.Policies = []string{policyArg(nil)}
	}
	opt := gen.Options{Version: version(), Full: true, Upstreams: []string{"127.0.0.1:8080"}}
	if err := o.Geo.open(&opt); err != nil {
		return err
	}
	var all policies.Diagnostics
	var fine []string
	for _, arg := range o.Policies {
		p, ds, err := loadPolicy(e, arg)
		if err != nil {
			return err
		}
		if o.NGINX && !ds.HasErrors() {
			if ds, err = checkNGINX(ctx, p, ds, opt); err != nil {
				return err
			}
		}
		all = append(all, ds...)
		if !ds.HasErrors() {
			fine = append(fine, fmt.Sprintf("%s: ok: %s", arg, summary(p)))
		}
	}
	if err := writeFindings(e.Out, o.Format, policies.Rules(), all, fine); err != nil {
		return err
	}
	if all.HasErrors() || (o.Strict && len(all) > 0) {
		return errNo
	}
	return nil
}

// checkNGINX renders a good policy and has nginx test the result. What nginx
// refuses is a finding about the place of the policy that gave it.
func checkNGINX(ctx context.Context, p *policies.Policy, ds policies.Diagnostics, opt gen.Options) (policies.Diagnostics, error) {
	c, ds := ready(p, ds)
	if c == nil {
		return ds, nil
	}
	files, origins, err := gen.RenderTraced(c, opt)
	if err != nil {
		return nil, err
	}
	err = gen.Check(ctx, "nginx", files)
	var refused *gen.Refused
	if !errors.As(err, &refused) {
		return ds, err
	}
	for _, what := range refused.Complaints {
		rendered := ""
		if what.File != "" {
			rendered = fmt.Sprintf("%s:%d", what.File, what.Line)
		}
		ds = append(ds, p.Refused(origins.Path(what.File, what.Line), rendered, files.Line(what.File, what.Line), what.Message))
	}
	ds.Sort()
	return ds, nil
}

// summary says what a policy holds, in a few words.
func summary(p *policies.Policy) string {
	return fmt.Sprintf("%s, %s, %s", plural(len(p.Routes), "route"), plural(len(p.Plans), "plan"), plural(len(p.Tenants), "tenant"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
