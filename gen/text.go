package gen

import (
	"strings"
	"unicode/utf8"
)

// maxToken is the longest argument that NGINX reads, quotes and escapes included.
const maxToken = 4094

// text is an argument that NGINX interpolates, in the making: literal parts
// and variables. A dollar of a literal part becomes $sluice_dollar, a variable
// that holds one, for there is no other way to write it.
type text struct{ parts []part }

// part is literal text, or the name of a variable.
type part struct {
	lit      string
	variable string
}

// lit adds literal text.
func (t *text) lit(s string) *text {
	t.parts = append(t.parts, part{lit: s})
	return t
}

// v adds variables by their names.
func (t *text) v(names ...string) *text {
	for _, n := range names {
		t.parts = append(t.parts, part{variable: n})
	}
	return t
}

// token is the whole as one argument.
func (t *text) token() (Token, error) {
	var all strings.Builder
	for _, p := range t.parts {
		all.WriteString(p.lit)
	}
	mark := quoteFor(all.String())
	var b strings.Builder
	b.WriteByte(mark)
	for _, p := range t.parts {
		if p.variable != "" {
			b.WriteString("${" + variable(p.variable).text[1:] + "}")
			continue
		}
		if _, err := Literal(p.lit); err != nil {
			return Token{}, err
		}
		b.WriteString(strings.ReplaceAll(escape(p.lit, mark), "$", "${sluice_dollar}"))
	}
	b.WriteByte(mark)
	return Token{b.String()}, nil
}

// mustToken is the whole as one argument, of text that holds no policy's words.
func (t *text) mustToken() Token {
	tok, err := t.token()
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return tok
}

// split cuts a text into pieces of at most so many bytes as they stand in a
// file, never within a character.
func (t *text) split(most int) []*text {
	pieces := []*text{{}}
	room := most
	for _, p := range t.parts {
		if p.variable != "" {
			pieces[len(pieces)-1].v(p.variable)
			room -= len(p.variable) + 3
			continue
		}
		for rest := p.lit; rest != ""; {
			n := fitting(rest, room)
			if n == 0 {
				pieces, room = append(pieces, &text{}), most
				continue
			}
			pieces[len(pieces)-1].lit(rest[:n])
			room -= written(rest[:n])
			rest = rest[n:]
		}
	}
	return pieces
}

// fitting is how many bytes of a text fit into so many bytes of a file.
func fitting(s string, room int) int {
	n := 0
	for n < len(s) {
		_, size := utf8.DecodeRuneInString(s[n:])
		if room -= written(s[n : n+size]); room < 0 {
			break
		}
		n += size
	}
	return n
}

// written is how many bytes a text takes in a file, at most.
func written(s string) int {
	return 2*len(s) + strings.Count(s, "$")*len("${sluice_dollar}")
}
