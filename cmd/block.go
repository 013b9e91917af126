package cmd

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"sluice/authz"
)

type blockOptions struct {
	Until    string
	Reason   string
	Unlisted bool
}

func newBlockCmd(e *env) *cobra.Command {
	var to clientOptions
	var o blockOptions
	c := &cobra.Command{
		Use:   "block TENANT",
		Short: "Refuse everything to a tenant until a time",
		Long: `Every request of the tenant is answered 403 until then, by all instances within two seconds. A block ends by itself, or by
unblock. For ever is "disabled: true" in the policy.`,
		Args: tenantArg("block", 1),
		RunE: func(c *cobra.Command, args []string) error {
			service, err := newClient(e, c.Flags(), to)
			if err != nil {
				return err
			}
			return runBlock(e, service, args[0], o, to.Format)
		},
	}
	c.Flags().StringVar(&o.Until, "until", "", "when it ends: 2026-12-01T18:00:00Z, or from now: 2h")
	c.Flags().StringVar(&o.Reason, "reason", "", "why: for the audit log")
	unlistedFlag(c.Flags(), &o.Unlisted)
	to.flags(c.Flags())
	return c
}

func runBlock(e *env, service *client, tenant string, o blockOptions, format string) error {
	if o.Until == "" || o.Reason == "" {
		return usagef("block needs --until TIME and --reason WHY")
	}
	until, err := time.Parse(time.RFC3339, o.Until)
	if err != nil {
		d, durationErr := time.ParseDuration(o.Until)
		if durationErr != nil {
			return usagef("--until %q; want a time such as 2026-12-01T18:00:00Z, or how long, such as 2h", o.Until)
		}
		until = time.Now().Add(d)
	}
	var b authz.Block
	if err := service.do(http.MethodPut, tenantPath(tenant, "block"), pick(o.Unlisted), authz.BlockAsked{Until: until, Reason: o.Reason}, &b); err != nil {
		return err
	}
	if format == "json" {
		return e.printJSON(b)
	}
	_, err = fmt.Fprintf(e.Out, "%s: blocked until %s\n", tenant, when(&b.Until))
	return err
}

func newUnblockCmd(e *env) *cobra.Command {
	var to clientOptions
	var o blockOptions
	c := &cobra.Command{
		Use:   "unblock TENANT",
		Short: "Lift a block",
		Args:  tenantArg("unblock", 1),
		RunE: func(c *cobra.Command, args []string) error {
			service, err := newClient(e, c.Flags(), to)
			if err != nil {
				return err
			}
			if o.Reason == "" {
				return usagef("unblock needs --reason WHY: it stands in the audit log")
			}
			q := pick(o.Unlisted)
			q.Set("reason", o.Reason)
			if err := service.do(http.MethodDelete, tenantPath(args[0], "block"), q, nil, nil); err != nil {
				return err
			}
			_, err = fmt.Fprintf(e.Out, "%s: not blocked any more\n", args[0])
			return err
		},
	}
	c.Flags().StringVar(&o.Reason, "reason", "", "why: for the audit log")
	unlistedFlag(c.Flags(), &o.Unlisted)
	to.flags(c.Flags())
	return c
}
