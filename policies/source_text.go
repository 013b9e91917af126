package policies

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// encoding8 finds the first thing in a file that is not plain UTF-8 text.
func encoding8(s *source) *Diagnostic {
	if bytes.HasPrefix(s.text, []byte("\xff\xfe")) || bytes.HasPrefix(s.text, []byte("\xfe\xff")) {
		return &Diagnostic{Pos: Pos{File: s.name}, Message: "the file is in UTF-16; want UTF-8", Rule: ruleEncoding}
	}
	for i := 0; i < len(s.text); {
		b := s.text[i]
		if b >= ' ' && b < 0x7f || b == '\n' || b == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRune(s.text[i:])
		switch {
		case r == '\r' && i+1 < len(s.text) && s.text[i+1] == '\n':
		case r == utf8.RuneError && size == 1:
			return &Diagnostic{Pos: s.offset(i), Message: fmt.Sprintf("the byte 0x%02X is not UTF-8; want text in UTF-8", b), Rule: ruleEncoding}
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r&0xfffe == 0xfffe:
			return &Diagnostic{Pos: s.offset(i), Message: fmt.Sprintf("the control character U+%04X cannot stand in a file; want it gone, or written as an escape", r), Rule: ruleEncoding}
		}
		i += size
	}
	return nil
}
