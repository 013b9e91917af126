package cmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

func newInitCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a first policy and its tests, and say what to add to NGINX",
		Long: `Writes DIR/policy.yaml, a small policy to begin with, and DIR/policy_test.yaml,
its tests, and says which lines to add to NGINX; where DIR holds an nginx.conf,
in which file and after which line. DIR is the current directory when left out.
Nothing that is there is overwritten.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("one DIR at a time; got %q", args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return runInit(e, dir)
		},
	}
}

func runInit(e *env, dir string) error {
	policy := filepath.Join(dir, "policy.yaml")
	site, err := initSite(e, filepath.Join(dir, "nginx.conf"))
	if err != nil {
		return err
	}
	tests := filepath.Join(dir, "policy_test.yaml")
	for _, name := range []string{policy, tests} {
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("cannot write %q: it is there already, and nothing is overwritten", name)
		}
	}
	if err := errors.Join(writeNew(policy, starterPolicy), writeNew(tests, starterTests)); err != nil {
		return err
	}
	p, ds := policies.Parse(policy, []byte(starterPolicy), func(policies.FileName) ([]byte, error) { return nil, fs.ErrNotExist })
	if ds.HasErrors() {
		panic("BUG: the first policy is not good: " + ds[0].String())
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: written\n%s: written\n\nCheck the policy, run its tests, and render it into the directory of your nginx.conf:\n\n", policy, tests)
	fmt.Fprintf(&b, "    sluice validate %s\n    sluice test %s\n    sluice render %s --out %s\n\n", policy, tests, policy, filepath.Clean(dir))
	if site == nil {
		b.WriteString(anywhere)
	} else {
		b.WriteString(additions(site, policies.Compile(p)))
	}
	b.WriteString("\nThen look for what would be in the way, test, and reload:\n\n    nginx -T 2>&1 | sluice lint-nginx -\n    nginx -t && nginx -s reload\n")
	_, err = fmt.Fprint(e.Out, b.String())
	return err
}

// writeNew writes a file that is not there yet.
func writeNew(name, text string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("cannot make directory %q: %w", filepath.Dir(name), cause(err))
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("cannot write %q: it is there already, and nothing is overwritten", name)
	case err != nil:
		return fmt.Errorf("cannot write %q: %w", name, cause(err))
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	return nil
}

// initSite reads the nginx.conf of a directory; nil when there is none that
// can be read, which is said.
func initSite(e *env, conf string) (*nginxconf.Site, error) {
	if _, err := os.Stat(conf); err != nil {
		return nil, nil
	}
	site, ds, err := readSite(e, conf)
	if err != nil {
		return nil, err
	}
	return site, writeText(e.Err, ds)
}

// anywhere are the lines to add where no nginx.conf says where.
const anywhere = `Add to your NGINX, once each:

    http {
        include sluice/real_ip.conf;         # not if you have set_real_ip_from
        include sluice/http.conf;

        server {                             # each server
            include sluice/server.conf;

            location / {
                include sluice/routes/site.conf;   # the first line; NAME.conf of the route
`
