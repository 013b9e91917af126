package lint

import (
	"regexp"
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
)

// protectedLocation checks one location that includes a route.
func (c *checker) protectedLocation(s *server, p *protected) {
	c.locationReturns(p)
	c.satisfy(p)
	c.authenticator(p)
	c.repeated(p)
	c.pages(p)
	c.headers(p)
	c.logs(p)
	c.limits(p)
	c.nested(p)
	if d := p.First("internal"); d != nil && !ours(d) && !strings.HasPrefix(p.Arg(0), "@") {
		c.warnf(d, "internal-location", "clients never get here by themselves: the route counts requests that another location took first; want the route there")
	}
}

// locationReturns reports answers that are given before the limiter is asked:
// NGINX rewrites first, and what is answered then is neither counted nor asked
// about (three requests at 1r/m were all answered 200).
func (c *checker) locationReturns(p *protected) {
	before := true
	for _, d := range p.All("include", "return", "rewrite", "if", "set") {
		if d == p.include {
			before = false
		}
		if ours(d) || d.Name == "include" || d.Name == "set" {
			continue
		}
		switch d.Name {
		case "return":
			c.errorf(d, "return-first", "this answers before any limit counts and before the service is asked: the route %s has no effect; want the answer from an upstream or a file, or no route here", p.route)
		case "rewrite":
			c.locationRewrite(p, d)
		case "if":
			for _, r := range own(d, "return", "rewrite") {
				c.conditional(p, r, before)
			}
		}
	}
}

func (c *checker) conditional(p *protected, d *nginxconf.Directive, before bool) {
	switch {
	case d.Name == "rewrite" && !redirects(d):
		c.locationRewrite(p, d)
	case before:
		c.warnf(d, "return-first", "who fits this condition is answered before the route %s says anything, its access rules included; want include %s; as the first line of the location", p.route, p.include.Arg(0))
	case !strings.HasPrefix(d.Arg(0), "4"):
		c.warnf(d, "return-first", "who fits this condition is answered before any limit counts and before the service is asked; want it so, or the answer elsewhere")
	}
}

// locationRewrite reports a rewrite that leaves the location.
func (c *checker) locationRewrite(p *protected, d *nginxconf.Directive) {
	switch {
	case d.Arg(2) == "break":
	case redirects(d):
		c.warnf(d, "return-first", "what fits is redirected before any limit counts and before the service is asked; want it so, or the redirect elsewhere")
	default:
		c.warnf(d, "rewrite-away", "what fits leaves this location before the route %s counts or asks; want break as the last word, or the route in the location that it goes to", p.route)
	}
}

// satisfy reports `satisfy any`. Where it held, an allow of ours opened a
// location without its password; the route says satisfy all.
func (c *checker) satisfy(p *protected) {
	if !p.has("satisfy", nil) {
		return
	}
	at := level(p.Directive, "satisfy")
	if at == nil {
		return
	}
	switch d := own(at, "satisfy")[0]; {
	case at == p.Directive:
		c.errorf(d, "satisfy-any", "the route %s says satisfy all, and NGINX refuses a second one in a location; want this line gone, and what may pass in the policy's access rules", p.route)
	case d.Arg(0) == "any":
		c.warnf(p.include, "satisfy-any", "satisfy any of %s does not hold here: the service must allow, and so must allow, deny and auth_basic; want what may pass in the policy's access rules", d.Place)
	}
}

// authenticator reports a second auth_request: a location has room for one,
// and its own replaces an inherited one.
func (c *checker) authenticator(p *protected) {
	if !p.has("auth_request", nil) {
		return
	}
	const want = "want identity.sources: auth_request in the policy, which asks both"
	at := level(p.Directive, "auth_request")
	if at == nil {
		return
	}
	switch d := own(at, "auth_request")[0]; {
	case at == p.Directive:
		c.errorf(d, "second-auth-request", "the route %s has the auth_request of this location, and NGINX refuses a second one; %s", p.route, want)
	case d.Arg(0) != "off":
		c.errorf(p.include, "auth-request-lost", "auth_request %s of %s does not hold here: the route %s has its own in its place, so this location is no longer protected by yours; %s", d.Arg(0), d.Place, p.route, want)
	}
}

// once are directives that may stand in a location one time only.
func once() []string {
	return []string{"limit_req_status", "limit_conn_status", "limit_req_dry_run", "limit_conn_dry_run"}
}

