package lint

import (
	"fmt"
	"slices"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// Options say what the configuration itself does not.
type Options struct {
	Version string // of NGINX, such as 1.22.1; empty: what the dump says, if it does
}

// Run returns the findings about a site, sorted.
func Run(site *nginxconf.Site, o Options) policies.Diagnostics {
	c := newChecker(site)
	if o.Version == "" {
		o.Version = site.Version
	}
	c.version(o.Version)
	c.missingFiles()
	c.includes()
	c.names()
	c.formats()
	c.injections()
	c.zones()
	c.addresses()
	c.certificates()
	c.httpSettings()
	for _, s := range c.servers {
		if !s.watched {
			continue
		}
		c.serverRewrites(s)
		c.serverSets(s)
		c.serverPages(s)
		c.serverSettings(s)
		if !c.adopted {
			c.unadopted(s)
		}
		for _, p := range s.protected {
			c.protectedLocation(s, p)
		}
		c.shadows(s)
	}
	c.limitStatuses()
	c.found.Sort()
	// What is said once for a file that many servers include is one finding.
	return slices.Compact(c.found)
}

// checker collects findings about a site.
type checker struct {
	site    *nginxconf.Site
	tables  map[string]*nginxconf.Table
	adopted bool // an include of Sluice is there
	servers []*server
	found   policies.Diagnostics
}

// server is a server block and what of it is protected.
type server struct {
	*nginxconf.Directive
	include   *nginxconf.Directive // of sluice/server.conf
	watched   bool                 // it is protected, or could be
	protected []*protected
}

// protected is a location that includes a route.
type protected struct {
	*nginxconf.Directive
	include *nginxconf.Directive
	route   string
	known   bool // the route's file was read
}

// asks tells whether the route asks the service; a route that was not read may.
func (p *protected) asks() bool {
	return p.has("auth_request", func(d *nginxconf.Directive) bool { return d.Arg(0) != "off" })
}

// has tells whether the route's file has a directive, or may have it.
func (p *protected) has(name string, fits func(*nginxconf.Directive) bool) bool {
	if !p.known {
		return true
	}
	for _, d := range (&nginxconf.Directive{Block: p.include.Included}).All(name) {
		if fits == nil || fits(d) {
			return true
		}
	}
	return false
}

func newChecker(site *nginxconf.Site) *checker {
	c := &checker{site: site, tables: site.Tables()}
	site.Root.Walk(func(d *nginxconf.Directive) {
		if fileOf(d) != "" && !ours(d) {
			c.adopted = true
		}
	})
	for _, d := range site.Servers() {
		s := &server{Directive: d, watched: !c.adopted}
		d.Walk(func(in *nginxconf.Directive) {
			switch file := fileOf(in); {
			case file == "server":
				s.include, s.watched = in, true
			case isRoute(file):
				s.watched = true
				if in.Parent.Name == "location" && !ours(in.Parent) {
					s.protected = append(s.protected, &protected{in.Parent, in, routeName(file), in.Found})
				}
			case isLocations(file):
				s.watched = true
			}
		})
		c.servers = append(c.servers, s)
	}
	return c
}

func (c *checker) report(d *nginxconf.Directive, warning bool, rule, format string, args []any) {
	c.found = append(c.found, policies.Diagnostic{
		Pos:     policies.Pos{File: d.File, Line: d.Line, Col: d.Col},
		Message: fmt.Sprintf(format, args...), Rule: rule, Warning: warning,
	})
}

// errorf reports what opens or breaks something.
func (c *checker) errorf(d *nginxconf.Directive, rule, format string, args ...any) {
	c.report(d, false, rule, format, args)
}

// warnf reports what may be meant.
func (c *checker) warnf(d *nginxconf.Directive, rule, format string, args ...any) {
	c.report(d, true, rule, format, args)
}

// wayf reports what is in the limiter's way: an error, but only a warning
// where no limiter is yet.
func (c *checker) wayf(d *nginxconf.Directive, rule, format string, args ...any) {
	c.report(d, !c.adopted, rule, format, args)
}

// label names a block for messages.
func label(d *nginxconf.Directive) string {
	if d.Name == "server" {
		if name := d.First("server_name"); name != nil && len(name.Args) > 0 {
			return "server " + name.Arg(0)
		}
		return fmt.Sprintf("the server of line %d", d.Line)
	}
	return d.String()
}

// Summary says in a few words what was looked at.
func Summary(site *nginxconf.Site) (servers, protected int) {
	c := newChecker(site)
	for _, s := range c.servers {
		protected += len(s.protected)
		if s.hasLocations() {
			protected++
		}
	}
	return len(c.servers), protected
}
