package gen

import (
	"slices"
	"strings"

	"sluice/policies"
)

// group are the routes that share a location: they have one match and differ
// in methods. The first names it.
type group struct {
	first *policies.Route
	asked bool
	mode  policies.FailMode
}

// groups are the locations for a host pattern, in the order of the file; the
// empty pattern is every host that no route names.
func groups(c *policies.Compiled, host string) []group {
	var out []group
	for i := range c.Routes {
		r := &c.Routes[i]
		if !covers(r, host) {
			continue
		}
		at := slices.IndexFunc(out, func(g group) bool { return g.first.SameMatch(r) })
		if at < 0 {
			out = append(out, group{first: r, asked: r.Asked, mode: r.OnStoreDown})
			continue
		}
		out[at].asked = out[at].asked || r.Asked
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
func (b *builder) locations(list []group) []location {
	var regexes, prefixes []group
	exact := map[string]bool{}
	root := false
	for _, g := range list {
		switch g.first.Kind {
		case policies.MatchExact:
			exact[g.first.Path] = true
		case policies.MatchRegex:
			regexes = append(regexes, g)
		case policies.MatchPrefix:
			prefixes = append(prefixes, g)
			root = root || g.first.Path == "/"
		}
	}
	var out []location
	for _, g := range list {
		switch g.first.Kind {
		case policies.MatchExact:
			out = append(out, b.location("=", g.first.Path, g.first))
		case policies.MatchPrefix:
			if path := g.first.Path; path != "/" && !exact[path] {
				out = append(out, b.location("=", path, winner(regexes, g.first)))
			}
			out = append(out, b.container(g.first, regexes))
		case policies.MatchRegex:
			if !root {
				out = append(out, b.regexLocation(g.first))
			}
		}
	}
	return out
}

// winner is the route of a prefix's own path, which a regular expression could match.
func winner(regexes []group, prefix *policies.Route) *policies.Route {
	for _, g := range regexes {
		if g.first.Regex.Match([]byte(prefix.Path)) {
			return g.first
		}
	}
	return prefix
}

// container is the location of a prefix. It holds nothing of ours itself, for
// that would be inherited by the locations in it; the inner one of the same
// name holds the route.
func (b *builder) container(r *policies.Route, regexes []group) location {
	path := r.Path
	if path != "/" {
		path += "/"
	}
	c := location{Modifier: word("^~"), Match: b.take(locationPath(path))}
	for _, g := range regexes {
		lit := literalPrefix(g.first.Regex)
		if strings.HasPrefix(lit, path) || strings.HasPrefix(path, lit) {
			c.Inner = append(c.Inner, b.regexLocation(g.first))
		}
	}
	c.Inner = append(c.Inner, b.location("", path, r))
	return c
}

func (b *builder) location(modifier, path string, r *policies.Route) location {
	l := location{Match: b.take(locationPath(path)), Include: routeFile(r)}
	if modifier != "" {
		l.Modifier = word(modifier)
	}
	return l
}

func (b *builder) regexLocation(r *policies.Route) location {
	return location{Modifier: word("~"), Match: b.take(locationRegex(r.Regex)), Include: routeFile(r)}
}

// routeFile is the file of a route as an include names it.
func routeFile(r *policies.Route) Token { return word("sluice/routes/" + r.Name + ".conf") }

// hostFile is the file of a host's locations.
func hostFile(host string) string {
	if host == "" {
		return "sluice/locations.conf"
	}
	return "sluice/locations/" + strings.Replace(host, "*", "_", 1) + ".conf"
}
