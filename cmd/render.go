package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"sluice/gen"
	"sluice/policies"
)

type renderOptions struct {
	Policy string
	Out    string
	Check  bool
	Shrunk bool // lists of trusted proxies may have lost half
	Geo    geoOptions
	Gen    gen.Options
}

func newRenderCmd(e *env) *cobra.Command {
	var o renderOptions
	c := &cobra.Command{
		Use:   "render [POLICY] --out DIR",
		Short: "Write the NGINX configuration of a policy",
		Long: `Writes NGINX configuration below DIR/sluice, where DIR is the directory of your
nginx.conf. Files that no longer belong are removed; a file that Sluice did not
write is never touched. With --check nothing is written: the exit status is 1
when DIR differs from what would be.`,
		Args: atMostOne,
		RunE: func(_ *cobra.Command, args []string) error {
			o.Policy = policyArg(args)
			return runRender(e, o)
		},
	}
	f := c.Flags()
	o.Geo.flags(f)
	f.StringVar(&o.Out, "out", "", "the directory of nginx.conf (required)")
	f.BoolVar(&o.Check, "check", false, "compare with DIR instead of writing; exit 1 on drift")
	f.BoolVar(&o.Shrunk, "accept-shrunk", false, "render although a list file of trusted proxies lost half of its entries since DIR was rendered")
	f.BoolVar(&o.Gen.Full, "full", false, "also write a whole nginx.conf")
	f.StringArrayVar(&o.Gen.Authz, "authz", []string{"127.0.0.1:9180"}, "where the service listens: HOST:PORT or unix:PATH (repeatable)")
	f.StringArrayVar(&o.Gen.Datagrams, "datagrams", []string{"127.0.0.1:9182"}, "where completion datagrams go: HOST:PORT (repeatable)")
	f.StringVar(&o.Gen.CacheDir, "cache-dir", gen.DefaultCacheDir, "where NGINX keeps denials for a moment: a folder that it makes, in one that is there; on tmpfs, one for each NGINX")
	f.StringVar(&o.Gen.LoginSocket, "login-socket", "unix:/run/sluice-login.sock", "where the server of sluice/chain.conf listens, which asks a chained authenticator")
	f.BoolVar(&o.Gen.NoDenyCache, "no-deny-cache", false, "let NGINX keep no denials: every refused request asks the service")
	f.StringArrayVar(&o.Gen.Upstreams, "upstream", nil, "the application: HOST:PORT or unix:PATH (repeatable)")
	f.StringArrayVar(&o.Gen.Listen, "listen", nil, "with --full: what the servers listen on (repeatable; default 127.0.0.1:8080)")
	return c
}

func runRender(e *env, o renderOptions) error {
	if o.Out == "" {
		return usagef("render needs --out DIR")
	}
	if o.Gen.Full && len(o.Gen.Upstreams) == 0 {
		return usagef("render --full needs --upstream HOST:PORT, the application behind NGINX")
	}
	c, err := compilePolicy(e, o.Policy)
	if err != nil {
		return err
	}
	if err := o.Geo.open(&o.Gen); err != nil {
		return err
	}
	o.Gen.Version = version()
	files, err := gen.Render(c, o.Gen)
	if err != nil {
		return fmt.Errorf("cannot render policy %q: %w", o.Policy, err)
	}
	if !o.Shrunk {
		if err := checkShrunk(e, files, o.Out); err != nil {
			return err
		}
	}
	if o.Check {
		return checkDrift(e, files, o.Out)
	}
	if err := files.Write(o.Out); err != nil {
		return fmt.Errorf("cannot write to %q: %w", o.Out, err)
	}
	_, err = fmt.Fprintf(e.Out, "%s: %s, policy %s%s\n", o.Out, plural(len(files), "file"), c.Hash, zones(c))
	return err
}

// zones is what the edge limits cost: memory that NGINX takes when it starts.
func zones(c *policies.Compiled) string {
	count, kilobytes := gen.Zones(c)
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(", %s of %s in all", plural(count, "zone"), gen.Megabytes(kilobytes))
}

// checkShrunk refuses lists of trusted proxies that look cut short: what they
// lack would count as clients, and one of them as a whole continent.
func checkShrunk(e *env, files gen.Files, dir string) error {
	shrunk, err := files.Shrunk(dir)
	if err != nil {
		return fmt.Errorf("cannot compare with %q: %w", dir, err)
	}
	for _, s := range shrunk {
		if _, err := fmt.Fprintf(e.Err, "%s; want the whole list, or --accept-shrunk when it is right\n", s); err != nil {
			return err
		}
	}
	if len(shrunk) > 0 {
		return errNo
	}
	return nil
}

// checkDrift says how a directory differs from what would be rendered.
func checkDrift(e *env, files gen.Files, dir string) error {
	changes, err := files.Diff(dir)
	if err != nil {
		return fmt.Errorf("cannot compare with %q: %w", dir, err)
	}
	for _, change := range changes {
		if _, err := fmt.Fprintln(e.Out, change); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		return errNo
	}
	_, err = fmt.Fprintf(e.Out, "%s: up to date\n", dir)
	return err
}
