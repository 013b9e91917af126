package importer

import (
	"net/http"
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// clientAddress reads who may name the client. A policy says it once, for all
// servers.
func (im *importer) clientAddress() {
	im.site.Root.Walk(func(d *nginxconf.Directive) {
		switch d.Name {
		case "set_real_ip_from":
			im.trust(d)
		case "real_ip_header":
			im.realIPHeader(d)
		}
	})
	if len(im.draft.trusted) == 0 {
		im.draft.header = ""
	} else if im.draft.header == "" {
		im.draft.header = "X-Real-IP"
	}
}

func (im *importer) trust(d *nginxconf.Directive) {
	n, why := network(d.Arg(0))
	switch {
	case d.Arg(0) == "0.0.0.0/0" || d.Arg(0) == "::/0":
		im.note(d.Place, "%s lets everybody name the client's address; want the networks of your own proxies", d)
	case why != "":
		im.note(d.Place, "%s: %s; want its addresses in client_ip.trusted_proxies", d, why)
	case !slices.Contains(im.draft.trusted, n):
		if len(im.draft.trusted) == 0 {
			im.draft.trustedFrom = d.Place
		}
		im.draft.trusted = append(im.draft.trusted, n)
	}
}

func (im *importer) realIPHeader(d *nginxconf.Directive) {
	header := d.Arg(0)
	if header != string(policies.ProxyProtocol) {
		header = http.CanonicalHeaderKey(header)
		for _, known := range []string{"X-Real-IP", "CF-Connecting-IP", "True-Client-IP"} {
			if strings.EqualFold(header, known) {
				header = known
			}
		}
		if err := new(policies.HeaderName).UnmarshalText([]byte(header)); err != nil {
			im.note(d.Place, "%s: %v", d, err)
			return
		}
	}
	if im.draft.header != "" && im.draft.header != header {
		im.note(d.Place, "%s: the policy has one header for all servers, %s", d, im.draft.header)
		return
	}
	im.draft.header = header
}

// auth is the site's own authenticator.
type auth struct {
	location     string
	user, tenant string // headers of its answer
	from         nginxconf.Place
}

// authenticator reads auth_request. NGINX has room for one question in a
// location: the policy chains it.
func (im *importer) authenticator() {
	for _, p := range im.places {
		list := inherited(p.Directive, "auth_request")
		if len(list) == 0 || list[0].Arg(0) == "off" {
			continue
		}
		d := list[0]
		switch a := im.draft.auth; {
		case a == nil:
			if err := new(policies.Path).UnmarshalText([]byte(d.Arg(0))); err != nil || reserved(d.Arg(0)) {
				im.note(d.Place, "%s: no location that a policy could name", d)
				continue
			}
			im.draft.auth = &auth{location: d.Arg(0), from: d.Place}
		case a.location != d.Arg(0):
			im.note(d.Place, "%s: a policy has one authenticator, %s of %s", d, a.location, a.from)
			continue
		}
		p.auth = d.Arg(0)
		im.answerHeaders(p)
	}
}

// answerHeaders finds the headers that say who the user is.
func (im *importer) answerHeaders(p *place) {
	a := im.draft.auth
	for _, d := range inherited(p.Directive, "auth_request_set") {
		rest, ok := strings.CutPrefix(nginxconf.Lone(d.Arg(1)), "upstream_http_")
		header := headerName(rest)
		if !ok || new(policies.HeaderName).UnmarshalText([]byte(header)) != nil || forbidden(header) {
			continue
		}
		has := func(words ...string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(rest, w) })
		}
		switch {
		case has("org", "tenant") && a.tenant == "":
			a.tenant = header
		case has("user", "subject", "uid") && (a.user == "" || strings.HasSuffix(a.user, "Email")):
			a.user = header
		case has("email") && a.user == "":
			a.user = header
		}
	}
}
