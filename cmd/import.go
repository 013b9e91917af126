package cmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"sluice/cmd/importer"
	"sluice/policies"
)

func newImportCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Turn the limits of an NGINX site into a policy",
		Long: `Reads an nginx.conf with what it includes, or the output of nginx -T; - is
standard input. Prints a policy that says what the site's limit_req, limit_conn,
allow, deny, geo, map, set_real_ip_from and auth_request say, each line with the
place it is from. What the policy does not say as the site did goes to standard
error, and into comments.

    nginx -T | sluice import - >policy.yaml`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			return runImport(e, args[0])
		},
	}
}

func runImport(e *env, file string) error {
	site, ds, err := readSite(e, file)
	if err != nil {
		return err
	}
	if site == nil {
		if err := writeText(e.Err, ds); err != nil {
			return err
		}
		return errNo
	}
	r := importer.Import(site)
	if err := writeText(e.Err, r.Notes); err != nil {
		return err
	}
	// What is printed is a policy: a mistake of ours must not go by unseen.
	_, found := policies.Parse("the imported policy", r.Policy, func(policies.FileName) ([]byte, error) { return nil, os.ErrNotExist })
	if found.HasErrors() {
		_ = writeText(e.Err, found)
		return fmt.Errorf("cannot say what %q says in a policy", file)
	}
	_, err = e.Out.Write(r.Policy)
	return err
}
