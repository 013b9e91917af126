package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newManCmd(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages",
		Long: `Writes a manual page for each verb into DIR, which is made if it is not there:
sluice.1, sluice-render.1, ...`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("man needs DIR, the folder for the pages")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("cannot make %q: %w", args[0], cause(err))
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			date := built()
			header := &doc.GenManHeader{Section: "1", Source: "sluice " + version(), Manual: "Sluice", Date: &date}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("cannot write the manual: %w", err)
			}
			pages, err := filepath.Glob(filepath.Join(args[0], "sluice*.1"))
			if err == nil {
				_, err = fmt.Fprintf(e.Out, "%s: %s\n", args[0], plural(len(pages), "page"))
			}
			return err
		},
	}
}

// built is the time of the commit that was built, so that the same program writes
// the same pages on every day.
func built() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if t, err := time.Parse(time.RFC3339, s.Value); s.Key == "vcs.time" && err == nil {
				return t
			}
		}
	}
	return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
}
