package policies

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// escape takes a backslash and what it belongs to, outside of classes.
func (s *regexScan) escape() error {
	if s.i+1 == len(s.src) {
		return s.wrong("the backslash at the end escapes nothing; want \\\\ for the character")
	}
	switch c := s.src[s.i+1]; {
	case strings.IndexByte("bBAz", c) >= 0:
		s.anchor = true
		s.copy(2)
		return nil
	case c == 's':
		s.emit("[[:space:]]", `\s`) // Go leaves out the vertical tab
		s.i += 2
		return nil
	case c == 'S':
		s.emit("[[:^space:]]", `\S`)
		s.i += 2
		return nil
	}
	return s.plainEscape()
}

// plainEscape takes an escape that means the same in a class and outside.
func (s *regexScan) plainEscape() error {
	c := s.src[s.i+1]
	if hex := regexHex.FindStringSubmatch(s.src[s.i:]); hex != nil {
		if code, _ := strconv.ParseUint(hex[1]+hex[2], 16, 8); code >= utf8.RuneSelf && s.beyond == "" {
			s.beyond = hex[0]
		}
		s.copy(len(hex[0]))
		return nil
	}
	switch {
	case strings.IndexByte("dDwWtnrf", c) >= 0, c < utf8.RuneSelf && !alnum(rune(c)):
		s.copy(2)
		return nil
	case c >= '1' && c <= '9':
		return s.wrong("\\%c refers back to a group, which NGINX reads but Go does not; want an expression without it", c)
	case c == 'Z':
		return s.wrong("\\Z is read by NGINX but not by Go; want $, which is the very end here")
	case c == 'p' || c == 'P' || c == 'X':
		return s.wrong("NGINX sees bytes, and \\%c is about Unicode; want a class such as [a-z]", c)
	case c == 'v':
		return s.wrong("\\v is one character to Go and several to NGINX; want \\x0b")
	case c == 'x':
		return s.wrong("NGINX sees bytes; want two hexadecimal digits, such as \\x2f")
	case c == 'b':
		return s.wrong("\\b is a backspace in a class; want it gone")
	case c >= utf8.RuneSelf:
		return s.wrong("a character beyond ASCII needs no backslash; want it gone")
	}
	return s.wrong("\\%c is not the same to NGINX and Go, or not known to both; want another way to say it", c)
}

// class takes a class such as [^a-z].
func (s *regexScan) class() error {
	if begin := s.src[s.i:]; strings.HasPrefix(begin, "[:") || strings.HasPrefix(begin, "[.") && strings.Contains(begin, ".]") || strings.HasPrefix(begin, "[=") && strings.Contains(begin, "=]") {
		return s.wrong("%s begins a named class, which stands inside of another: [[:alpha:]]; want that, or \\%s for the character", begin[:2], begin[1:2])
	}
	start := s.i
	s.copy(1)
	if strings.HasPrefix(s.src[s.i:], "^") {
		s.copy(1)
	}
	if strings.HasPrefix(s.src[s.i:], "]") {
		s.copy(1) // as the first it is a character
	}
	for set := false; s.i < len(s.src); {
		rest := s.src[s.i:]
		if rest[0] == ']' {
			s.copy(1)
			return nil
		}
		if set && rest[0] == '-' && !strings.HasPrefix(rest, "-]") {
			return s.wrong("the hyphen follows a class and so makes no range; want \\- for the character")
		}
		var err error
		if set, err = s.member(); err != nil {
			return err
		}
	}
	s.i = start
	return s.wrong("the class has no end; want ], or \\[ for the character")
}

// member takes one member of a class and tells whether it is a set itself.
func (s *regexScan) member() (set bool, err error) {
	rest := s.src[s.i:]
	switch {
	case rest[0] == '[':
		if name := regexPosix.FindString(rest); name != "" {
			s.copy(len(name))
			return true, nil
		}
		if len(rest) > 1 && strings.IndexByte(":.=", rest[1]) >= 0 {
			return false, s.wrong("%s begins a named class here; want \\[ for the character", rest[:2])
		}
	case rest[0] >= utf8.RuneSelf:
		return false, s.wrong("NGINX sees bytes, so a class cannot hold a character beyond ASCII; want alternatives: (?:é|è)")
	case rest[0] == '\\' && len(rest) > 1:
		if c := rest[1]; c == 's' || c == 'S' {
			s.emit(map[byte]string{'s': "[:space:]", 'S': "[:^space:]"}[c], rest[:2])
			s.i += 2
			return true, nil
		}
		return strings.IndexByte("dDwW", rest[1]) >= 0, s.plainEscape()
	}
	s.copy(1)
	return false, nil
}
