package cmd

import (
	"fmt"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sluice/authz"
)

type grantOptions struct {
	Add         int64
	From, Until string
	Reason      string
	Remove      string
	Unlisted    bool
}

func newGrantCmd(e *env) *cobra.Command {
	var to clientOptions
	var o grantOptions
	c := &cobra.Command{
		Use:   "grant TENANT [LIMIT]",
		Short: "Give a tenant more of a quota for some days",
		Long: `Adds units to a quota of a tenant, in each period that the days from --from to --until touch: whole days in the limit's
time zone, both included. A grant is kept with the counters, felt by all instances within two seconds, and ends by
itself. Without --add and --remove it lists the grants. Who, when and why stand in the service's audit log.`,
		Args: tenantArg("grant", 2),
		RunE: func(c *cobra.Command, args []string) error {
			service, err := newClient(e, c.Flags(), to)
			if err != nil {
				return err
			}
			return runGrant(e, service, args, o, to.Format)
		},
	}
	f := c.Flags()
	f.Int64Var(&o.Add, "add", 0, "how many units more")
	f.StringVar(&o.From, "from", "", "the first day, such as 2026-12-01; today when left out")
	f.StringVar(&o.Until, "until", "", "the last day, such as 2026-12-31")
	f.StringVar(&o.Reason, "reason", "", "why: for the audit log")
	f.StringVar(&o.Remove, "remove", "", "take back the grant with this id")
	unlistedFlag(f, &o.Unlisted)
	to.flags(f)
	return c
}

func runGrant(e *env, service *client, args []string, o grantOptions, format string) error {
	tenant, q := args[0], pick(o.Unlisted)
	switch {
	case o.Remove != "":
		if len(args) > 1 || o.Add != 0 || o.Reason == "" {
			return usagef("grant TENANT --remove ID --reason WHY takes no LIMIT and no --add")
		}
		q.Set("reason", o.Reason)
		if err := service.do(http.MethodDelete, tenantPath(tenant, "grants", o.Remove), q, nil, nil); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.Out, "%s: %s is taken back\n", tenant, o.Remove)
		return err
	case len(args) == 1:
		if o.Add != 0 {
			return usagef("grant --add needs LIMIT, the name of a quota in the tenant's plan")
		}
		return listGrants(e, service, tenant, o, format)
	case o.Add <= 0 || o.Until == "" || o.Reason == "":
		return usagef("grant TENANT LIMIT needs --add N, --until DATE and --reason WHY")
	}
	ask := authz.GrantAsked{Limit: args[1], Add: o.Add, From: o.From, Until: o.Until, Reason: o.Reason}
	var g authz.Grant
	if err := service.do(http.MethodPost, tenantPath(tenant, "grants"), q, ask, &g); err != nil {
		return err
	}
	if format == "json" {
		return e.printJSON(g)
	}
	_, err := fmt.Fprintf(e.Out, "%s: %s + %d from %s until %s (%s)\n", tenant, g.Limit, g.Add, g.From, g.Until, g.ID)
	return err
}

func listGrants(e *env, service *client, tenant string, o grantOptions, format string) error {
	var list authz.GrantList
	if err := service.do(http.MethodGet, tenantPath(tenant, "grants"), pick(o.Unlisted), nil, &list); err != nil {
		return err
	}
	if format == "json" {
		return e.printJSON(list)
	}
	return e.printGrants(list.Grants)
}

func (e *env) printGrants(grants []authz.Grant) error {
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GRANT\tLIMIT\tADDS\tFROM\tUNTIL\tBY\tREASON")
	for i := range grants {
		g := &grants[i]
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", g.ID, g.Limit, g.Add, g.From, g.Until, g.By, g.Reason)
	}
	return w.Flush()
}
