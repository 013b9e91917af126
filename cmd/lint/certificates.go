package lint

import "sluice/cmd/nginxconf"

// certificates reports servers that ask nobody for a certificate, where the policy
// knows clients by theirs: nobody is ever known by one.
func (c *checker) certificates() {
	wanted := false
	c.site.Root.Walk(func(d *nginxconf.Directive) {
		wanted = wanted || d.Name == "map" && d.Arg(0) == "$ssl_client_verify" && ours(d)
	})
	if !wanted {
		return
	}
	var without []*server
	verified := false
	for _, s := range c.servers {
		switch {
		case len(s.protected) == 0 || s.include == nil:
		case verifies(s.Directive):
			verified = true
		default:
			without = append(without, s)
		}
	}
	for _, s := range without {
		const what = "the policy knows clients by their certificates (client_cert), and this server asks for none: nobody is known by one here; want ssl_verify_client on, or optional, and ssl_client_certificate"
		if verified {
			c.warnf(s.include, "unverified-cert", what)
		} else {
			c.errorf(s.include, "unverified-cert", what)
		}
	}
}

// verifies tells whether a server asks for certificates, and NGINX checks them.
func verifies(server *nginxconf.Directive) bool {
	for b := server; b != nil; b = b.Parent {
		if d := b.All("ssl_verify_client"); len(d) > 0 {
			return d[0].Arg(0) == "on" || d[0].Arg(0) == "optional"
		}
	}
	return false
}
