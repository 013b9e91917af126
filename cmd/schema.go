package cmd

import (
	"github.com/spf13/cobra"

	"sluice/policies"
)

func newSchemaCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [policy|tenants]",
		Short: "Print the JSON Schema that editors complete and check policies with",
		Long: `Prints the JSON Schema (draft 7) of a policy, or of a file that tenant_files
names. Editors with a YAML language server take it from the first line of a
file:

  # yaml-language-server: $schema=policy.schema.json

A schema knows keys and forms; what refers to something else, or depends on it,
is for sluice validate.`,
		ValidArgs: []string{"policy", "tenants"},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && args[0] != "policy" && args[0] != "tenants" {
				return usagef("schema of %q; want policy or tenants", args)
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			of := policies.SchemaPolicy
			if len(args) == 1 && args[0] == "tenants" {
				of = policies.SchemaTenants
			}
			_, err := e.Out.Write(policies.Schema(of))
			return err
		},
	}
}
