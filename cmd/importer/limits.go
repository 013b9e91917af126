package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice/cmd/nginxconf"
)

// zone is a limit_req_zone or limit_conn_zone.
type zone struct {
	*nginxconf.Directive
	rate   string
	expect int
}

// findZones reads the zones. A zone may be for requests and another of the
// same name cannot be, so one table holds both.
func (im *importer) findZones() {
	for _, h := range im.site.HTTP() {
		for _, d := range h.All("limit_req_zone", "limit_conn_zone") {
			z := &zone{Directive: d}
			name := ""
			for _, w := range d.Args[min(1, len(d.Args)):] {
				if text, ok := strings.CutPrefix(w.Text, "zone="); ok {
					var size string
					name, size, _ = strings.Cut(text, ":")
					z.expect = clientsIn(size)
				}
				if text, ok := strings.CutPrefix(w.Text, "rate="); ok {
					z.rate = rateOf(text)
				}
			}
			if name != "" {
				im.zones[name] = z
			}
		}
	}
}

// clientsIn is how many clients a zone of a size holds; 8000 in a megabyte.
func clientsIn(size string) int {
	if size == "" {
		return 0
	}
	n, err := strconv.Atoi(size[:len(size)-1])
	if err != nil || n <= 0 || n > 1<<20 {
		return 0
	}
	switch size[len(size)-1] {
	case 'm', 'M':
		return n * 8000
	case 'k', 'K':
		return n * 8
	}
	return 0
}

