package cmd

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"

	"github.com/spf13/cobra"

	"sluice/policies"
)

func newKeyCmd(e *env) *cobra.Command {
	key := &cobra.Command{
		Use:   "key",
		Short: "Work with API keys",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	key.AddCommand(newKeyNewCmd(e))
	return key
}

type keyNewOptions struct {
	ID     string
	Prefix string
}

func newKeyNewCmd(e *env) *cobra.Command {
	var o keyNewOptions
	c := &cobra.Command{
		Use:   "new",
		Short: "Print a new API key once, and the hash that goes into the policy",
		Long: `Makes an API key of 256 random bits. The key is printed once and kept nowhere;
the policy holds only its SHA-256.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error { return runKeyNew(e, o) },
	}
	c.Flags().StringVar(&o.ID, "id", "new-key", "the key's id in the policy")
	c.Flags().StringVar(&o.Prefix, "prefix", "sk_", "what the key begins with")
	return c
}

func runKeyNew(e *env, o keyNewOptions) error {
	var id policies.Name
	if err := id.UnmarshalText([]byte(o.ID)); err != nil {
		return usagef("--id %q: %w", o.ID, err)
	}
	var prefix policies.Prefix
	if err := prefix.UnmarshalText([]byte(o.Prefix)); o.Prefix != "" && err != nil {
		return usagef("--prefix %q: %w", o.Prefix, err)
	}
	// 52 letters of base 32 carry 260 bits.
	key := o.Prefix + rand.Text() + rand.Text()
	_, err := fmt.Fprintf(e.Out, "key:    %s\nsha256: %x\n\nIn the policy, below the tenant's keys:\n  - {id: %s, sha256: %[2]x}\n",
		key, sha256.Sum256([]byte(key)), id)
	return err
}