// repeated reports what NGINX refuses because the route says it too.
func (c *checker) repeated(p *protected) {
	for _, name := range once() {
		for _, d := range own(p.Directive, name) {
			if p.known && p.has(name, nil) {
				c.errorf(d, "repeated-directive", "the route %s has %s too, and NGINX refuses a second one in a location; want this line gone", p.route, name)
			}
		}
	}
}

// nested reports locations inside a protected one that take its requests: they
// inherit limits and question, but not the access rules.
func (c *checker) nested(p *protected) {
	p.Walk(func(d *nginxconf.Directive) {
		if d.Name != "location" || ours(d) || d.In("location") != p.Directive {
			return
		}
		if slices.ContainsFunc(d.All("include"), func(i *nginxconf.Directive) bool { return isRoute(fileOf(i)) }) {
			return
		}
		for _, own := range own(d, "auth_request", "satisfy", "limit_req", "limit_conn") {
			switch {
			case own.Name == "auth_request" && p.asks():
				c.errorf(own, "nested-location", "this replaces the question that %s asks: what fits %s is not asked about; want a route of its own here", label(p.Directive), label(d))
			case own.Name == "satisfy" && own.Arg(0) == "any" && p.asks():
				c.errorf(own, "satisfy-any", "with satisfy any an allow or a password passes without the service, and the service's yes passes without them; want satisfy all")
			case strings.HasPrefix(own.Name, "limit_") && p.has(own.Name, nil):
				c.warnf(own, "nested-location", "this replaces the limits of the route %s, which are not inherited beside it; want include %s; in this location too", p.route, p.include.Arg(0))
			}
		}
		if p.has("if", nil) {
			c.warnf(d, "nested-location", "what fits %s is not under the access rules of the route %s, which NGINX does not inherit; want include %s; in this location too", label(d), p.route, p.include.Arg(0))
		}
	})
}

// shadows reports regex locations that take requests of a protected prefix: of
// a plain prefix NGINX asks expressions first, and these are not protected.
func (c *checker) shadows(s *server) {
	for _, re := range s.All("location") {
		expression, ok := regexLocation(re)
		if !ok || ours(re) || refuses(re) || slices.ContainsFunc(s.protected, func(p *protected) bool { return p.Directive == re }) {
			continue
		}
		for _, p := range s.protected {
			if p.Parent != s.Directive && p.Parent.Name == "location" || len(p.Args) != 1 || strings.HasPrefix(p.Arg(0), "@") || !overlap(expression, p.Arg(0)) {
				continue
			}
			if len(re.All("proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass")) > 0 {
				c.errorf(re, "regex-shadows", "%s takes requests of %s (%s), and is not protected: they reach the application unlimited; want a route here too, or ^~ there", label(re), label(p.Directive), p.Place)
			} else {
				c.warnf(re, "regex-shadows", "%s takes requests of %s (%s), and is not protected; want it so for these files, or a route here, or ^~ there", label(re), label(p.Directive), p.Place)
			}
			break
		}
	}
}

// regexLocation is the expression of a location that has one.
func regexLocation(d *nginxconf.Directive) (string, bool) {
	if len(d.Args) == 2 && (d.Arg(0) == "~" || d.Arg(0) == "~*") {
		return d.Arg(1), true
	}
	if len(d.Args) == 1 && strings.HasPrefix(d.Arg(0), "~") {
		return strings.TrimLeft(d.Arg(0), "~*"), true
	}
	return "", false
}

// refuses tells of a location that only refuses: nothing is to be limited there.
func refuses(d *nginxconf.Directive) bool {
	for _, r := range d.All("return") {
		if strings.HasPrefix(r.Arg(0), "4") {
			return true
		}
	}
	all := d.All("deny")
	return len(all) > 0 && all[len(all)-1].Arg(0) == "all" && len(d.All("allow")) == 0
}

var literalStart = regexp.MustCompile(`^\^((?:[A-Za-z0-9/_-]|\\[.-])*)`)

// overlap tells whether an expression may fit a path under a prefix.
func overlap(expression, prefix string) bool {
	m := literalStart.FindStringSubmatch(expression)
	if m == nil {
		return true
	}
	literal := strings.ReplaceAll(m[1], `\`, "")
	if rest := expression[len(m[0]):]; rest != "" && strings.ContainsAny(rest[:1], "?*{") && literal != "" {
		literal = literal[:len(literal)-1] // the last character may be absent
	}
	return strings.HasPrefix(literal, prefix) || strings.HasPrefix(prefix, literal)
}
