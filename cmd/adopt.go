package cmd

import (
	"fmt"
	"strings"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// additions says which lines a site is to be given, and where.
func additions(site *nginxconf.Site, c *policies.Compiled) string {
	var b strings.Builder
	b.WriteString("Add to your NGINX:\n\n")
	add := func(at *nginxconf.Directive, where string, lines ...string) {
		fmt.Fprintf(&b, "    %s, %s:\n", at.Place, where)
		for _, l := range lines {
			fmt.Fprintf(&b, "        include sluice/%s;\n", l)
		}
	}
	for _, h := range site.HTTP() {
		httpAdditions(h, add)
	}
	for _, s := range site.Servers() {
		if len(s.All("return")) > 0 {
			continue // it answers by itself
		}
		name := s.First("server_name")
		where := "after server {"
		if name != nil && name.Arg(0) != "" {
			where += " (" + name.Arg(0) + ")"
		}
		if !has(s, "server.conf") {
			add(s, where, "server.conf")
		}
		for _, l := range s.All("location") {
			route := routeOf(c, l)
			if route == "" || has(l, "") {
				continue
			}
			add(l, "after "+l.String()+" {", "routes/"+route+".conf")
			for _, own := range l.All("limit_req_status", "limit_req_dry_run") {
				fmt.Fprintf(&b, "    %s, take away: %s (the route says it, and NGINX takes one in a location)\n", own.Place, own)
			}
		}
	}
	return b.String()
}

// httpAdditions are the lines for http { }. NGINX wants the sizes of its tables
// above the first map.
func httpAdditions(h *nginxconf.Directive, add func(*nginxconf.Directive, string, ...string)) {
	at, where := h, "after http {"
	if sizes := h.All("map_hash_bucket_size", "map_hash_max_size"); len(sizes) > 0 {
		at = sizes[len(sizes)-1]
		where = "after " + at.Name
	}
	var lines []string
	if len(h.All("set_real_ip_from")) == 0 && !has(h, "real_ip.conf") {
		lines = append(lines, "real_ip.conf")
	}
	if !has(h, "http.conf") {
		lines = append(lines, "http.conf")
	}
	if len(lines) > 0 {
		add(at, where, lines...)
	}
}

// has tells whether a block includes a rendered file, any route when none is named.
func has(block *nginxconf.Directive, file string) bool {
	want := "sluice/" + file
	if file == "" {
		want = "sluice/routes/"
	}
	for _, i := range block.All("include") {
		if strings.Contains(i.Arg(0), want) {
			return true
		}
	}
	return false
}

// routeOf is the route that a location's requests are: the one that its path
// would be, for an expression the one of everything. Empty for a location that
// clients do not get to, or that answers by itself.
func routeOf(c *policies.Compiled, l *nginxconf.Directive) string {
	if len(l.Args) == 0 || len(l.All("return", "internal")) > 0 {
		return ""
	}
	for _, d := range l.All("deny") {
		if d.Arg(0) == "all" && len(l.All("allow")) == 0 {
			return ""
		}
	}
	path := l.Args[len(l.Args)-1].Text
	if strings.HasPrefix(path, "@") {
		return ""
	}
	if !strings.HasPrefix(path, "/") {
		path = "/"
	}
	r := c.Match("", "", []byte(path))
	if r == nil || r.Exempt {
		return ""
	}
	return r.Name
}
