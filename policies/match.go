package policies

import (
	"bytes"
	"strings"
)

// matcher finds routes the way the rendered locations do: exact paths first,
// then regular expressions in the order of the file, then the longest prefix.
type matcher struct {
	exact    map[string][]*Route
	prefixes map[string][]*Route
	regexes  []*Route
}

func newMatcher(routes []Route) matcher {
	m := matcher{exact: map[string][]*Route{}, prefixes: map[string][]*Route{}}
	for i := range routes {
		r := &routes[i]
		switch r.Kind {
		case MatchExact:
			m.exact[r.Path] = append(m.exact[r.Path], r)
		case MatchPrefix:
			m.prefixes[r.Path] = append(m.prefixes[r.Path], r)
		case MatchRegex:
			m.regexes = append(m.regexes, r)
		}
	}
	return m
}

// Match finds the route of a request, nil when there is none. The path is
// normalised (see NormalizePath), the host in lower case and without a port. A
// route whose hosts or methods do not fit is passed over; an empty method fits
// every route, for those who ask which location NGINX takes.
func (c *Compiled) Match(host, method string, path []byte) *Route {
	fits := func(r *Route) bool { return r.TakesHost(host) && (method == "" || r.TakesMethod(method)) }
	if r := first(c.matcher.exact[string(path)], fits); r != nil {
		return r
	}
	for _, r := range c.matcher.regexes {
		if fits(r) && r.Regex.Match(path) {
			return r
		}
	}
	return c.matcher.longestPrefix(path, fits)
}

// longestPrefix tries the path itself, then what is left after each slash is
// cut off from the right, then the root.
func (m *matcher) longestPrefix(path []byte, fits func(*Route) bool) *Route {
	for len(path) > 1 {
		if r := first(m.prefixes[string(path)], fits); r != nil {
			return r
		}
		path = path[:max(bytes.LastIndexByte(path, '/'), 0)]
	}
	return first(m.prefixes["/"], fits)
}

func first(routes []*Route, fits func(*Route) bool) *Route {
	for _, r := range routes {
		if fits(r) {
			return r
		}
	}
	return nil
}

// TakesMethod tells whether the route is for requests with this method.
func (r *Route) TakesMethod(method string) bool {
	if len(r.Methods) == 0 {
		return true
	}
	for _, m := range r.Methods {
		if m == method {
			return true
		}
	}
	return false
}

// TakesHost tells whether the route is for this host, which is in lower case
// and has no port.
func (r *Route) TakesHost(host string) bool {
	if len(r.Hosts) == 0 {
		return true
	}
	for _, pattern := range r.Hosts {
		if HostCovers(pattern, host) {
			return true
		}
	}
	return false
}

// HostCovers tells whether a host pattern of a route takes a host, or all
// that another pattern takes. As in NGINX's server_name, `*.` stands for one
// label or more.
func HostCovers(pattern, host string) bool {
	if pattern == host {
		return true
	}
	suffix, wild := strings.CutPrefix(pattern, "*")
	return wild && len(host) > len(suffix) && strings.HasSuffix(host, suffix)
}

// SameMatch tells whether two routes match the same paths by the same rule, so
// that NGINX has one location for both.
func (r *Route) SameMatch(o *Route) bool {
	if r.Kind != o.Kind {
		return false
	}
	if r.Kind == MatchRegex {
		return r.Regex.Source == o.Regex.Source
	}
	return r.Path == o.Path
}
