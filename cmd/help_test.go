package cmd

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestHelp: the help of each verb fits a narrow terminal, says what the verb does
// in more than its own name, and ends what it begins.
func TestHelp(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line of %d characters: %s", c.CommandPath(), n, line)
			}
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || !strings.Contains(c.Short, " ") {
			t.Errorf("%s: the short help is %q", c.CommandPath(), c.Short)
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	root := newRootCmd(&env{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, LookupEnv: func(string) (string, bool) { return "", false }})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" && c.Name() != "help" { // cobra's own
			walk(c)
		}
	}
}
