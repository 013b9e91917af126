package edge

import (
	"slices"
	"strings"

	"sluice/policies"
)

// hostOf is $host: in lower case, without a port and a final dot.
func hostOf(r *Request) string {
	host := r.Host
	if rest, found := absolute(r.URI); found {
		host = rest
	}
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return strings.TrimSuffix(lower(host), ".")
}

// absolute is the host of a request target that names one.
func absolute(uri string) (string, bool) {
	if strings.HasPrefix(uri, "/") {
		return "", false
	}
	_, rest, found := strings.Cut(uri, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	return rest, found
}

// lower is strings.ToLower that returns what is in lower case already as it is.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}

// servers are the names of the rendered servers: the hosts that routes name.
type servers struct {
	exact map[string]bool
	wild  []string // with the star; longest first
}

func newServers(c *policies.Compiled) servers {
	s := servers{exact: map[string]bool{}}
	for i := range c.Routes {
		for _, h := range c.Routes[i].Hosts {
			if strings.HasPrefix(h, "*") {
				s.wild = append(s.wild, h)
			} else {
				s.exact[h] = true
			}
		}
	}
	slices.SortFunc(s.wild, func(a, b string) int { return len(b) - len(a) })
	return s
}

// defaultServer is the name of the server for all hosts that no route names.
const defaultServer = "_"

// of is $server_name of the server that takes a host.
func (s *servers) of(host string) string {
	if s.exact[host] {
		return host
	}
	for _, pattern := range s.wild {
		if policies.HostCovers(pattern, host) {
			return pattern
		}
	}
	return defaultServer
}
