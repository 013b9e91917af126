package policies

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// regexScan goes through an expression once. It refuses what PCRE and Go read
// differently, or only one of them reads, and writes down what each must get.
type regexScan struct {
	src  string
	i    int
	wide strings.Builder // for Go: bytes as characters
	// nginx is for NGINX: the source, but for $.
	nginx strings.Builder

	fold     string // the flag that makes case not matter, when there is one
	beyond   string // the first thing that is not ASCII, when there is one
	anchor   bool   // what stands just before has no width
	bytewise bool   // what stands just before is a character of several bytes
}

func scanRegex(src string) (*regexScan, error) {
	s := &regexScan{src: src}
	for s.i < len(src) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	if s.fold != "" && s.beyond != "" {
		return nil, wrongf(ruleRegex, "%s and %s do not go together: NGINX knows capitals of ASCII only; want one without the other", s.fold, s.beyond)
	}
	return s, nil
}

// copy takes n bytes over as they are.
func (s *regexScan) copy(n int) {
	s.emit(s.src[s.i:s.i+n], s.src[s.i:s.i+n])
	s.i += n
}

func (s *regexScan) emit(wide, nginx string) {
	s.wide.WriteString(wide)
	s.nginx.WriteString(nginx)
}

// next takes one piece of the expression.
func (s *regexScan) next() error {
	anchor, bytewise := s.anchor, s.bytewise
	s.anchor, s.bytewise = false, false
	switch c := s.src[s.i]; {
	case c == '\\':
		return s.escape()
	case c == '[':
		return s.class()
	case c == '(':
		return s.group()
	case strings.IndexByte("*+?{", c) >= 0:
		return s.repeat(anchor, bytewise)
	case c == '$':
		s.emit(`\z`, `\z`)
		s.i++
		s.anchor = true
	case c == '^':
		s.copy(1)
		s.anchor = true
	case c >= utf8.RuneSelf:
		s.character()
	default:
		s.copy(1)
	}
	return nil
}

// character takes a character beyond ASCII, which is several bytes to PCRE.
func (s *regexScan) character() {
	_, size := utf8.DecodeRuneInString(s.src[s.i:])
	text := s.src[s.i : s.i+size]
	if s.beyond == "" {
		s.beyond = text
	}
	s.emit(string(widen(nil, []byte(text))), text)
	s.i += size
	s.bytewise = true
}

var (
	regexCount = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)
	regexFlags = regexp.MustCompile(`^\(\?([is]*)[:)]`)
	regexHex   = regexp.MustCompile(`^\\x(?:([0-9A-Fa-f]{2})|\{0*([0-9A-Fa-f]{1,2})\})`)
	regexPosix = regexp.MustCompile(`^\[:\^?[a-z]+:\]`)
)

// repeat takes *, +, ? or {n,m}, with the ? behind it that makes it lazy.
func (s *regexScan) repeat(anchor, bytewise bool) error {
	size := 1
	if s.src[s.i] == '{' {
		if size = len(regexCount.FindString(s.src[s.i:])); size == 0 {
			return s.wrong("the brace is no count such as {2,8}; want \\{ for the character")
		}
	}
	switch sign := s.src[s.i : s.i+size]; {
	case anchor:
		return s.wrong("%s repeats a place that has no width; want it gone", sign)
	case bytewise:
		return s.wrong("%s repeats the last byte of the character before it, as NGINX sees bytes; want the character in a group (?:…)", sign)
	}
	if rest := s.src[s.i+size:]; rest != "" && rest[0] == '+' {
		return s.wrong("possessive repeats are read by NGINX but not by Go; want one without the second +")
	} else if rest != "" && rest[0] == '?' {
		size++
	}
	s.copy(size)
	return nil
}

// group takes the beginning of a group.
func (s *regexScan) group() error {
	rest := s.src[s.i:]
	if flags := regexFlags.FindStringSubmatch(rest); flags != nil {
		if strings.Contains(flags[1], "i") && s.fold == "" {
			s.fold = flags[0]
		}
		s.copy(len(flags[0]))
		return nil
	}
	hint := ""
	for begin, why := range map[string]string{
		"(?=": "lookahead is read by NGINX but not by Go; want an expression without it, or two conditions",
		"(?!": "lookahead is read by NGINX but not by Go; want an expression without it, or two conditions",
		"(?<": "a named group is a variable to NGINX; want a plain group ( )",
		"(?P": "a named group is a variable to NGINX; want a plain group ( )",
		"(?'": "a named group is a variable to NGINX; want a plain group ( )",
		"(?>": "an atomic group is read by NGINX but not by Go; want (?: )",
		"(?#": "a comment is read by NGINX but not by Go; want it in the YAML file",
		"(?|": "a group of this kind is read by NGINX but not by Go; want (?: )",
		"(*":  "verbs are read by NGINX but not by Go; want \\( before a star that is meant",
	} {
		if strings.HasPrefix(rest, begin) {
			hint = why
		}
	}
	switch {
	case strings.HasPrefix(rest, "(?<=") || strings.HasPrefix(rest, "(?<!"):
		return s.wrong("lookbehind is read by NGINX but not by Go; want an expression without it")
	case hint != "":
		return s.wrong("%s", hint)
	case strings.HasPrefix(rest, "(?"):
		return s.wrong("of flags only i and s mean the same to NGINX and Go; want (?i), (?s) or (?: )")
	}
	s.copy(1)
	return nil
}

// wrong is an error about the piece that is being read.
func (s *regexScan) wrong(format string, args ...any) error {
	args = append([]any{utf8.RuneCountInString(s.src[:s.i]) + 1}, args...)
	return wrongf(ruleRegex, "at character %d: "+format, args...)
}
