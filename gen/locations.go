package gen

import (
	"slices"
	"strings"

	"sluice/policies"
)

// groups are the routes that name a location for a host pattern, in the order of
// the file; the empty pattern is every host that no route names. Routes that
// have one match and differ in methods share a location: the first names it.
func groups(c *policies.Compiled, host string) []*policies.Route {
	var out []*policies.Route
	for i := range c.Routes {
		r := &c.Routes[i]
		if covers(r, host) && !slices.ContainsFunc(out, r.SameMatch) {
			out = append(out, r)
		}
	}
	return out
}

func covers(r *policies.Route, host string) bool {
	if len(r.Hosts) == 0 {
		return true
	}
	return host != "" && r.TakesHost(host)
}

// hosts are the host patterns of all routes, each once, sorted.
func hosts(c *policies.Compiled) []string {
	var out []string
	for i := range c.Routes {
		out = append(out, c.Routes[i].Hosts...)
	}
	slices.SortFunc(out, policies.CompareNatural)
	return slices.Compact(out)
}

// locations are the locations of one server, in NGINX's own order of matching:
// exact paths, then the regular expressions as they stand, then the longest
// prefix. A site's own regular expressions are kept out: `^~` stops them, and
// ours are nested in each prefix that they could match below.
func (b *builder) locations(list []*policies.Route) []location {
	var regexes []*policies.Route
	exact := map[string]bool{}
	root := false
	for _, r := range list {
		switch r.Kind {
		case policies.MatchExact:
			exact[r.Path] = true
		case policies.MatchRegex:
			regexes = append(regexes, r)
		case policies.MatchPrefix:
			root = root || r.Path == "/"
		}
	}
	var out []location
	for _, r := range list {
		switch r.Kind {
		case policies.MatchExact:
			out = append(out, b.location("=", r.Path, r))
		case policies.MatchPrefix:
			if path := r.Path; path != "/" && !exact[path] {
				out = append(out, b.location("=", path, winner(regexes, r)))
			}
			out = append(out, b.container(r, regexes))
		case policies.MatchRegex:
			if !root {
				out = append(out, b.regexLocation(r))
			}
		}
	}
	return out
}

// winner is the route of a prefix's own path, which a regular expression could match.
func winner(regexes []*policies.Route, prefix *policies.Route) *policies.Route {
	for _, r := range regexes {
		if r.Regex.Match([]byte(prefix.Path)) {
			return r
		}
	}
	return prefix
}

// container is the location of a prefix. It holds nothing of ours itself, for
// that would be inherited by the locations in it; the inner one of the same
// name holds the route.
func (b *builder) container(r *policies.Route, regexes []*policies.Route) location {
	path := r.Path
	if path != "/" {
		path += "/"
	}
	c := location{From: mark(routePath(r)), Modifier: word("^~"), Match: b.take(locationPath(path))}
	for _, re := range regexes {
		lit := literalPrefix(re.Regex)
		if strings.HasPrefix(lit, path) || strings.HasPrefix(path, lit) {
			c.Inner = append(c.Inner, b.regexLocation(re))
		}
	}
	c.Inner = append(c.Inner, b.location("", path, r))
	return c
}

func (b *builder) location(modifier, path string, r *policies.Route) location {
	l := location{From: mark(routePath(r)), Match: b.take(locationPath(path)), Include: routeFile(r)}
	if modifier != "" {
		l.Modifier = word(modifier)
	}
	return l
}

func (b *builder) regexLocation(r *policies.Route) location {
	return location{From: mark(routePath(r)), Modifier: word("~"), Match: b.take(locationRegex(r.Regex)), Include: routeFile(r)}
}

// routeFile is the file of a route as an include names it.
func routeFile(r *policies.Route) Token { return word("sluice/routes/" + r.Name + ".conf") }

// hostFile is the file of a host's locations. A name that is too long for a file
// ends in its hash.
func hostFile(host string) string {
	if host == "" {
		return "sluice/locations.conf"
	}
	const most = 200
	name := strings.Replace(host, "*", "_", 1)
	if len(name) > most {
		name = name[:most] + "_" + digest(host, 16)
	}
	return "sluice/locations/" + name + ".conf"
}
