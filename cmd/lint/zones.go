package lint

import (
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
)

// zones checks what the site's own limits count by.
func (c *checker) zones() {
	for _, h := range c.site.HTTP() {
		for _, d := range own(h, "limit_req_zone", "limit_conn_zone") {
			c.zoneKey(d)
		}
		for _, d := range own(h, "geo") {
			if len(d.Args) == 2 {
				c.geoSource(d)
			}
		}
	}
}

func (c *checker) zoneKey(d *nginxconf.Directive) {
	key := d.Arg(0)
	for _, name := range c.closure(key) {
		if header, ok := forwarded(name); ok {
			c.errorf(d, "forwarded-key", "%s holds what the client writes into it: a fresh value each time, and nothing is limited; want $binary_remote_addr, with set_real_ip_from for the proxies", header)
			return
		}
	}
	for _, name := range nginxconf.Variables(key) {
		kind := sentBy(name)
		if kind == "" {
			continue
		}
		if d.Name == "limit_conn_zone" {
			c.errorf(d, "long-key", "$%s is as long as the client wants, and limit_conn does not count keys of more than 255 bytes: they are unlimited; want a map that takes only short values", name)
			return
		}
		what := "a request without it is not limited, one with a fresh value neither"
		if key != "$"+name && key != "${"+name+"}" {
			what = "a client gets a fresh counter with each new value"
		}
		c.warnf(d, "client-key", "$%s is what the client writes: %s; want a limit by address beside it, or keys that the service has checked (plans)", name, what)
		return
	}
}

// geoSource reports networks that are looked up for what the client wrote.
func (c *checker) geoSource(d *nginxconf.Directive) {
	for _, name := range nginxconf.Variables(d.Arg(0)) {
		if header, ok := forwarded(name); ok {
			c.errorf(d, "forwarded-key", "%s holds what the client writes into it, so that it chooses its own network; want $remote_addr, with set_real_ip_from for the proxies", header)
		}
	}
}

// forwarded are the headers in which proxies name a client, and everybody can.
func forwarded(name string) (string, bool) {
	switch name {
	case "http_x_forwarded_for", "proxy_add_x_forwarded_for":
		return "X-Forwarded-For", true
	case "http_forwarded":
		return "Forwarded", true
	case "http_x_real_ip":
		return "X-Real-IP", true
	case "http_cf_connecting_ip":
		return "CF-Connecting-IP", true
	case "http_true_client_ip":
		return "True-Client-IP", true
	case "http_x_client_ip":
		return "X-Client-IP", true
	}
	return "", false
}

// sentBy tells of variables that hold what the client sends, as long as it
// likes; the host is not among them, for NGINX chose the server by it.
func sentBy(name string) string {
	for _, prefix := range []string{"http_", "cookie_", "arg_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && name != "http_host" {
			return rest
		}
	}
	if slices.Contains([]string{"request_uri", "uri", "document_uri", "args", "query_string", "request"}, name) {
		return name
	}
	return ""
}

// limitStatuses reports limits that answer as if the server were broken.
func (c *checker) limitStatuses() {
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		if d.Name != "limit_req" && d.Name != "limit_conn" || ours(d) {
			return
		}
		if at := level(d.Parent, d.Name+"_status"); at != nil && own(at, d.Name+"_status")[0].Arg(0) != "503" {
			return
		}
		for _, i := range d.Parent.All("include") {
			if isRoute(fileOf(i)) {
				return // the route's file says 429
			}
		}
		c.warnf(d, "limit-status", "who is over this limit is answered 503, as if the server were broken; want %s_status 429;", d.Name)
	})
}
