package gen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"sluice/geo"
	"sluice/policies"
)

// Token is text that NGINX reads as exactly what it was made for: one argument
// of a directive, or a part of a comment. Only the constructors of this file
// and of text.go make one, and they quote and check; templates are given
// nothing else that could hold text. The zero Token is empty.
type Token struct{ text string }

// String is the text as it stands in a file.
func (t Token) String() string { return t.text }

// Quote is a literal argument of a directive that may interpolate variables.
// NGINX has no escape for a dollar there, so it is refused, as is NUL, at
// which NGINX would stop reading.
func Quote(s string) (Token, error) {
	if strings.Contains(s, "$") {
		return Token{}, fmt.Errorf("cannot quote %q: a dollar would name a variable", s)
	}
	return Literal(s)
}

// Literal is an argument that NGINX takes as it stands, dollars too: a path of
// a location, a regular expression, a network.
func Literal(s string) (Token, error) {
	if strings.Contains(s, "\x00") {
		return Token{}, fmt.Errorf("cannot quote %q: it holds a zero byte", s)
	}
	mark := quoteFor(s)
	return Token{string(mark) + escape(s, mark) + string(mark)}, nil
}

// quoteFor chooses the quotation mark that needs the fewest escapes.
func quoteFor(s string) byte {
	if strings.Contains(s, `"`) && !strings.Contains(s, "'") {
		return '\''
	}
	return '"'
}

// escape writes text for between two marks. It doubles a backslash only where
// NGINX would take it for an escape, so that regular expressions look in the
// file as they do in the policy.
func escape(s string, mark byte) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\t' || c == '\n' || c == '\r':
			b.WriteString(map[byte]string{'\t': `\t`, '\n': `\n`, '\r': `\r`}[c])
			continue
		case c == mark:
			b.WriteByte('\\')
		case c == '\\' && (i+1 == len(s) || strings.IndexByte("\\\"'trn\t\r\n", s[i+1]) >= 0):
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// word is an argument of our own that needs no quotes. It is never a policy's.
func word(s string) Token {
	for _, c := range []byte(s) {
		if !alnum(c) && strings.IndexByte("_.:/@$-%~=^", c) < 0 {
			panic("BUG: no bare word: " + strconv.Quote(s))
		}
	}
	if s == "" {
		panic("BUG: an empty word")
	}
	return Token{s}
}

func alnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// own quotes text of our own, which holds neither a policy's words nor NUL.
// Its dollars name variables.
func own(s string) Token {
	t, err := Literal(s)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return t
}

// none is the empty argument.
func none() Token { return Token{`""`} }

// number is a whole number.
func number(n int64) Token { return Token{strconv.FormatInt(n, 10)} }

// variable is a variable by its name without the dollar.
func variable(name string) Token { return word("$" + name) }

// cidr is a network. What it holds can only be digits, colons and the like.
func cidr(p netip.Prefix) Token { return Token{p.String()} }

// cidrLines are the entries of a geo block, a line for each. There may be
// hundreds of thousands, and nothing in them is a policy's or a database's word.
func cidrLines(entries []geo.Entry) Token {
	var text []byte
	for _, e := range entries {
		text = e.Prefix.AppendTo(text)
		text = append(text, ' ')
		text = append(text, word(e.Value).text...)
		text = append(text, ";\n"...)
	}
	return Token{string(text)}
}

// geoField is where a value stands in the records of a database, as geoip2 has
// it behind a variable. Nothing is found in a database as "none".
func geoField(f geo.Field) Token {
	text := "default=none source=$sluice_geo_addr"
	for _, name := range f {
		text += " " + word(name).text
	}
	return Token{text}
}

// comment is text in a comment. A line break would end it.
func comment(s string) Token {
	return Token{strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)}
}

// ident turns a name into a part of an identifier: of variables, which NGINX
// compares without regard to case, and of zones. No two names give the same:
// two underscores announce what is not plain, d a dash, p a dot, s an
// underscore that stands before none of a-z0-9, ux a capital X, h the hash of a
// name that is too long, and anything else what belongs to the name's owner.
func ident(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '_' && i+1 < len(name) && plain(name[i+1]):
			b.WriteByte('_')
		case c == '_':
			b.WriteString("__s")
		case c == '-':
			b.WriteString("__d")
		case c == '.':
			b.WriteString("__p")
		case plain(c):
			b.WriteByte(c)
		case alnum(c):
			b.WriteString("__u" + string(rune(c|0x20)))
		default:
			panic("BUG: no name: " + strconv.Quote(name))
		}
	}
	const most = 20 // a variable's name may have 46 bytes, with all that stands around
	if b.Len() <= most {
		return b.String()
	}
	return strings.TrimRight(b.String()[:most-11], "_") + "__h" + digest(name, 8)
}

func plain(c byte) bool { return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' }

// headerIdent is ident for names of headers: they have no underscores, and
// their case means nothing.
func headerIdent(name string) string {
	return ident(strings.ReplaceAll(strings.ToLower(name), "-", "_"))
}

// digest is the beginning of the SHA-256 of a text, in hexadecimal digits.
func digest(s string, digits int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:digits]
}

// headerVariable is NGINX's variable of a request's or an answer's header.
func headerVariable(prefix, name string) Token {
	return variable(prefix + strings.ToLower(strings.ReplaceAll(name, "-", "_")))
}

// headerName is the name of a header in proxy_set_header, add_header and
// proxy_hide_header.
func headerName(name string) (Token, error) {
	for _, c := range []byte(name) {
		if !alnum(c) && c != '-' && c != '_' {
			return Token{}, fmt.Errorf("cannot use %q as the name of a header", name)
		}
	}
	if name == "" {
		return Token{}, fmt.Errorf("cannot use an empty name of a header")
	}
	return Token{name}, nil
}

// mapRegex is a regular expression as a key of a map.
func mapRegex(re *policies.Regex) (Token, error) {
	return Literal("~" + re.NGINX())
}

// ownRegex is a regular expression of our own as a key of a map.
func ownRegex(src string) Token { return own("~" + src) }

// locationRegex is a regular expression as the argument of `location ~`.
func locationRegex(re *policies.Regex) (Token, error) {
	return Literal(re.NGINX())
}

// locationPath is a path as the argument of a location, which must not begin
// with one of NGINX's modifiers.
func locationPath(path string) (Token, error) {
	if !strings.HasPrefix(path, "/") {
		return Token{}, fmt.Errorf("cannot render the path %q: it does not begin with a slash", path)
	}
	return Literal(path)
}

// mapKey is an exact key of a map. The backslash in front keeps it from being
// one of the map's own words, which are in small letters; NGINX takes it off,
// and knows no case here.
func mapKey(key string) (Token, error) {
	if key != "" && strings.Trim(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		return word(key), nil
	}
	return Literal(`\` + key)
}

func replaceOnce(s, old, new string) string { return strings.Replace(s, old, new, 1) }
