package lint

import (
	"regexp"
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// askPath is the path of a subrequest that asks the service.
const askPath = policies.AuthPrefix + "open/name"

// changes tells of variables that in the subrequest are those of the
// subrequest, not of the client's request.
func changes(name string) bool {
	switch name {
	case "uri", "document_uri", "args", "query_string", "is_args", "request_filename", "fastcgi_script_name", "fastcgi_path_info", "realpath_root":
		return true
	}
	return strings.HasPrefix(name, "arg_")
}

// depends tells whether a text holds something of the subrequest's own, also by
// way of maps.
func (c *checker) depends(text string) bool {
	return slices.ContainsFunc(c.closure(text), changes)
}

// closure is every variable that a text depends on.
func (c *checker) closure(text string) []string {
	todo, seen := nginxconf.Variables(text), map[string]bool{}
	var out []string
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		out = append(out, name)
		if t := c.tables[name]; t != nil {
			todo = append(todo, nginxconf.Variables(t.Source)...)
			todo = append(todo, nginxconf.Variables(t.Default)...)
			for _, e := range t.Entries {
				todo = append(todo, nginxconf.Variables(e.Value)...)
			}
		}
	}
	return out
}

// serverRewrites reports what of a server's own rewriting runs in the
// subrequest too. A front controller there rewrote it to a page: 200, allowed.
func (c *checker) serverRewrites(s *server) {
	for _, d := range own(s.Directive, "rewrite", "return", "if") {
		switch d.Name {
		case "rewrite":
			c.serverRewrite(d, false)
		case "return":
			if c.adopted {
				c.errorf(d, "server-rewrite", "the server answers by itself before any location is chosen: nothing in it is limited; want the return in a location")
			}
		case "if":
			c.serverIf(d)
		}
	}
}

// serverIf looks into an if of a server. A redirect or an answer by what the
// subrequest has in common with the request is given to the request first.
func (c *checker) serverIf(d *nginxconf.Directive) {
	own := c.depends(strings.Join(d.Texts(), " "))
	if own && !holdsInAsk(d) {
		return
	}
	for _, r := range d.All("rewrite", "return") {
		switch {
		case r.Name == "rewrite":
			c.serverRewrite(r, !own)
		case own:
			c.wayf(r, "server-rewrite", "this also answers the subrequest that asks the service, whose own address the condition is about: what is no 2xx or 403 there becomes a 500, and a 2xx lets everybody pass; want it in a location")
		}
	}
}

// holdsInAsk tells whether a condition may hold in the subrequest, whose path
// is known, whose query is empty, and which is no file.
func holdsInAsk(d *nginxconf.Directive) bool {
	words := d.Condition()
	if len(words) == 2 && strings.Contains("-f -e -d -x", words[0]) {
		return false
	}
	if len(words) == 0 || len(words) != 1 && len(words) != 3 {
		return true
	}
	value := ""
	switch name := nginxconf.Lone(words[0]); {
	case name == "uri" || name == "document_uri":
		value = askPath
	case name == "request_filename":
		value = "/root" + askPath
	case !changes(name) || name == "fastcgi_path_info" || name == "realpath_root":
		return true
	}
	if len(words) == 1 {
		return value != ""
	}
	operand := words[2]
	re, err := regexp.Compile(strings.ReplaceAll(operand, "(?<", "(?P<"))
	switch op := words[1]; op {
	case "=":
		return value == operand
	case "!=":
		return value != operand
	case "~", "~*":
		return err != nil || re.MatchString(value)
	case "!~", "!~*":
		return err != nil || !re.MatchString(value)
	}
	return true
}

// serverRewrite reports a rewrite that fits the subrequest's address. common:
// it runs under a condition that holds for both alike.
func (c *checker) serverRewrite(d *nginxconf.Directive, common bool) {
	if !matchesAsk(d.Arg(0)) {
		return
	}
	if redirects(d) {
		if !common {
			c.wayf(d, "server-rewrite", "this redirects every request, the subrequest that asks the service included, before any location is chosen; want it in a location")
		}
		return
	}
	c.wayf(d, "server-rewrite", "this also rewrites the subrequest that asks the service, so that a page answers in its place: everybody passes; want it in a location, such as try_files in location / { }")
}

// redirects tells of a rewrite that answers with a redirect.
func redirects(d *nginxconf.Directive) bool {
	to := d.Arg(1)
	return d.Arg(2) == "redirect" || d.Arg(2) == "permanent" ||
		strings.HasPrefix(to, "http://") || strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "$scheme")
}

// matchesAsk tells whether an expression fits the address of subrequests; one
// that Go cannot read may.
func matchesAsk(expression string) bool {
	re, err := regexp.Compile(strings.ReplaceAll(expression, "(?<", "(?P<"))
	return err != nil || re.MatchString(askPath)
}

// serverSets reports variables that the subrequest sets anew: variables are
// shared, so what the request had in them before is gone when it is answered.
func (c *checker) serverSets(s *server) {
	constant := map[string]*nginxconf.Directive{}
	for _, d := range own(s.Directive, "set") {
		name := nginxconf.Lone(d.Arg(0))
		if constant[name] == nil {
			constant[name] = d
		}
		if c.depends(d.Arg(1)) && c.used(s, name) {
			c.wayf(d, "server-set", "$%s holds the client's address or query, and the subrequest that asks the service sets it anew from its own; want $request_uri, a map, or the set in the location", name)
		}
	}
	for _, d := range own(s.Directive, "if") {
		if !c.depends(strings.Join(d.Texts(), " ")) {
			continue
		}
		for _, set := range own(d, "set") {
			if name := nginxconf.Lone(set.Arg(0)); constant[name] != nil {
				c.wayf(set, "server-set", "the subrequest that asks the service sets $%s anew, and this condition is about its own address there: $%s is that of %s again when the request is answered; want a map on $request_uri in place of the if",
					name, name, constant[name].Place)
			}
		}
	}
	s.Walk(func(d *nginxconf.Directive) {
		name := nginxconf.Lone(d.Arg(0))
		if d.Name != "set" || ours(d) || constant[name] == nil || d.In("location") == nil || !c.mayAsk(s, d) {
			return
		}
		c.wayf(d, "server-set", "$%s is set at %s for the server, which runs again in the subrequest that asks the service: what is set here is gone when the request is answered; want a map, or another name here", name, constant[name].Place)
	})
}

// mayAsk tells whether a directive stands in a location that asks the service.
func (c *checker) mayAsk(s *server, d *nginxconf.Directive) bool {
	if !c.adopted {
		return true
	}
	return slices.ContainsFunc(s.protected, func(p *protected) bool {
		for b := d.Parent; b != nil; b = b.Parent {
			if b == p.Directive {
				return p.asks()
			}
		}
		return false
	})
}

// used tells whether something in a server reads a variable.
func (c *checker) used(s *server, name string) bool {
	found := false
	s.Walk(func(d *nginxconf.Directive) {
		for i, w := range d.Args {
			if (d.Name != "set" || i > 0) && slices.Contains(nginxconf.Variables(w.Text), name) {
				found = true
			}
		}
	})
	return found
}
