package cmd

import (
	"github.com/spf13/cobra"

	"sluice/policies"
)

func newSchemaCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [policy|tenants|tests]",
		Short: "Print the JSON Schema that editors complete and check policies with",
		Long: `Prints the JSON Schema (draft 7) of a policy, of a file that tenant_files
names, or of a file of policy tests. Editors with a YAML language server take it from the first line of a
file:

  # yaml-language-server: $schema=policy.schema.json

A schema knows keys and forms; what refers to something else, or depends on it,
is for sluice validate.`,
		ValidArgs: []string{"policy", "tenants", "tests"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("schema of %q; want one of policy, tenants and tests", args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			what := "policy"
			if len(args) == 1 {
				what = args[0]
			}
			of, ok := map[string]policies.SchemaOf{
				"policy": policies.SchemaPolicy, "tenants": policies.SchemaTenants, "tests": policies.SchemaTests,
			}[what]
			if !ok {
				return usagef("schema of %q; want policy, tenants or tests", what)
			}
			_, err := e.Out.Write(policies.Schema(of))
			return err
		},
	}
}
