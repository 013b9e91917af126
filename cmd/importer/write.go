package importer

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"sluice/cmd/nginxconf"
)

// write puts the draft down as YAML, keys in the order of the language.
func (im *importer) write() []byte {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Imported from %s. Read it before you use it: `sluice validate`, then `sluice render`.", clean(im.site.File))
	if len(im.notes) > 0 {
		line("# What it does not say as the site did:")
		for _, n := range im.notes {
			line("#   %s:%d: %s", clean(n.Pos.File), n.Pos.Line, clean(n.Message))
		}
	}
	line("version: 1")
	d := &im.draft
	if len(d.trusted) > 0 {
		line("client_ip:")
		line("  trusted_proxies: [%s]  # %s", networkList(d.trusted), from(d.trustedFrom))
		line("  header: %s", d.header)
	}
	im.writeAuth(line)
	if len(d.access)+len(d.limits) > 0 {
		line("edge:")
	}
	if len(d.access) > 0 {
		line("  access:")
		for _, r := range d.access {
			line("    - {%s}  # %s", strings.Join(r.fields(), ", "), from(r.from...))
		}
	}
	if len(d.limits) > 0 {
		line("  limits:")
		for _, l := range d.limits {
			remark := ""
			if l.remark != "" {
				remark = "; " + clean(l.remark)
			}
			line("    %s: {%s}  # %s%s", scalar(l.name), strings.Join(l.fields(), ", "), from(l.from...), remark)
		}
	}
	if d.auth != nil {
		by := "ip"
		if d.auth.user != "" {
			by = "user"
		}
		line("plans:")
		line("  signed_in:  # everybody whom the authenticator lets in; the numbers are a guess, so they are only tried out")
		line("    limits: {speed: {per: %s, mode: shadow, rate: 10/s, burst: 20}}", by)
	}
	im.writeRoutes(line)
	return []byte(b.String())
}

func (im *importer) writeAuth(line func(string, ...any)) {
	a := im.draft.auth
	if a == nil {
		return
	}
	fields := []string{"location: " + scalar(a.location)}
	if a.user != "" {
		fields = append(fields, "user_header: "+a.user)
	}
	if a.tenant != "" {
		fields = append(fields, "tenant_header: "+a.tenant)
	}
	line("identity:")
	line("  sources:")
	line("    - auth_request: {%s}  # %s", strings.Join(fields, ", "), from(a.from))
	line("  unlisted: {plan: signed_in}")
}

// writeRoutes writes the routes, none when all requests are treated alike.
func (im *importer) writeRoutes(line func(string, ...any)) {
	if im.merged && (im.draft.auth == nil || len(im.places) == 0) || len(im.places) == 0 {
		return
	}
	line("routes:")
	for _, p := range im.order() {
		match := []string{p.kind + ": " + pathScalar(p)}
		if len(p.hosts) > 0 {
			hosts := make([]string, len(p.hosts))
			for i, h := range p.hosts {
				hosts[i] = scalar(h)
			}
			match = append(match, "hosts: ["+strings.Join(hosts, ", ")+"]")
		}
		fields := "name: " + scalar(p.name) + ", match: {" + strings.Join(match, ", ") + "}"
		if im.draft.auth != nil && p.auth == "" {
			fields += ", service: false"
		}
		remark := ""
		if p.remark != "" {
			remark = "; " + clean(p.remark)
		}
		line("  - {%s}  # %s%s", fields, from(p.Place), remark)
	}
}

func pathScalar(p *place) string {
	if p.kind == "regex" {
		return single(p.match)
	}
	return scalar(p.match)
}

func (r *rule) fields() []string {
	out := []string{"name: " + scalar(r.name), r.verdict + ": " + r.who.yaml()}
	if text, ok := statusOf(r.status); r.status != 0 && ok {
		out = append(out, "status: "+text)
	}
	return append(out, tail(r.routes, r.when)...)
}

func (l *limit) fields() []string {
	per := strings.Join(l.key.per, ", ")
	if len(l.key.per) > 1 {
		per = "[" + per + "]"
	}
	out := []string{"per: " + per}
	if l.connections > 0 {
		out = append(out, fmt.Sprintf("connections: %d", l.connections))
	} else {
		out = append(out, "rate: "+l.rate, fmt.Sprintf("burst: %d", l.burst))
	}
	if l.expect > 0 {
		out = append(out, fmt.Sprintf("expect: %d", l.expect))
	}
	if l.delay != "" {
		out = append(out, "delay: "+l.delay)
	}
	var routes []*place
	if !l.everywhere {
		routes = l.routes
	}
	out = append(out, tail(routes, nil)...)
	if !l.key.only.empty() {
		out = append(out, "only: "+l.key.only.yaml())
	}
	if !l.key.except.empty() {
		out = append(out, "except: "+l.key.except.yaml())
	}
	out = append(out, tail(nil, l.key.when)...)
	if l.shadow {
		out = append(out, "mode: shadow")
	}
	return out
}

func tail(routes []*place, when []string) []string {
	var out []string
	if len(routes) > 0 {
		names := make([]string, len(routes))
		for i, p := range routes {
			names[i] = scalar(p.name)
		}
		out = append(out, "routes: ["+strings.Join(names, ", ")+"]")
	}
	if len(when) > 0 {
		out = append(out, "when: {"+strings.Join(when, ", ")+"}")
	}
	return out
}

func (c clients) yaml() string {
	if c.all {
		return "all"
	}
	var lists []string
	if len(c.cidrs) > 0 {
		lists = append(lists, "cidrs: ["+networkList(c.cidrs)+"]")
	}
	if len(c.countries) > 0 {
		lists = append(lists, "countries: ["+strings.Join(c.countries, ", ")+"]")
	}
	if len(c.userAgents) > 0 {
		agents := make([]string, len(c.userAgents))
		for i, a := range c.userAgents {
			agents[i] = single(a)
		}
		lists = append(lists, "user_agents: ["+strings.Join(agents, ", ")+"]")
	}
	return "{" + strings.Join(lists, ", ") + "}"
}

// networkList quotes what has a colon: an address of IPv6 is no mapping.
func networkList(list []string) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = n
		if strings.Contains(n, ":") {
			out[i] = `"` + n + `"`
		}
	}
	return strings.Join(out, ", ")
}

// from names the places that a line is made of.
func from(places ...nginxconf.Place) string {
	var out []string
	file := ""
	for _, p := range places {
		text := clean(p.String())
		if rest, same := strings.CutPrefix(text, file+":"); same && file != "" {
			text = ":" + rest
		}
		file = clean(p.File)
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./-]*$`)

// scalar quotes a text where YAML could take it for something else.
func scalar(text string) string {
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n", "all":
		if text != "all" {
			return single(text)
		}
	}
	if plain.MatchString(text) {
		return text
	}
	return single(text)
}

// single puts a text into single quotes, where only they need doubling.
func single(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// clean is a text that can stand in a comment.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
