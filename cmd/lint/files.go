package lint

import (
	"regexp"
	"strings"

	"sluice/cmd/nginxconf"
)

var ourFile = regexp.MustCompile(`(?:^|/)sluice/((?:routes|locations)/[^/]+|[a-z_]+)\.conf$`)

// ours tells whether a directive stands in a rendered file.
func ours(d *nginxconf.Directive) bool { return ourFile.MatchString(d.File) }

// fileOf is which rendered file a directive includes: http, server, routes/NAME, ...
func fileOf(d *nginxconf.Directive) string {
	if d.Name != "include" || len(d.Args) != 1 {
		return ""
	}
	if m := ourFile.FindStringSubmatch(d.Arg(0)); m != nil {
		return m[1]
	}
	return ""
}

func isRoute(file string) bool { return strings.HasPrefix(file, "routes/") }

func isLocations(file string) bool {
	return file == "locations" || strings.HasPrefix(file, "locations/")
}

func routeName(file string) string { return strings.TrimPrefix(file, "routes/") }

// includesFile tells whether a block includes a rendered file, itself or by one
// that it includes; app.conf brings proxy_headers.conf also where it was not read.
func includesFile(block *nginxconf.Directive, want string) bool {
	for _, d := range block.All("include") {
		if file := fileOf(d); file == want || file == "app" && want == "proxy_headers" || file == "server" && want == "headers" {
			return true
		}
	}
	return false
}

// own are the block's directives of these names that the site wrote.
func own(block *nginxconf.Directive, names ...string) []*nginxconf.Directive {
	var out []*nginxconf.Directive
	for _, d := range block.All(names...) {
		if !ours(d) {
			out = append(out, d)
		}
	}
	return out
}

// level is the innermost block, from this one outwards, that the site gave a
// directive of this name: what NGINX inherits from. Nil when there is none.
func level(block *nginxconf.Directive, name string) *nginxconf.Directive {
	for b := block; b != nil; b = b.Parent {
		if len(own(b, name)) > 0 {
			return b
		}
	}
	return nil
}

// missingFiles reports what could not be looked at.
func (c *checker) missingFiles() {
	for _, d := range c.site.Missing {
		if fileOf(d) == "" && !harmless(d.Arg(0)) {
			c.warnf(d, "unread-include", "%s is not here, so nothing is known of it; want the output of nginx -T, which holds all files", d.Arg(0))
		}
	}
}

// harmless tells of files that NGINX is shipped with.
func harmless(name string) bool {
	switch name[strings.LastIndexByte(name, '/')+1:] {
	case "mime.types", "fastcgi_params", "fastcgi.conf", "uwsgi_params", "scgi_params", "proxy_params", "fastcgi-php.conf",
		"options-ssl-nginx.conf", "koi-utf", "koi-win", "win-utf":
		return true
	}
	return false
}

// includes reports rendered files that are missing, misplaced or there twice.
func (c *checker) includes() {
	if !c.adopted {
		return
	}
	var http, first *nginxconf.Directive
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		file := fileOf(d)
		if file == "" || ours(d) {
			return
		}
		if first == nil {
			first = d
		}
		c.misplaced(d, file)
		if file == "http" {
			if http != nil {
				c.errorf(d, "repeated-include", "sluice/http.conf is included at %s already, and NGINX refuses its zones a second time; want it once", http.Place)
			}
			http = d
		}
	})
	if http == nil && first != nil && len(c.site.Root.All("http")) > 0 {
		c.errorf(first, "missing-http", "this needs sluice/http.conf, which nothing includes: NGINX does not know its zones and variables; want include sluice/http.conf; in http { }")
	}
	for _, s := range c.servers {
		c.serverIncludes(s)
	}
}

// misplaced reports a rendered file in a block that it is not for.
func (c *checker) misplaced(d *nginxconf.Directive, file string) {
	want := ""
	switch {
	case file == "http" || file == "real_ip":
		want = "http"
	case file == "server" || isLocations(file):
		want = "server"
	case isRoute(file):
		want = "location"
	}
	in := d.Parent.Name
	if want == "" || in == want || in == "main" || file == "real_ip" && in == "server" {
		return
	}
	c.errorf(d, "misplaced-include", "%s stands in %s { }; want it in %s { }", d.Arg(0), in, want)
}

func (c *checker) serverIncludes(s *server) {
	var twice *nginxconf.Directive
	for _, d := range s.All("include") {
		if fileOf(d) != "server" {
			continue
		}
		if twice != nil {
			c.errorf(d, "repeated-include", "sluice/server.conf is included at %s already, and NGINX refuses its locations a second time; want it once in a server", twice.Place)
		}
		twice = d
	}
	if s.include == nil && len(s.protected) > 0 {
		c.errorf(s.protected[0].include, "missing-server", "%s has routes but not sluice/server.conf: the service cannot be asked, and every request here is answered 500; want include sluice/server.conf; in the server", label(s.Directive))
	}
	if s.include != nil && len(s.protected) == 0 && !s.hasLocations() {
		c.warnf(s.include, "no-route", "nothing in %s is protected: no location includes a route; want include sluice/routes/NAME.conf; in a location, or include sluice/locations.conf; in the server", label(s.Directive))
	}
	seen := map[*nginxconf.Directive]*nginxconf.Directive{}
	for _, p := range s.protected {
		if before := seen[p.Directive]; before != nil {
			c.errorf(p.include, "repeated-include", "this location is route %s already (%s); want one route in a location", routeName(fileOf(before)), before.Place)
		}
		seen[p.Directive] = p.include
	}
}

func (s *server) hasLocations() bool {
	for _, d := range s.All("include") {
		if isLocations(fileOf(d)) {
			return true
		}
	}
	return false
}
