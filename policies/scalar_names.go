package policies

import (
	"regexp"
	"strings"
)

var nameShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// UnmarshalText reads a name.
func (n *Name) UnmarshalText(text []byte) error {
	if !nameShape.Match(text) {
		return wrongf(ruleName, "%s is no name%s; want a letter or digit, then up to 63 letters, digits, dots, dashes and underscores",
			show(string(text)), because(string(text), func(r rune) bool { return alnum(r) || strings.ContainsRune("._-", r) }, 64))
	}
	*n = Name(text)
	return nil
}

func (n Name) String() string { return string(n) }

// because says, in a clause, what keeps a text from being of a kind.
func because(text string, kind func(rune) bool, most int) string {
	switch {
	case foreign(text, kind) != "":
		return ": it holds " + foreign(text, kind)
	case len(text) > most:
		return ": it is too long"
	}
	return ""
}

// UnmarshalText reads free text.
func (t *Text) UnmarshalText(text []byte) error {
	const most = 4096
	s := strings.TrimRight(string(text), "\n")
	kind := func(r rune) bool { return r == '\n' || !control(r) }
	if strings.TrimSpace(s) == "" || len(s) > most || !only(s, kind) {
		return wrongf(ruleText, "this text cannot be used%s; want up to %d bytes without control characters", because(s, kind, most), most)
	}
	*t = Text(s)
	return nil
}

func (t Text) String() string { return string(t) }

// tokenRune is a character of an HTTP token.
func tokenRune(r rune) bool { return alnum(r) || strings.ContainsRune("!#$%&'*+-.^_`|~", r) }

// UnmarshalText reads a token.
func (t *Token) UnmarshalText(text []byte) error {
	const most = 64
	if len(text) == 0 || len(text) > most || !only(string(text), tokenRune) {
		return wrongf(ruleToken, "%s is no HTTP token%s; want a word such as Bearer", show(string(text)), because(string(text), tokenRune, most))
	}
	*t = Token(text)
	return nil
}

func (t Token) String() string { return string(t) }

// UnmarshalText reads the beginning of API keys. What it refuses is not shown:
// it may be a key.
func (p *Prefix) UnmarshalText(text []byte) error {
	const most = 64
	kind := func(r rune) bool { return r > ' ' && r < 0x7f && !strings.ContainsRune("\"'\\`", r) }
	if s := string(text); s == "" || len(s) > most || !only(s, kind) {
		return wrongf(rulePrefix, "this is no beginning of keys%s; want up to %d visible ASCII characters without quotes, such as sk_", because(s, kind, most), most)
	}
	*p = Prefix(text)
	return nil
}

func (p Prefix) String() string { return string(p) }

// UnmarshalText reads a file name.
func (f *FileName) UnmarshalText(text []byte) error {
	const most = 1024
	s := string(text)
	kind := func(r rune) bool { return !control(r) }
	switch {
	case strings.Contains(s, "://"):
		return wrongf(ruleFile, "%s is a URL; want a file, relative to the policy", show(s))
	case strings.HasPrefix(s, "~"):
		return wrongf(ruleFile, "%s begins with ~, which only a shell understands; want a path relative to the policy, or an absolute one", show(s))
	case s == "" || len(s) > most || !only(s, kind):
		return wrongf(ruleFile, "%s is no file name%s; want a path relative to the policy, or an absolute one", show(s), because(s, kind, most))
	}
	*f = FileName(s)
	return nil
}

func (f FileName) String() string { return string(f) }

// UnmarshalText reads the name of a claim.
func (c *Claim) UnmarshalText(text []byte) error {
	const most = 128
	kind := func(r rune) bool { return r > ' ' && r < 0x7f && r != '"' && r != '\\' }
	if s := string(text); s == "" || len(s) > most || !only(s, kind) {
		return wrongf(ruleClaim, "%s is no claim%s; want its name as the token has it, such as org_id", show(s), because(s, kind, most))
	}
	*c = Claim(text)
	return nil
}

func (c Claim) String() string { return string(c) }

var envShape = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// UnmarshalText reads the name of an environment variable. What it refuses is
// not shown: it may be the secret itself.
func (e *EnvName) UnmarshalText(text []byte) error {
	s := string(text)
	switch {
	case strings.HasPrefix(s, "$"):
		return wrongf(ruleEnv, "a variable is named without the $; want a name such as SLUICE_WEBHOOK_SECRET")
	case !envShape.Match(text):
		return wrongf(ruleEnv, "this is no name of an environment variable; want letters, digits and underscores, such as SLUICE_WEBHOOK_SECRET (the secret itself never stands in a policy)")
	}
	*e = EnvName(s)
	return nil
}

func (e EnvName) String() string { return string(e) }

// UnmarshalText reads the name of a query parameter or cookie.
func (p *ParamName) UnmarshalText(text []byte) error {
	const most = 64
	kind := func(r rune) bool { return alnum(r) || r == '_' || r == '-' }
	if s := string(text); s == "" || len(s) > most || !only(s, kind) {
		return wrongf(ruleParam, "%s is no name of a parameter or cookie%s; want letters, digits, _ and -", show(s), because(s, kind, most))
	}
	*p = ParamName(text)
	return nil
}

func (p ParamName) String() string { return string(p) }

// UnmarshalText reads the name of a header.
func (h *HeaderName) UnmarshalText(text []byte) error {
	const most = 64
	s := string(text)
	kind := func(r rune) bool { return alnum(r) || r == '-' }
	switch {
	case strings.HasSuffix(s, ":"):
		return wrongf(ruleHeader, "%s ends with a colon; want the name alone, without it", show(s))
	case strings.Contains(s, "_") && only(strings.ReplaceAll(s, "_", ""), kind):
		return wrongf(ruleHeader, "%s has an underscore: NGINX drops such a header, unless underscores_in_headers is on, "+
			"and then takes it for its twin with hyphens; want %s", show(s), strings.ReplaceAll(s, "_", "-"))
	case s == "" || len(s) > most || !only(s, kind) || strings.Trim(s, "-") == "":
		return wrongf(ruleHeader, "%s is no header name%s; want letters, digits and hyphens, such as X-API-Key", show(s), because(s, kind, most))
	}
	*h = HeaderName(s)
	return nil
}

func (h HeaderName) String() string { return string(h) }

var methodShape = regexp.MustCompile(`^[A-Z][A-Z-]{0,31}$`)

// UnmarshalText reads an HTTP method.
func (m *Method) UnmarshalText(text []byte) error {
	s := string(text)
	switch upper := strings.ToUpper(s); {
	case s != upper && methodShape.MatchString(upper):
		return wrongf(ruleMethod, "%s is not in capital letters, and methods know case; want %s", show(s), upper)
	case !methodShape.MatchString(s):
		return wrongf(ruleMethod, "%s is no HTTP method; want capital letters, such as GET", show(s))
	}
	for _, known := range []string{"GET", "HEAD", "POST", "DELETE", "PATCH", "OPTIONS"} {
		if distance(s, known) == 1 {
			return wrongf(ruleMethod, "%s is no method that anybody uses; did you mean %s?", show(s), known)
		}
	}
	*m = Method(s)
	return nil
}

func (m Method) String() string { return string(m) }
