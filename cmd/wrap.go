package cmd

import (
	"strings"
	"unicode/utf8"
)

// pageWidth is how wide text is, in columns: what every terminal has.
const pageWidth = 80

// pad fills a word with spaces up to a width.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// wrapIndent breaks a text into lines; those after the first are indented more.
func wrapIndent(text string, first, more int) []string {
	lines := wrap(text, pageWidth-more)
	for i := range lines {
		n := more
		if i == 0 {
			n = first
		}
		lines[i] = strings.Repeat(" ", n) + lines[i]
	}
	return lines
}
