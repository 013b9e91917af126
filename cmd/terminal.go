package cmd

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// widthOf is how many columns there are to write to: COLUMNS, or the terminal's
// own, or what every terminal has.
func widthOf(e *env, w io.Writer) int {
	if s, ok := e.LookupEnv("COLUMNS"); ok {
		if n, err := strconv.Atoi(s); err == nil && n > 0 {
			return n
		}
	}
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

// onTerminal tells whether somebody watches.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