// rateOf is a rate as the language has it, empty when it is none.
func rateOf(text string) string {
	number, unit := text, "s"
	if rest, ok := strings.CutSuffix(text, "r/s"); ok {
		number = rest
	} else if rest, ok := strings.CutSuffix(text, "r/m"); ok {
		number, unit = rest, "m"
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > 1_000_000 {
		return ""
	}
	return fmt.Sprintf("%d/%s", n, unit)
}

// use is one limit_req or limit_conn as it holds in a place.
type use struct {
	*nginxconf.Directive
	zone   string
	burst  int
	delay  string
	number int
	shadow bool
	status string
}

// key is the same for uses that can be one limit.
func (u use) key() string {
	return fmt.Sprintf("%s %s %d %s %d %t", u.Name, u.zone, u.burst, u.delay, u.number, u.shadow)
}

// usesOf are the limits that hold in a place, those of the named location that
// it falls back to included.
func (im *importer) usesOf(p *place) []use {
	var out []use
	for _, name := range []string{"limit_req", "limit_conn"} {
		block := p.Directive
		list := inherited(block, name)
		if fallback := p.fallback(); fallback != nil && len(fallback.All(name)) > 0 && len(p.All(name)) == 0 {
			block, list = fallback, fallback.All(name)
		}
		for _, d := range list {
			u := use{Directive: d, shadow: setting(block, name+"_dry_run", "off") == "on", status: setting(block, name+"_status", "503")}
			if name == "limit_req" {
				u.request()
			} else if u.zone = d.Arg(0); true {
				u.number, _ = strconv.Atoi(d.Arg(1))
			}
			out = append(out, u)
		}
	}
	return out
}

// fallback is the named location where try_files or an error page of a place
// ends, nil when there is none. Of the two only error pages are inherited.
func (p *place) fallback() *nginxconf.Directive {
	for _, d := range append(p.All("try_files"), inherited(p.Directive, "error_page")...) {
		target := ""
		if len(d.Args) > 0 {
			target = d.Args[len(d.Args)-1].Text
		}
		if !strings.HasPrefix(target, "@") {
			continue
		}
		for _, l := range p.server.All("location") {
			if l.Arg(0) == target {
				return l
			}
		}
	}
	return nil
}

// request reads the arguments of limit_req. NGINX counts the burst besides the
// request that is always served, the language counts both.
func (u *use) request() {
	u.burst, u.delay = 1, "all"
	for _, w := range u.Args {
		name, value, _ := strings.Cut(w.Text, "=")
		n, _ := strconv.Atoi(value)
		n = min(max(n, 0), 999_998)
		switch name {
		case "zone":
			u.zone = value
		case "burst":
			u.burst = n + 1
		case "nodelay":
			u.delay = ""
		case "delay":
			u.delay = strconv.Itoa(n + 1)
		}
	}
	if n, err := strconv.Atoi(u.delay); err == nil && n >= u.burst || u.burst == 1 {
		u.delay = ""
	}
}

// limits makes one limit of all uses that are alike.
func (im *importer) limits() {
	byKey := map[string]*limit{}
	groups := map[string]map[string]bool{}
	for _, p := range im.places {
		for _, u := range im.usesOf(p) {
			if groups[u.zone] == nil {
				groups[u.zone] = map[string]bool{}
			}
			groups[u.zone][u.key()] = true
		}
	}
	for _, p := range im.order() {
		for _, u := range p.uses {
			l, seen := byKey[u.key()]
			if !seen {
				l = im.limit(u, p, len(groups[u.zone]) > 1)
				byKey[u.key()] = l
			}
			if l != nil {
				im.named(u, p)
				l.routes = append(l.routes, p)
				if !slices.Contains(l.from, u.Place) {
					l.from = append(l.from, u.Place)
				}
			}
		}
	}
	im.mixed()
	for _, l := range im.draft.limits {
		slices.SortFunc(l.from[1:], func(a, b nginxconf.Place) int {
			return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
		})
		l.everywhere = len(l.routes) == len(im.places)
	}
}

// named notes a limit of a named location: a policy counts before NGINX looks
// for a file.
func (im *importer) named(u use, p *place) {
	if in := u.In("location"); in != nil && strings.HasPrefix(in.Arg(0), "@") {
		im.note(u.Place, "%s counts what falls back to %s; in the policy it counts all of route %s, files too", u.Directive, in.Arg(0), p.name)
	}
}

// limit makes a limit of its first use; nil when the language cannot say it.
func (im *importer) limit(u use, p *place, several bool) *limit {
	z := im.zones[u.zone]
	if z == nil || (u.Name == "limit_req") != (z.Name == "limit_req_zone") {
		im.note(u.Place, "%s: the zone %s is not defined here; want the output of nginx -T", u.Directive, u.zone)
		return nil
	}
	if u.Name == "limit_req" && z.rate == "" || u.Name == "limit_conn" && (u.number < 1 || u.number > 65535) {
		im.note(u.Place, "%s: not a number that NGINX takes", u.Directive)
		return nil
	}
	key, why := im.keyOf(z.Arg(0), z.Directive)
	if why != "" {
		im.note(z.Place, "limit %s counts by %s: %s", u.zone, z.Arg(0), why)
		return nil
	}
	name := u.zone
	if several {
		name += "_" + p.name
		im.note(u.Place, "zone %s is used with different numbers: NGINX has one counter for all of them, the policy one for each (%s)", u.zone, ident(name))
	}
	l := &limit{name: im.limitName(name), key: key, rate: z.rate, burst: u.burst, delay: u.delay, shadow: u.shadow, from: []nginxconf.Place{z.Place}}
	if u.Name == "limit_conn" {
		l.rate, l.burst, l.delay, l.connections = "", 0, "", u.number
	}
	if key.many() {
		l.expect = z.expect
	}
	if u.status != "429" {
		l.remark = "answered " + u.status + " before, 429 now"
	}
	im.draft.limits = append(im.draft.limits, l)
	return l
}

// limitName is a name for a limit: limits and routes have names of their own.
func (im *importer) limitName(text string) string {
	base := ident(text)
	name := base
	for i := 2; slices.ContainsFunc(im.draft.limits, func(l *limit) bool { return l.name == name }); i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	return name
}

// mixed leaves out limits that were only tried out where others are enforced:
// NGINX tries out all limits of a location or none.
func (im *importer) mixed() {
	im.draft.limits = slices.DeleteFunc(im.draft.limits, func(l *limit) bool {
		if !l.shadow {
			return false
		}
		for _, o := range im.draft.limits {
			if o.shadow || !slices.ContainsFunc(o.routes, func(p *place) bool { return slices.Contains(l.routes, p) }) {
				continue
			}
			im.note(l.from[len(l.from)-1], "%s was only tried out (dry_run) beside %s, which is enforced; a policy does the one or the other in a route, so it is left out", l.name, o.name)
			return true
		}
		return false
	})
}
