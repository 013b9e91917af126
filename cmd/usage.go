package cmd

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice/authz"
)

// whomOptions narrow down a tenant's counters.
type whomOptions struct {
	Key, IP, User, Limit string
	Unlisted             bool
}

func (o *whomOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.Key, "key", "", "the id of an API key: its own counters alone")
	f.StringVar(&o.IP, "ip", "", "an address: the tenant's counters for it, too")
	f.StringVar(&o.User, "user", "", "a user: the tenant's counters for him, too")
	unlistedFlag(f, &o.Unlisted)
}

func unlistedFlag(f *pflag.FlagSet, unlisted *bool) {
	f.BoolVar(unlisted, "unlisted", false, "TENANT is in no file: tokens and logins alone name it")
}

// pick is the query that means the tenant.
func pick(unlisted bool) url.Values {
	q := url.Values{}
	if unlisted {
		q.Set("unlisted", "1")
	}
	return q
}

func newUsageCmd(e *env) *cobra.Command {
	var to clientOptions
	var whom whomOptions
	c := &cobra.Command{
		Use:   "usage TENANT",
		Short: "Show what a tenant has used and has left",
		Long: `Asks the running service for every counter of a tenant: what it has used, what is left, and when it begins anew.
Looking charges nothing.`,
		Args: tenantArg("usage", 1),
		RunE: func(c *cobra.Command, args []string) error {
			service, err := newClient(e, c.Flags(), to)
			if err != nil {
				return err
			}
			return runUsage(e, service, args[0], whom, to.Format)
		},
	}
	to.flags(c.Flags())
	whom.flags(c.Flags())
	c.Flags().StringVar(&whom.Limit, "limit", "", "this limit alone")
	return c
}

// tenantArg wants a TENANT and at most so many arguments.
func tenantArg(verb string, most int) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return usagef("%s needs TENANT, the id of a tenant; `sluice tenants` lists them", verb)
		case len(args) > most:
			return usagef("unexpected argument %q", args[most])
		}
		return nil
	}
}

func runUsage(e *env, service *client, tenant string, whom whomOptions, format string) error {
	q := pick(whom.Unlisted)
	for name, value := range map[string]string{"key": whom.Key, "ip": whom.IP, "user": whom.User, "limit": whom.Limit} {
		if value != "" {
			q.Set(name, value)
		}
	}
	var u authz.Usage
	if err := service.do(http.MethodGet, tenantPath(tenant, "usage"), q, nil, &u); err != nil {
		return err
	}
	if format == "json" {
		return e.printJSON(u)
	}
	return e.printUsage(&u)
}

func (e *env) printUsage(u *authz.Usage) error {
	state := ""
	switch {
	case u.Disabled:
		state = ", disabled"
	case u.Blocked != nil:
		state = fmt.Sprintf(", blocked until %s by %s: %s", when(&u.Blocked.Until), u.Blocked.By, u.Blocked.Reason)
	case u.Unlisted:
		state = ", unlisted"
	}
	fmt.Fprintf(e.Out, "%s: plan %s%s\n\n", u.Tenant, u.Plan, state)
	if err := e.printCounters(u.Counters); err != nil {
		return err
	}
	if len(u.Grants) > 0 {
		fmt.Fprintln(e.Out)
		if err := e.printGrants(u.Grants); err != nil {
			return err
		}
	}
	if len(u.Unseen) > 0 {
		fmt.Fprintf(e.Out, "\nnot shown, for each has many counters: %s (see --ip, --user)\n", strings.Join(u.Unseen, ", "))
	}
	if u.Truncated {
		fmt.Fprintln(e.Out, "\nthere are more counters; see --key and --limit")
	}
	return nil
}

func (e *env) printCounters(counters []authz.Counter) error {
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LIMIT\tKIND\tWHOM\tUSED\tOF\tLEFT\tRESETS")
	for i := range counters {
		c := &counters[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", c.Limit, kindOf(c), whom(c), c.Used, number(c.Max, "unlimited"), number(c.Remaining, "-"), when(c.Reset))
	}
	return w.Flush()
}

func kindOf(c *authz.Counter) string {
	if c.Shadow {
		return string(c.Kind) + " (shadow)"
	}
	return string(c.Kind)
}

// whom says whom a counter counts.
func whom(c *authz.Counter) string {
	var parts []string
	for _, p := range [][2]string{{"key", c.Key}, {"user", c.User}, {"ip", c.IP}, {"route", c.Route}} {
		if p[1] != "" {
			parts = append(parts, p[0]+"="+p[1])
		}
	}
	if parts == nil {
		return "all"
	}
	return strings.Join(parts, " ")
}

func number(n *int64, none string) string {
	if n == nil {
		return none
	}
	return strconv.FormatInt(*n, 10)
}

func when(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

func newTenantsCmd(e *env) *cobra.Command {
	var to clientOptions
	c := &cobra.Command{
		Use:   "tenants",
		Short: "List the tenants that the running service knows",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			service, err := newClient(e, c.Flags(), to)
			if err != nil {
				return err
			}
			return runTenants(e, service, to.Format)
		},
	}
	to.flags(c.Flags())
	c.AddCommand(newPushCmd(e), newCheckCmd(e))
	return c
}

func runTenants(e *env, service *client, format string) error {
	all := []authz.TenantLine{}
	for after := ""; ; {
		var page authz.TenantsPage
		if err := service.do(http.MethodGet, "/v1/tenants", url.Values{"after": {after}, "size": {"1000"}}, nil, &page); err != nil {
			return err
		}
		all = slices.Concat(all, page.Tenants)
		if after = page.Next; after == "" {
			break
		}
	}
	if format == "json" {
		return e.printJSON(all)
	}
	w := tabwriter.NewWriter(e.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TENANT\tPLAN\tKEYS\tGRANTS\tSTATE")
	for i := range all {
		t := &all[i]
		state := "-"
		switch {
		case t.Disabled:
			state = "disabled"
		case t.Blocked != nil:
			state = "blocked until " + when(&t.Blocked.Until)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\n", t.ID, t.Plan, t.Keys, t.Grants, state)
	}
	return w.Flush()
}
