package cmd

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/authz/directory"
	"sluice/policies"
)

type checkOptions struct {
	Policy string
	In     string
	Format string
}

func newCheckCmd(e *env) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check [POLICY]",
		Short: "Check the tenants in Redis against a policy",
		Long: `Reads all tenants, keys, claims and certificates in the Redis that serve
--tenants reads, and tells which of them would let nobody in under POLICY, and
why: a plan or a limit that it lacks, a number that it would refuse, a field that
is misspelt, a key of nobody. Exits 1 when there is one. Nothing is changed.

Run it before a policy is put in force that has lost a plan or a limit.`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			o.Policy = policyArg(args)
			if in, ok := e.LookupEnv(tenantsVariable); ok && !c.Flags().Changed("in") {
				o.In = in
			}
			return runCheck(c.Context(), e, o)
		},
	}
	c.Flags().StringVar(&o.In, "in", "", "the Redis, named as serve --tenants names it; $"+tenantsVariable+" when left out")
	c.Flags().StringVar(&o.Format, "format", "text", "text or json")
	return c
}

func runCheck(ctx context.Context, e *env, o checkOptions) error {
	switch {
	case o.Format != "text" && o.Format != "json":
		return usagef("--format %q; want text or json", o.Format)
	case o.In == "":
		return usagef("check needs --in redis://..., or $%s", tenantsVariable)
	}
	p, found, err := loadPolicy(e, o.Policy)
	if err != nil {
		return err
	}
	policy, err := compileQuietly(e, p, found)
	if err != nil {
		return err
	}
	w, err := directory.OpenWriter(o.In, slog.New(slog.DiscardHandler))
	if err != nil {
		return usagef("--in: %w", err)
	}
	defer w.Close()
	c := &recordCheck{policy: policy, tenants: map[string]*directory.Tenant{}, claims: map[string]bool{}, keys: map[string]string{}}
	if err := w.All(ctx, func(r directory.Record) error { c.look(&r); return nil }); err != nil {
		return err
	}
	c.lookForClaims()
	return c.print(e, o.Format)
}

// recordCheck looks for records that let nobody in.
type recordCheck struct {
	policy  *policies.Compiled
	tenants map[string]*directory.Tenant // by id; nil: he cannot be used
	claims  map[string]bool              // that have a record
	keys    map[string]string            // the first record with an id
	seen    int
	list    []recordProblem
}

// recordProblem is a record and what is wrong with it.
type recordProblem struct {
	Record  string `json:"record"`
	What    string `json:"what"` // for people
	Problem string `json:"problem"`
}

func (c *recordCheck) say(r *directory.Record, format string, args ...any) {
	c.list = append(c.list, recordProblem{recordName(r.Name), whatRecord(r.Name, r.Fields), fmt.Sprintf(format, args...)})
}

// look looks at a record. Tenants come first.
func (c *recordCheck) look(r *directory.Record) {
	c.seen++
	kind, name, _ := strings.Cut(r.Name, ":")
	if kind == "tenant" {
		c.tenant(r, name)
		return
	}
	if kind == "key" {
		c.key(r, name)
		return
	}
	if kind == "claim" {
		c.claims[name] = true
	}
	link, err := directory.ReadLink(r.Fields)
	if err != nil {
		c.say(r, "%v", err)
		return
	}
	t, known := c.tenants[link.TenantID]
	switch {
	case !known:
		c.say(r, "there is no tenant %s", link.TenantID)
	case kind == "cert" && !namesHash(name):
		c.say(r, notHash)
	case t != nil && kind == "claim" && t.Named() != name:
		c.say(r, "the tenant %s says another claim; want the same in both", t.ID)
	}
}

func (c *recordCheck) tenant(r *directory.Record, id string) {
	c.tenants[id] = nil
	t, err := directory.ReadTenant(id, r.Fields)
	if err == nil {
		_, err = c.policy.Admit(t.Spec)
	}
	if err != nil {
		c.say(r, "%v", err)
		return
	}
	c.tenants[id] = &t
}

func (c *recordCheck) key(r *directory.Record, name string) {
	if !namesHash(name) {
		c.say(r, notHash)
		return
	}
	hash, _ := directory.HashFrom(name)
	k, err := directory.ReadKey(hash, r.Fields)
	if err != nil {
		c.say(r, "%v", err)
		return
	}
	if first, twice := c.keys[k.ID]; twice {
		c.say(r, "the id %s is taken by %s, and both have the same counters; want another", k.ID, first)
	}
	c.keys[k.ID] = r.Name
	t, known := c.tenants[k.TenantID]
	switch {
	case !known:
		c.say(r, "there is no tenant %s", k.TenantID)
	case t == nil: // said of him
	default:
		spec := *t.Spec
		spec.Keys = []policies.KeySpec{*k.Spec}
		if _, err := c.policy.Admit(&spec); err != nil {
			c.say(r, "%s", strings.TrimPrefix(err.Error(), "keys[0]."))
		}
	}
}

const notHash = "its name is no SHA-256 in lower-case hexadecimal, so nobody finds it"

func namesHash(name string) bool {
	_, ok := directory.HashFrom(name)
	return ok && strings.ToLower(name) == name
}

// lookForClaims wants a record of every claim.
func (c *recordCheck) lookForClaims() {
	for _, id := range slices.Sorted(maps.Keys(c.tenants)) {
		if t := c.tenants[id]; t != nil && t.Claim != "" && !c.claims[t.Claim] {
			c.say(&directory.Record{Name: "tenant:" + id}, "no record says whose the claim %q is, so no token finds him", t.Claim)
		}
	}
}

func (c *recordCheck) print(e *env, format string) error {
	if format == "json" {
		if c.list == nil {
			c.list = []recordProblem{}
		}
		if err := e.printJSON(c.list); err != nil {
			return err
		}
	} else {
		for i := range c.list {
			fmt.Fprintf(e.Out, "%s: %s\n", c.list[i].What, c.list[i].Problem)
		}
		if _, err := fmt.Fprintf(e.Out, "%s, %s\n", plural(c.seen, "record"), plural(len(c.list), "problem")); err != nil {
			return err
		}
	}
	if len(c.list) > 0 {
		return errNo
	}
	return nil
}
