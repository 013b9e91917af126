package policies

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// UnmarshalText reads a regular expression. Only what PCRE and Go read alike is
// taken, so that NGINX and the service can never disagree about a request.
func (r *Regex) UnmarshalText(text []byte) error {
	const most = 1024
	s := string(text)
	switch {
	case s == "":
		return wrongf(ruleRegex, "the regular expression is empty and would fit everything; leave the key out, or want one")
	case len(s) > most:
		return wrongf(ruleRegex, "the regular expression has %d bytes; want at most %d", len(s), most)
	case strings.Contains(s, "\b"):
		return wrongf(ruleRegex, `the regular expression holds a backspace, which is what YAML makes of \b in "double quotes"; want 'single quotes'`)
	case !only(s, func(r rune) bool { return !control(r) }):
		return wrongf(ruleRegex, "the regular expression holds %s; want 'single quotes', and an escape such as \\t",
			foreign(s, func(r rune) bool { return !control(r) }))
	}
	scan, err := scanRegex(s)
	if err != nil {
		return err
	}
	compiled, err := regexp.Compile(scan.wide.String())
	if err != nil {
		return wrongf(ruleRegex, "%s is no regular expression: %s; want one that NGINX and Go both read", show(s), regexProblem(err))
	}
	*r = Regex{Source: s, Go: compiled}
	return nil
}

// regexProblem is what Go says about an expression, without its own prefix.
func regexProblem(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

func (r *Regex) String() string { return r.Source }

// NGINX is the expression as NGINX must have it: PCRE lets a plain $ match
// before a newline at the end, so each is written as the very end.
func (r *Regex) NGINX() string {
	scan, err := scanRegex(r.Source)
	if err != nil {
		panic("BUG: a regular expression that was never read: " + r.Source)
	}
	return scan.nginx.String()
}

// Match tells whether the expression is found in subject. It sees bytes, as
// PCRE does in NGINX, and allocates only for a subject beyond ASCII.
func (r *Regex) Match(subject []byte) bool {
	if ascii(subject) {
		return r.Go.Match(subject)
	}
	return r.Go.Match(widen(make([]byte, 0, 2*len(subject)), subject))
}

// Capture is what the first group takes of subject. It is false when the
// expression is not found, or is found without that group.
func (r *Regex) Capture(subject []byte) (string, bool) {
	wide := subject
	if !ascii(subject) {
		wide = widen(nil, subject)
	}
	at := r.Go.FindSubmatchIndex(wide)
	if len(at) < 4 || at[2] < 0 {
		return "", false
	}
	taken := wide[at[2]:at[3]]
	if ascii(taken) {
		return string(taken), true
	}
	narrow := make([]byte, 0, len(taken))
	for _, c := range string(taken) {
		narrow = append(narrow, byte(c))
	}
	return string(narrow), true
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// widen appends subject with every byte as the character of that number, which
// is how Go's expressions can be made to see bytes.
func widen(dst, subject []byte) []byte {
	for _, c := range subject {
		dst = utf8.AppendRune(dst, rune(c))
	}
	return dst
}
