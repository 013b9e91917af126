package lint

import (
	"fmt"
	"strconv"
	"strings"

	"sluice/cmd/nginxconf"
)

// oldest is the first NGINX that reads what is rendered.
const oldest = "1.22.0"

// version reports an NGINX that is too old.
func (c *checker) version(v string) {
	if v != "" && older(v, oldest) {
		c.errorf(c.site.Root, "nginx-version", "NGINX %s is too old for what Sluice renders; want 1.22 or newer", v)
	}
}

func older(a, b string) bool {
	left, right := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(left), len(right)) {
		x, errX := strconv.Atoi(left[i])
		y, errY := strconv.Atoi(right[i])
		if errX != nil || errY != nil || x != y {
			return errX == nil && errY == nil && x < y
		}
	}
	return false
}

// CheckVersion says what is wrong with a version, nil for one such as 1.22 or 1.22.1.
func CheckVersion(v string) error {
	parts := strings.Split(v, ".")
	for _, p := range parts {
		if _, err := strconv.ParseUint(p, 10, 16); err != nil || len(parts) < 2 || len(parts) > 3 {
			return fmt.Errorf("%q is no version of NGINX; want one such as 1.22.1", v)
		}
	}
	return nil
}

// names reports what the site calls by a name that is Sluice's.
func (c *checker) names() {
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		if ours(d) {
			return
		}
		name := ""
		switch d.Name {
		case "map", "geo", "split_clients", "geoip2":
			if len(d.Args) > 0 {
				name = d.Args[len(d.Args)-1].Text
			}
		case "set", "auth_request_set", "upstream", "log_format":
			name = d.Arg(0)
			if d.Name == "upstream" && name == "sluice_app" {
				return // sluice/app.conf asks for it
			}
		case "location":
			if len(d.Args) > 0 {
				name = d.Args[len(d.Args)-1].Text
			}
			if strings.HasPrefix(name, "/_sluice") {
				c.errorf(d, "reserved-name", "paths under /_sluice/ are Sluice's own; want another path")
				return
			}
		case "limit_req_zone", "limit_conn_zone", "proxy_cache_path":
			for _, w := range d.Args {
				if zone, ok := strings.CutPrefix(w.Text, "zone="); ok {
					name = zone
				}
				if zone, ok := strings.CutPrefix(w.Text, "keys_zone="); ok {
					name = zone
				}
			}
		}
		if name = strings.TrimLeft(name, "$@"); strings.HasPrefix(name, "sluice_") {
			name, _, _ = strings.Cut(name, ":")
			c.errorf(d, "reserved-name", "names that begin with sluice_ are Sluice's own, and %s is one; want another name", name)
		}
	})
}

// httpSettings reports settings that must stand above sluice/http.conf: NGINX
// takes the sizes of its tables with the first map, and calls a later one a duplicate.
func (c *checker) httpSettings() {
	for _, h := range c.site.HTTP() {
		var http *nginxconf.Directive
		h.Each(func(d *nginxconf.Directive) bool {
			if fileOf(d) == "http" {
				http = d
			}
			if http != nil && !ours(d) && (d.Name == "map_hash_bucket_size" || d.Name == "map_hash_max_size") {
				c.errorf(d, "map-hash-order", "this comes after the maps of sluice/http.conf (%s), and NGINX calls it a duplicate then; want it above that include", http.Place)
			}
			return true
		})
	}
}

// unadopted says what of a site will have to be settled before it adopts
// Sluice: of a site that has, the checks of protected locations say it better.
func (c *checker) unadopted(s *server) {
	var first *nginxconf.Directive
	s.Walk(func(d *nginxconf.Directive) {
		switch {
		case d.Name == "satisfy" && d.Arg(0) == "any":
			c.warnf(d, "satisfy-any", "a protected location says satisfy all: with any, an allow or a password passes without the service; want what may pass in the policy's access rules")
		case d.Name == "auth_request" && d.Arg(0) != "off" && first == nil:
			first = d
			c.warnf(d, "second-auth-request", "a location has room for one auth_request, and a route brings its own; want identity.sources: auth_request in the policy, which asks both")
		}
	})
	for p := s.Parent; p != nil; p = p.Parent {
		for _, d := range p.All("satisfy", "auth_request") {
			if d.Arg(0) == "any" {
				c.warnf(d, "satisfy-any", "a protected location says satisfy all: with any, an allow or a password passes without the service; want what may pass in the policy's access rules")
			}
		}
	}
}
