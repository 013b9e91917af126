package importer

import (
	"regexp"
	"slices"
	"strings"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// place is a location, or what of a server no location takes.
type place struct {
	*nginxconf.Directive // the block
	server               *nginxconf.Directive
	kind                 string // exact, prefix, regex
	match                string
	first                bool // ^~: no expression is asked
	hosts                []string
	name                 string
	uses                 []use
	list                 []*nginxconf.Directive // allow and deny
	auth                 string
	remark               string
}

// findPlaces lists the locations of all servers.
func (im *importer) findPlaces() {
	for _, s := range im.site.Servers() {
		if answers(s) {
			continue
		}
		hosts := im.hosts(s)
		before := len(im.places)
		im.locations(s, s, hosts)
		root := slices.ContainsFunc(im.places[before:], func(p *place) bool { return p.kind == "prefix" && p.match == "/" })
		if !root && !slices.ContainsFunc(s.All("location"), func(l *nginxconf.Directive) bool { return len(l.Args) > 0 && l.Args[len(l.Args)-1].Text == "/" }) {
			im.add(&place{Directive: s, server: s, kind: "prefix", match: "/", hosts: hosts})
		}
	}
	servers := map[*nginxconf.Directive]bool{}
	for _, p := range im.places {
		servers[p.server] = true
	}
	if len(servers) == 1 {
		// The only server takes every host.
		for _, p := range im.places {
			p.hosts = nil
		}
	}
	im.distinct()
	for _, p := range im.places {
		if len(servers) > 1 && len(p.hosts) > 0 && p.match == "/" && p.server == im.defaultServer() {
			im.note(p.server.Place, "this server also takes every host that no server names; the policy's routes are for %s alone, and those hosts have none", strings.Join(p.hosts, ", "))
		}
		if len(servers) > 1 && len(p.hosts) == 0 && p.match == "/" {
			im.note(p.server.Place, "this server is for hosts that no other names; the policy has no such word, and its routes take these paths on every host that has none of its own")
		}
		p.name = im.name(p.title(len(servers) > 1))
		p.uses = im.usesOf(p)
		p.list = im.listOf(p)
	}
}

// defaultServer is the server that takes hosts which none names: the one that
// says so, or the first.
func (im *importer) defaultServer() *nginxconf.Directive {
	servers := im.site.Servers()
	for _, s := range servers {
		for _, l := range s.All("listen") {
			if slices.Contains(l.Texts(), "default_server") || slices.Contains(l.Texts(), "default") {
				return s
			}
		}
	}
	if len(servers) > 0 {
		return servers[0]
	}
	return nil
}

// answers tells of a block that answers by itself, before anything is limited.
func answers(block *nginxconf.Directive) bool { return len(block.All("return")) > 0 }

// hosts are the names of a server that the language has.
func (im *importer) hosts(s *nginxconf.Directive) []string {
	var out []string
	for _, d := range s.All("server_name") {
		for _, w := range d.Args {
			text := strings.ToLower(w.Text)
			if text == "_" || text == "" || strings.HasPrefix(text, "$") {
				continue
			}
			names := []string{text}
			if rest, dot := strings.CutPrefix(text, "."); dot {
				names = []string{rest, "*." + rest}
			}
			for _, n := range names {
				var h policies.Host
				if err := h.UnmarshalText([]byte(n)); err != nil {
					im.note(w.Place, "server_name %s is no host of the language; want its names written out in hosts", w.Text)
				} else if !slices.Contains(out, n) {
					out = append(out, n)
				}
			}
		}
	}
	return out
}

// locations adds the locations of a block and of the locations in it.
func (im *importer) locations(block, server *nginxconf.Directive, hosts []string) {
	for _, l := range block.All("location") {
		if len(l.Args) == 0 || strings.HasPrefix(l.Arg(0), "@") || l.First("internal") != nil {
			continue
		}
		if p := im.locationOf(l); p != nil && !answers(l) {
			p.server, p.hosts = server, hosts
			im.add(p)
		}
		im.locations(l, server, hosts)
	}
}

func (im *importer) add(p *place) { im.places = append(im.places, p) }

// locationOf reads how a location matches; nil when the language cannot say it.
func (im *importer) locationOf(l *nginxconf.Directive) *place {
	modifier, match := "", l.Args[len(l.Args)-1].Text
	if len(l.Args) > 1 {
		modifier = l.Arg(0)
	} else if m := glued.FindStringSubmatch(match); m != nil {
		modifier, match = m[1], m[2]
	}
	p := &place{Directive: l, match: match}
	var err error
	switch modifier {
	case "=":
		p.kind = "exact"
		err = new(policies.Path).UnmarshalText([]byte(match))
	case "", "^~":
		p.kind, p.first = "prefix", modifier != ""
		if match != "/" && !strings.HasSuffix(match, "/") {
			p.remark = "NGINX took " + match + "... too; a prefix is whole segments here"
		}
		if p.match = strings.TrimSuffix(match, "/"); p.match == "" {
			p.match = "/"
		}
		err = new(policies.Path).UnmarshalText([]byte(p.match))
	case "~", "~*":
		p.kind = "regex"
		p.match, err = expression(match, modifier == "~*")
	default:
		return nil
	}
	if err == nil && reserved(strings.TrimPrefix(p.match, "^")) {
		return nil
	}
	if err != nil {
		im.note(l.Place, "%s: %v", l, err)
		return nil
	}
	return p
}

// reserved tells of paths that are Sluice's own.
func reserved(path string) bool {
	return strings.HasPrefix(path, strings.TrimSuffix(policies.AuthPrefix, "/"))
}

var (
	glued      = regexp.MustCompile(`^(=|\^~|~\*|~)(/.*|\^.*)$`)
	namedGroup = regexp.MustCompile(`\(\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|'[A-Za-z_][A-Za-z0-9_]*')`)
)

// expression is a regular expression as the language has it: names of groups
// and escaped slashes are not needed.
func expression(re string, fold bool) (string, error) {
	re = namedGroup.ReplaceAllString(re, "(")
	re = strings.ReplaceAll(re, `\/`, "/")
	if fold && !strings.HasPrefix(re, "(?i)") {
		re = "(?i)" + re
	}
	return re, new(policies.Regex).UnmarshalText([]byte(re))
}

// distinct leaves one of the places that match the same: a server for http and
// one for https are often written twice.
func (im *importer) distinct() {
	seen := map[string]*place{}
	im.places = slices.DeleteFunc(im.places, func(p *place) bool {
		key := p.kind + " " + p.match + " " + strings.Join(p.hosts, " ")
		first := seen[key]
		if first == nil {
			seen[key] = p
			return false
		}
		if im.signature(first) != im.signature(p) {
			im.note(p.Place, "%s is at %s already, with other limits; a policy has one route for both", p.what(), first.Place)
		}
		return true
	})
}

func (p *place) what() string { return p.kind + " " + p.match }

var noise = regexp.MustCompile(`\[[^\]]*\]|\{[^}]*\}|\\[A-Za-z]|\(\?[a-z]*:?|\$$`)

// title is what a route is called after: its path, and the host where there are several.
func (p *place) title(hosts bool) string {
	text := p.match
	if p.kind == "regex" {
		text = noise.ReplaceAllString(text, "/")
	}
	title := ident(text)
	if hosts && len(p.hosts) > 0 {
		host := strings.TrimPrefix(strings.TrimPrefix(p.hosts[0], "*."), "www.")
		host, _, _ = strings.Cut(host, ".")
		if text == "/" {
			return host
		}
		return host + "_" + title
	}
	return title
}
