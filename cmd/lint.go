package cmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"sluice/cmd/lint"
	"sluice/cmd/nginxconf"
	"sluice/policies"
)

type lintOptions struct {
	File    string
	Strict  bool
	Format  string
	Version string
}

func newLintCmd(e *env) *cobra.Command {
	var o lintOptions
	c := &cobra.Command{
		Use:   "lint-nginx FILE",
		Short: "Find what in a site would open or break the limiter",
		Long: `Reads the output of nginx -T, or an nginx.conf with what it includes; - is
standard input. Prints what in it would open the limiter, break it, or be broken
by it, as file:line:col: what is wrong; want ... [rule], sorted. Exits 1 when
there is an error, with --strict also when there is a warning.

    nginx -T 2>&1 | sluice lint-nginx -`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			o.File = args[0]
			return runLint(e, o)
		},
	}
	c.Flags().BoolVar(&o.Strict, "strict", false, "make warnings count")
	c.Flags().StringVar(&o.Format, "format", "text", findingFormats)
	c.Flags().StringVar(&o.Version, "nginx-version", "", "the NGINX that will read it, such as 1.22.1, where FILE does not say")
	return c
}

// oneFile wants exactly one file of NGINX.
func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("want one FILE: nginx.conf, the output of nginx -T, or - for standard input")
	}
	return nil
}

func runLint(e *env, o lintOptions) error {
	if err := checkFormat(o.Format); err != nil {
		return err
	}
	if o.Version != "" {
		if err := lint.CheckVersion(o.Version); err != nil {
			return usagef("--nginx-version: %w", err)
		}
	}
	site, ds, err := readSite(e, o.File)
	if err != nil {
		return err
	}
	var fine []string
	if site != nil {
		ds = lint.Run(site, lint.Options{Version: o.Version})
		servers, protected := lint.Summary(site)
		if !ds.HasErrors() {
			fine = []string{fmt.Sprintf("%s: %s, %s protected", o.File, plural(servers, "server"), plural(protected, "location"))}
		}
	}
	if err := writeFindings(e.Out, o.Format, lint.Rules(), ds, fine); err != nil {
		return err
	}
	if ds.HasErrors() || o.Strict && len(ds) > 0 {
		return errNo
	}
	return nil
}

// readSite reads a site's configuration. What NGINX would not read is a
// finding, and then there is no site.
func readSite(e *env, file string) (*nginxconf.Site, policies.Diagnostics, error) {
	var site *nginxconf.Site
	var err error
	if file == "-" {
		text, readErr := io.ReadAll(e.In)
		if readErr != nil {
			return nil, nil, fmt.Errorf("cannot read standard input: %w", readErr)
		}
		site, err = nginxconf.Read("<stdin>", string(text))
	} else {
		site, err = nginxconf.ReadFile(file)
	}
	var bad *nginxconf.Error
	switch {
	case errors.As(err, &bad):
		return nil, policies.Diagnostics{{Pos: policies.Pos{File: bad.File, Line: bad.Line, Col: bad.Col}, Message: bad.Problem, Rule: "syntax"}}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("cannot read %q: %w", file, cause(err))
	}
	return site, nil, nil
}
