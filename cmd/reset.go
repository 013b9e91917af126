package cmd

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"sluice/authz"
)

func newResetCmd(e *env) *cobra.Command {
	var to clientOptions
	var o whomOptions
	var reason string
	c := &cobra.Command{
		Use:   "reset TENANT [LIMIT]",
		Short: "Make a tenant's counters begin anew",
		Long: `Forgets what was counted of a tenant, for one limit or for all: a denial is lifted at once. Counters for an address or a
user are reset only with --ip or --user. Who, when, why and what the counters held stand in the service's audit log.`,
		Args: tenantArg("reset", 2),
		RunE: func(c *cobra.Command, args []string) error {
			service, err := newClient(e, c.Flags(), to)
			if err != nil {
				return err
			}
			if reason == "" {
				return usagef("reset needs --reason WHY: it stands in the audit log")
			}
			ask := authz.ResetAsked{Key: o.Key, IP: o.IP, User: o.User, Reason: reason}
			if len(args) > 1 {
				ask.Limit = args[1]
			}
			var done authz.ResetDone
			if err := service.do(http.MethodPost, tenantPath(args[0], "reset"), pick(o.Unlisted), ask, &done); err != nil {
				return err
			}
			if to.Format == "json" {
				return e.printJSON(done)
			}
			fmt.Fprintf(e.Out, "%s: %s reset, which held\n\n", done.Tenant, plural(len(done.Before), "counter"))
			return e.printCounters(done.Before)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why: for the audit log")
	o.flags(c.Flags())
	to.flags(c.Flags())
	return c
}
