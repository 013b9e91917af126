package gen

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// readToken reads one argument as NGINX's reader does, by the rules that were
// seen on it: it returns the value and whether the argument is the whole text.
func readToken(s string) (value string, whole bool) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return s, s != "" && !strings.ContainsAny(s, " \t\r\n;{}#\"'\\$")
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return b.String(), i == len(s)-1
		case c == '\\' && i+1 < len(s):
			i++
			switch n := s[i]; n {
			case '"', '\'', '\\':
				b.WriteByte(n)
			case 't', 'r', 'n':
				b.WriteByte(map[byte]byte{'t': '\t', 'r': '\r', 'n': '\n'}[n])
			default:
				b.WriteByte('\\')
				b.WriteByte(n)
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// checkTokens fails when a constructor lets a value out of its argument, or
// changes it.
func checkTokens(t *testing.T, v string) {
	t.Helper()
	read := func(what string, tok Token, err error, want string) {
		t.Helper()
		if err != nil {
			if !strings.ContainsAny(v, "\x00$") && what != "locationPath" {
				t.Errorf("%s refuses %q: %v", what, v, err)
			}
			return
		}
		if got, whole := readToken(tok.String()); !whole || got != want {
			t.Errorf("%s of %q is %s, which is read as %q (whole: %v); want %q", what, v, tok, got, whole, want)
		}
	}
	tok, err := Literal(v)
	read("Literal", tok, err, v)
	tok, err = Quote(v)
	read("Quote", tok, err, v)
	if err == nil && strings.Contains(v, "$") {
		t.Errorf("Quote takes the dollar of %q", v)
	}
	if tok, err = mapKey(v); err == nil && !strings.HasPrefix(tok.String(), `"\`) && !strings.HasPrefix(tok.String(), `'\`) && strings.Trim(tok.String(), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		t.Errorf("the key of %q is %s, which could be a word of the map's own", v, tok)
	}
	if tok, err = locationPath(v); err == nil && !strings.HasPrefix(v, "/") {
		t.Errorf("locationPath takes %q", v)
	}
	read("locationPath", tok, err, v)
	tok, err = (&text{}).lit(v).v("sluice_ip").lit(v).token()
	interpolated := strings.ReplaceAll(v, "$", "${sluice_dollar}")
	read("text", tok, err, interpolated+"${sluice_ip}"+interpolated)
	if c := comment(v).String(); strings.ContainsAny(c, "\r\n\x00\v\f\u0085\u2028") {
		t.Errorf("the comment of %q is %q", v, c)
	}
	for _, make := range []func(string) (Token, error){headerName, address} {
		if tok, err := make(v); err == nil && (strings.ContainsAny(tok.String(), " \t\r\n;{}#\"'\\$") || tok.String() != v) {
			t.Errorf("%q is let through as %s", v, tok)
		}
	}
}

// hostileText draws a text out of what is special to NGINX.
func hostileText(random *rand.Rand) string {
	const alphabet = "\\\\\"\"''$${};#~ \n\t\rtrnab/@=*.:\x00\x01\x7f\x80\xff\xc2\x85"
	if random.IntN(4) == 0 {
		return hostile[random.IntN(len(hostile))] + hostile[random.IntN(len(hostile))]
	}
	b := make([]byte, random.IntN(14))
	for i := range b {
		b[i] = alphabet[random.IntN(len(alphabet))]
	}
	return string(b)
}

// TestMillionTokens: no text of a million hostile ones leaves its argument, or
// is read as another (C036, C038).
func TestMillionTokens(t *testing.T) {
	t.Parallel()
	n := 100_000
	if os.Getenv("CI") == "true" { // a laptop has not all day
		n = 1_000_000
	}
	random := rand.New(rand.NewPCG(11, 12))
	for range n {
		if checkTokens(t, hostileText(random)); t.Failed() {
			return
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, v := range hostile {
		f.Add(v)
	}
	f.Fuzz(checkTokens)
}
