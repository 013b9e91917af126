package policies

import (
	"regexp"
	"strings"
)

var percentCode = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// UnmarshalText reads a path. NGINX compares with the path of a request after
// it was decoded and normalised, so what could never be equal to that is refused.
func (p *Path) UnmarshalText(text []byte) error {
	const most = 1024
	s := string(text)
	kind := func(r rune) bool { return !control(r) }
	switch {
	case s == "":
		return wrongf(rulePath, "the path is empty; want one that begins with /")
	case strings.Contains(s, "://"):
		return wrongf(rulePath, "%s is a URL; want its path alone, and the host in hosts", show(s))
	case s[0] != '/':
		return wrongf(rulePath, "%s does not begin with /%s", show(s), modifierHint(s))
	case !only(s, kind) || len(s) > most:
		return wrongf(rulePath, "%s is no path%s; want up to %d bytes without control characters", show(s), because(s, kind, most), most)
	case strings.ContainsAny(s, "?#"):
		return wrongf(rulePath, "%s has a query or fragment, which take no part in matching; want %s", show(s), show(s[:strings.IndexAny(s, "?#")]))
	case percentCode.MatchString(s):
		return wrongf(rulePath, "%s is encoded, but NGINX compares with the decoded path; want the character itself in place of %s", show(s), percentCode.FindString(s))
	case strings.Contains(s, "//"):
		return wrongf(rulePath, "%s has two slashes together, which NGINX merges before it compares; want one", show(s))
	case dotted(s):
		return wrongf(rulePath, "%s has a segment . or .., which NGINX resolves before it compares; want the path without it", show(s))
	case strings.HasSuffix(s, "/*"):
		return wrongf(rulePath, "%s has a wildcard; a prefix holds all below it by itself: want %s", show(s), show(orRoot(strings.TrimSuffix(s, "/*"))))
	}
	*p = Path(s)
	return nil
}

func (p Path) String() string { return string(p) }

// dotted tells whether a path has a segment that resolving would take away.
func dotted(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// modifierHint is for who writes a location of NGINX.
func modifierHint(s string) string {
	switch {
	case strings.HasPrefix(s, "= "):
		return "; want match: {exact: …} for a location with ="
	case strings.HasPrefix(s, "^~ "):
		return "; want match: {prefix: …} for a location with ^~"
	case strings.HasPrefix(s, "~") || strings.HasPrefix(s, "^"):
		return "; want match: {regex: '…'} for a regular expression"
	}
	return "; want a path such as /v1"
}
