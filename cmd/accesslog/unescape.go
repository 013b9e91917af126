package accesslog

import (
	"bytes"
	"unicode/utf8"
)

// unescape decodes a value in place, since no escape is shorter than what it
// stands for, and returns what is left of it. repaired tells of an escape that
// does not belong to this escaping.
func unescape(value []byte, e escaping) (out []byte, repaired bool) {
	i := bytes.IndexByte(value, '\\')
	if i < 0 || e == escapeNone {
		return value, false
	}
	out = value[:i]
	for i < len(value) {
		c := value[i]
		if c != '\\' || i+1 == len(value) {
			out = append(out, c)
			i++
			continue
		}
		size, foreign := 2, false
		switch c = value[i+1]; {
		case c == 'x':
			if b, ok := hexPair(value[i+2:]); ok {
				out, size = append(out, b), 4
				foreign = e == escapeJSON
				break
			}
			out, foreign = append(out, '\\', 'x'), true
		case e == escapeDefault:
			// Old NGINX wrote nothing but \x; what else is here was sent so.
			out, size = append(out, '\\'), 1
		case c == 'u':
			if r, n := unicodeEscape(value[i:]); n > 0 {
				out, size = utf8.AppendRune(out, r), n
				break
			}
			out, foreign = append(out, '\\', 'u'), true
		default:
			out, foreign = appendJSONEscape(out, c)
		}
		i += size
		repaired = repaired || foreign
	}
	return out, repaired
}

func appendJSONEscape(out []byte, c byte) ([]byte, bool) {
	switch c {
	case '"', '\\', '/':
		return append(out, c), false
	case 'n':
		return append(out, '\n'), false
	case 'r':
		return append(out, '\r'), false
	case 't':
		return append(out, '\t'), false
	case 'b':
		return append(out, '\b'), false
	case 'f':
		return append(out, '\f'), false
	}
	return append(out, '\\', c), true
}

// unicodeEscape reads \uXXXX, or two that are halves of one rune. n is 0 when it
// is none. A lone half becomes U+FFFD, three bytes, which is no longer than it was.
func unicodeEscape(s []byte) (r rune, n int) {
	high, ok := hexFour(s)
	if !ok {
		return 0, 0
	}
	if high < 0xd800 || high > 0xdfff {
		return high, 6
	}
	if low, ok := hexFour(s[6:]); ok && high < 0xdc00 && low >= 0xdc00 && low <= 0xdfff {
		return (high-0xd800)<<10 + (low - 0xdc00) + 0x10000, 12
	}
	return utf8.RuneError, 6
}

func hexFour(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	high, ok1 := hexPair(s[2:])
	low, ok2 := hexPair(s[4:])
	return rune(high)<<8 | rune(low), ok1 && ok2
}

func hexPair(s []byte) (byte, bool) {
	if len(s) < 2 {
		return 0, false
	}
	high, low := hexDigit(s[0]), hexDigit(s[1])
	return byte(high<<4 | low), high >= 0 && low >= 0
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
