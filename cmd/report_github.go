package cmd

import (
	"fmt"
	"io"
	"strings"

	"sluice/policies"
)

// writeGitHub writes the findings as commands that GitHub Actions turns into
// annotations of the changed lines.
func writeGitHub(w io.Writer, ds policies.Diagnostics) error {
	columns := columns{}
	for _, d := range ds {
		level := "error"
		if d.Warning {
			level = "warning"
		}
		at := "file=" + githubProperty(d.Pos.File)
		if d.Pos.Line > 0 {
			at += fmt.Sprintf(",line=%d,col=%d", d.Pos.Line, columns.of(d.Pos))
		}
		text := d.Message
		if d.Path != "" {
			text = d.Path + ": " + text
		}
		if _, err := fmt.Fprintf(w, "::%s %s,title=%s::%s\n", level, at, githubProperty("sluice "+d.Rule), githubText(text)); err != nil {
			return err
		}
	}
	return nil
}

// githubText escapes what would end the text of a command, or begin another one.
func githubText(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

// githubProperty escapes what would end a property of a command.
func githubProperty(s string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(githubText(s))
}
