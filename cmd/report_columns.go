package cmd

import (
	"bytes"
	"os"
	"unicode/utf8"

	"sluice/policies"
)

// columns turns the byte columns of findings into columns of characters, which
// is what reports for other programs count. It reads each file once.
type columns map[string][][]byte

// of is the column of a place in characters. A file that cannot be read again,
// such as standard input, keeps its bytes.
func (c columns) of(pos policies.Pos) int {
	lines, known := c[pos.File]
	if !known {
		if text, err := os.ReadFile(pos.File); err == nil {
			lines = bytes.Split(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\n"))
		}
		c[pos.File] = lines
	}
	if pos.Line < 1 || pos.Line > len(lines) || pos.Col < 1 || pos.Col-1 > len(lines[pos.Line-1]) {
		return pos.Col
	}
	return utf8.RuneCount(lines[pos.Line-1][:pos.Col-1]) + 1
}
