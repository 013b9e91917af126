package lint

import (
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
)

// addresses checks who may name the client.
func (c *checker) addresses() {
	var trusting []*nginxconf.Directive
	proxied := c.proxyTraces()
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		if d.Name != "set_real_ip_from" || ours(d) {
			return
		}
		trusting = append(trusting, d)
		if d.Arg(0) == "0.0.0.0/0" || d.Arg(0) == "::/0" {
			c.errorf(d, "real-ip-wide", "everybody may name the client's address then, and have a fresh one each time; want the networks of your own proxies")
		}
	})
	c.realIPTwice()
	if len(trusting) > 0 || c.includesAnywhere("real_ip") {
		return
	}
	limit := c.countsAddresses()
	switch {
	case limit == nil:
	case proxied != nil:
		c.errorf(limit, "real-ip-missing", "this counts by address, %s tells of a proxy in front, and nothing says which: all clients of the proxy share a counter; want include sluice/real_ip.conf; in http { }, and client_ip in the policy", proxied.Place)
	case c.adopted:
		c.warnf(limit, "real-ip-missing", "this counts by address, and nothing says who may name the client: behind a proxy all clients share a counter; want include sluice/real_ip.conf; in http { }, which says so either way")
	}
}

// realIPTwice reports two places that say who may name the client.
func (c *checker) realIPTwice() {
	for _, h := range c.site.HTTP() {
		for _, i := range h.All("include") {
			if fileOf(i) != "real_ip" {
				continue
			}
			if mine := own(h, "real_ip_header", "real_ip_recursive"); len(mine) > 0 {
				c.errorf(i, "real-ip-twice", "%s stands at %s too, and NGINX refuses a second one; want one of the two, the policy's or the site's", mine[0].Name, mine[0].Place)
			}
		}
	}
}

// countsAddresses is a limit zone that counts by address, ours or the site's,
// nil when there is none.
func (c *checker) countsAddresses() *nginxconf.Directive {
	for _, h := range c.site.HTTP() {
		for _, d := range h.All("limit_req_zone", "limit_conn_zone") {
			for _, name := range c.closure(d.Arg(0)) {
				if name == "binary_remote_addr" || name == "remote_addr" {
					return d
				}
			}
		}
	}
	return nil
}

// proxyTraces is a line that tells of a proxy in front, nil when none does.
// Handing X-Forwarded-For on is what every site does, and tells nothing.
func (c *checker) proxyTraces() *nginxconf.Directive {
	var found *nginxconf.Directive
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		if found != nil || ours(d) || strings.HasSuffix(d.Name, "_set_header") || strings.HasSuffix(d.Name, "_param") || d.Name == "log_format" {
			return
		}
		if d.Name == "listen" && slices.Contains(d.Texts(), "proxy_protocol") {
			found = d
		}
		for _, w := range d.Args {
			for _, name := range nginxconf.Variables(w.Text) {
				if _, ok := forwarded(name); ok || name == "http_x_forwarded_proto" || name == "proxy_protocol_addr" {
					found = d
				}
			}
		}
	})
	return found
}

func (c *checker) includesAnywhere(file string) bool {
	found := false
	c.site.Root.Walk(func(d *nginxconf.Directive) { found = found || fileOf(d) == file })
	return found
}
