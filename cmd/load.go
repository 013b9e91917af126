package cmd

import (
	"fmt"
	"io"
	"os"
	"slices"

	"sluice/policies"
)

// loadPolicy reads and checks the policy that an argument names; "-" is
// standard input, whose list files are relative to the working directory.
func loadPolicy(e *env, arg string) (*policies.Policy, policies.Diagnostics, error) {
	if arg != "-" {
		if _, err := os.Stat(arg); err != nil {
			return nil, nil, fmt.Errorf("cannot read policy %q: %w", arg, cause(err))
		}
		p, ds := policies.Load(arg)
		return p, ds, nil
	}
	src, err := io.ReadAll(e.In)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read policy from standard input: %w", err)
	}
	p, ds := policies.ParseIn(".", "<stdin>", src)
	return p, ds, nil
}

// cause strips the verb and path that a *os.PathError repeats.
func cause(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err
	}
	return err
}

// ready compiles a policy that is to be put to work. It is nil when the findings
// have an error.
func ready(p *policies.Policy, ds policies.Diagnostics) (*policies.Compiled, policies.Diagnostics) {
	if ds.HasErrors() {
		return nil, ds
	}
	return policies.Compile(p), ds
}

// compilePolicy loads a policy that is to be put to work. Findings are printed;
// an error among them ends the verb.
func compilePolicy(e *env, arg string) (*policies.Compiled, error) {
	p, ds, err := loadPolicy(e, arg)
	if err != nil {
		return nil, err
	}
	return compileLoaded(e, p, ds)
}

func compileLoaded(e *env, p *policies.Policy, ds policies.Diagnostics) (*policies.Compiled, error) {
	c, ds := ready(p, ds)
	if err := writeText(e.Err, ds); err != nil {
		return nil, err
	}
	if c == nil {
		return nil, errNo
	}
	return c, nil
}

// compileQuietly is compileLoaded for verbs whose answer is about something else
// than the policy: warnings are not printed.
func compileQuietly(e *env, p *policies.Policy, ds policies.Diagnostics) (*policies.Compiled, error) {
	return compileLoaded(e, p, slices.DeleteFunc(ds, func(d policies.Diagnostic) bool { return d.Warning }))
}
