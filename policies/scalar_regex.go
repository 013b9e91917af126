package policies

import (
	"regexp"
	"strings"
)

// UnmarshalText reads a regular expression.
func (r *Regex) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		return wrongf(ruleRegex, "the regular expression is empty and would fit everything; leave the key out, or want one")
	}
	if i := strings.IndexFunc(s, control); i >= 0 {
		return wrongf(ruleRegex, "the regular expression holds a control character; write it in 'single quotes'")
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return wrongf(ruleRegex, "%s", err)
	}
	*r = Regex{Source: s, Go: re}
	return nil
}

func (r *Regex) String() string { return r.Source }

// NGINX is the expression as NGINX must have it.
func (r *Regex) NGINX() string { return strings.ReplaceAll(r.Source, "$", `\z`) }

// Match tells whether the expression is found in subject.
func (r *Regex) Match(subject []byte) bool { return r.Go.Match(subject) }
