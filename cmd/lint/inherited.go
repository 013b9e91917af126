package lint

import (
	"strings"

	"sluice/cmd/nginxconf"
)

// NGINX inherits each kind of these directives only where the inner block has
// none of its own: one line of the site in a location drops all of ours, and
// one of ours all of the site's further out.

// pages reports error pages that drop those of denials.
func (c *checker) pages(p *protected) {
	pages := own(p.Directive, "error_page")
	for _, code := range []string{"403", "429"} {
		if len(pages) == 0 || pageFor(pages, code) != nil {
			continue
		}
		c.errorf(pages[0], "error-page", "error_page in a location drops those of the server, so a denial here loses its status, its Retry-After and its text; want error_page 403 = $sluice_page_403; and error_page 429 = $sluice_page_429; beside it")
		return
	}
	for _, code := range []string{"403", "429"} {
		if d := pageFor(pages, code); d != nil && !strings.Contains(d.String(), "$sluice_page_") {
			c.errorf(d, "error-page", "%s is what denials are made of: this page takes the place of status, Retry-After and text; want error_page %s = $sluice_page_%s; in its place", code, code, code)
		}
	}
}

// pageFor is the directive that decides about a status: the first that lists it.
func pageFor(pages []*nginxconf.Directive, code string) *nginxconf.Directive {
	for _, d := range pages {
		for _, w := range d.Args {
			if w.Text == code {
				return d
			}
		}
	}
	return nil
}

// serverPages reports a server's own pages for what denials are made of. Of two
// for one status the first holds.
func (c *checker) serverPages(s *server) {
	pages := own(s.Directive, "error_page")
	for _, code := range []string{"403", "429"} {
		d := pageFor(pages, code)
		switch {
		case d == nil || strings.Contains(d.String(), "$sluice_page_"):
		case s.include == nil:
			if !c.adopted {
				c.warnf(d, "error-page", "denials are made of %s: this page would take their place; want %s left to Sluice", code, code)
			}
		case before(s.Directive, d, s.include):
			c.errorf(d, "error-page", "of two pages for %s the first holds, and this stands above sluice/server.conf: denials lose their status, Retry-After and text; want %s left to Sluice", code, code)
		default:
			c.warnf(d, "error-page", "the page for %s is Sluice's, included at %s; this one is never shown; want it gone", code, s.include.Place)
		}
	}
	if s.include == nil || len(pages) > 0 {
		return
	}
	if h := level(s.Parent, "error_page"); h != nil {
		c.warnf(s.include, "error-page-dropped", "the error pages of %s do not hold in %s any more: sluice/server.conf has its own; want them repeated in the server", own(h, "error_page")[0].Place, label(s.Directive))
	}
}

// before tells which of two directives of a block comes first.
func before(block, a, b *nginxconf.Directive) bool {
	first := true
	block.Each(func(d *nginxconf.Directive) bool {
		first = d == a
		return d != a && d != b
	})
	return first
}

// headers reports add_header and proxy_set_header lines that drop ours.
func (c *checker) headers(p *protected) {
	blocks := append([]*nginxconf.Directive{p.Directive}, own(p.Directive, "if")...)
	for _, b := range blocks {
		if lines := own(b, "add_header"); len(lines) > 0 && !includesFile(b, "headers") && !merges(b) {
			c.warnf(lines[0], "headers-dropped", "add_header here drops the headers of the server, so clients do not see RateLimit and Retry-After; want include sluice/headers.conf; beside it")
		}
	}
	if len(p.All("proxy_pass", "grpc_pass")) > 0 {
		at := level(p.Directive, "proxy_set_header")
		switch {
		case at == nil && !includesAround(p.Directive, "proxy_headers"):
			c.warnf(p.include, "proxy-headers", "the application is sent X-Sluice-Tenant and the like as the client wrote them; want include sluice/proxy_headers.conf; in this location")
		case at != nil && !includesFile(at, "proxy_headers") && !includesWithin(p.Directive, at, "proxy_headers"):
			c.warnf(own(at, "proxy_set_header")[0], "proxy-headers", "proxy_set_header drops inherited ones, so the application is sent X-Sluice-Tenant and the like as the client wrote them (%s); want include sluice/proxy_headers.conf; beside it", label(p.Directive))
		}
	}
	if lines := own(p.Directive, "auth_request_set"); len(lines) == 0 {
		if at := level(p.Directive, "auth_request_set"); at != nil && p.asks() {
			c.warnf(p.include, "answer-dropped", "auth_request_set of %s does not hold here: the route %s has its own; want it repeated in this location", own(at, "auth_request_set")[0].Place, p.route)
		}
	}
}

// merges tells of a block whose headers are added to inherited ones (1.29.3).
func merges(b *nginxconf.Directive) bool {
	at := level(b, "add_header_inherit")
	return at != nil && own(at, "add_header_inherit")[0].Arg(0) == "merge"
}

// includesAround tells whether a block or one around it includes a rendered file.
func includesAround(b *nginxconf.Directive, want string) bool { return includesWithin(b, nil, want) }

// includesWithin looks no further out than the block before end.
func includesWithin(b, end *nginxconf.Directive, want string) bool {
	for ; b != end && b != nil; b = b.Parent {
		if includesFile(b, want) {
			return true
		}
	}
	return false
}

// serverSettings reports what sluice/server.conf drops, and what would let
// requests go past the locations that are protected.
func (c *checker) serverSettings(s *server) {
	if s.include != nil && len(own(s.Directive, "add_header")) == 0 {
		if at := level(s.Parent, "add_header"); at != nil && !merges(s.Directive) {
			c.warnf(s.include, "site-headers-dropped", "the headers of %s are not sent by %s any more: sluice/server.conf adds its own; want them repeated in the server", own(at, "add_header")[0].Place, label(s.Directive))
		}
	}
	if at := level(s.Directive, "merge_slashes"); at != nil {
		if d := own(at, "merge_slashes")[0]; d.Arg(0) == "off" {
			c.wayf(d, "merge-slashes", "//v1 is not under /v1 then: a client goes past every location by a second slash; want merge_slashes on, the default")
		}
	}
	if at := level(s.Directive, "underscores_in_headers"); at != nil {
		if d := own(at, "underscores_in_headers")[0]; d.Arg(0) == "on" {
			c.warnf(d, "underscores", "X_Api_Key and X-Api-Key are one variable to NGINX, and the first wins; the application may read the other: a client shows one key and uses another; want off, the default")
		}
	}
}

// logs reports access logs that drop the datagrams of ended requests, where
// the site sends them at all.
func (c *checker) logs(p *protected) {
	at := level(p.Directive, "access_log")
	if at == nil || includesFile(at, "log") || includesWithin(p.Directive, at, "log") {
		return
	}
	if includesAround(at.Parent, "log") {
		c.warnf(own(at, "access_log")[0], "log-dropped", "access_log here drops the datagrams by which the service learns that a request has ended (%s); want include sluice/log.conf; beside it", label(p.Directive))
	}
}

// limits reports limits of the site further out that a route's own ones drop.
func (c *checker) limits(p *protected) {
	for _, name := range []string{"limit_req", "limit_conn"} {
		at := level(p.Directive, name)
		if at == nil || at == p.Directive || !p.known || !p.has(name, nil) {
			continue
		}
		d := own(at, name)[0]
		c.warnf(p.include, "limit-dropped", "%s of %s does not count here: the route %s has limits of its own; want it repeated in this location, or in the policy", d, d.Place, p.route)
	}
}
