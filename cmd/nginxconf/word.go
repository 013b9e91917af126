package nginxconf

import (
	"fmt"
	"strings"
)

// Place is where something was written: line and column from 1, the column in bytes.
type Place struct {
	File      string
	Line, Col int
}

func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// Word is one argument of a directive: its text as NGINX sees it, without
// quotes and escapes.
type Word struct {
	Text   string
	Quoted bool
	Place
}

// Error is text that NGINX would not read, or that we do not.
type Error struct {
	Place
	Problem string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Problem) }

// mark is what ends a run of words.
type mark byte

const (
	markWord  mark = 'w'
	markEnd   mark = ';'
	markOpen  mark = '{'
	markClose mark = '}'
	markEOF   mark = 0
)

// scanner cuts text into words, by the rules of NGINX's own reader.
type scanner struct {
	src       string
	i         int
	file      string
	line      int
	lineStart int // where the line begins in src
}

func (s *scanner) place() Place { return Place{s.file, s.line, s.i - s.lineStart + 1} }

func (s *scanner) fail(at Place, format string, args ...any) error {
	return &Error{at, fmt.Sprintf(format, args...)}
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// advance goes one byte on and keeps count of lines.
func (s *scanner) advance() {
	if s.src[s.i] == '\n' {
		s.line++
		s.lineStart = s.i + 1
	}
	s.i++
}

// blank skips what stands between words.
func (s *scanner) blank() {
	for s.i < len(s.src) {
		switch c := s.src[s.i]; {
		case space(c):
			s.advance()
		case c == '#':
			for s.i < len(s.src) && s.src[s.i] != '\n' {
				s.i++
			}
		default:
			return
		}
	}
}

// next is the next word, or what stands in place of one.
func (s *scanner) next() (Word, mark, error) {
	s.blank()
	at := s.place()
	if s.i == len(s.src) {
		return Word{Place: at}, markEOF, nil
	}
	switch c := s.src[s.i]; c {
	case ';', '{', '}':
		s.i++
		return Word{Place: at}, mark(c), nil
	case '"', '\'':
		return s.quoted(at, c)
	}
	return s.bare(at)
}

// quoted reads a word in quotes. What follows must end the word.
func (s *scanner) quoted(at Place, quote byte) (Word, mark, error) {
	s.i++
	start := s.i
	for s.i < len(s.src) && s.src[s.i] != quote {
		if s.src[s.i] == '\\' && s.i+1 < len(s.src) {
			s.advance()
		}
		s.advance()
	}
	if s.i == len(s.src) {
		return Word{}, markEOF, s.fail(at, "a quote is not closed; want %c at the end", quote)
	}
	text := unescape(s.src[start:s.i])
	s.i++
	if s.i < len(s.src) && !space(s.src[s.i]) && strings.IndexByte(";{)", s.src[s.i]) < 0 {
		return Word{}, markEOF, s.fail(s.place(), "%q follows a closed quote; want a space or ; between", s.src[s.i])
	}
	return Word{text, true, at}, markWord, nil
}

// bare reads a word without quotes: it ends at a space, a ; or a {, the brace
// of ${name} excepted.
func (s *scanner) bare(at Place) (Word, mark, error) {
	start, dollar := s.i, false
	for s.i < len(s.src) {
		c := s.src[s.i]
		if space(c) || c == ';' || c == '{' && !dollar {
			break
		}
		dollar = c == '$'
		if c == '\\' && s.i+1 < len(s.src) {
			s.advance()
		}
		s.advance()
	}
	return Word{unescape(s.src[start:s.i]), false, at}, markWord, nil
}

// unescape takes away the backslashes that NGINX takes away.
func unescape(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			switch c := text[i+1]; c {
			case '"', '\'', '\\':
				b.WriteByte(c)
				i++
				continue
			case 't', 'r', 'n':
				b.WriteByte(map[byte]byte{'t': '\t', 'r': '\r', 'n': '\n'}[c])
				i++
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// code skips a block of another language (Lua) up to the brace that ends it.
func (s *scanner) code(at Place) error {
	for depth := 1; s.i < len(s.src); s.advance() {
		switch s.src[s.i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				s.i++
				return nil
			}
		}
	}
	return s.fail(at, "the block is not closed; want a }")
}
