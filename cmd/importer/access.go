package importer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// listOf is the allow and deny list that holds in a place. With satisfy any it
// is one of two ways in, which a policy cannot say.
func (im *importer) listOf(p *place) []*nginxconf.Directive {
	list := inherited(p.Directive, "allow", "deny")
	if len(list) > 0 && setting(p.Directive, "satisfy", "all") == "any" {
		im.note(list[0].Place, "satisfy any makes this list one of two ways in, beside a password or another authenticator; a policy's rules all count, so the list is left out")
		return nil
	}
	return list
}

// conditions are the ifs of a block that refuse requests.
func conditions(block *nginxconf.Directive) []*nginxconf.Directive {
	var out []*nginxconf.Directive
	for _, d := range block.All("if") {
		if refusal(d) != 0 {
			out = append(out, d)
		}
	}
	return out
}

// refusal is the 4xx that an if returns, 0 for another one.
func refusal(d *nginxconf.Directive) int {
	for _, r := range d.All("return") {
		if n, err := strconv.Atoi(r.Arg(0)); err == nil && n >= 400 && n <= 499 && n != 404 && n != 499 {
			return n
		}
	}
	return 0
}

// accessRules makes rules: what ifs refuse first, for NGINX rewrites before it
// looks at allow and deny.
func (im *importer) accessRules() {
	ifs, lists := map[*nginxconf.Directive][]*place{}, map[string][]*place{}
	var order []*nginxconf.Directive
	var keys []string
	for _, p := range im.order() {
		blocks := []*nginxconf.Directive{p.server}
		if p.Directive != p.server {
			blocks = append(blocks, p.Directive)
		}
		for _, b := range blocks {
			for _, d := range conditions(b) {
				if ifs[d] == nil {
					order = append(order, d)
				}
				ifs[d] = append(ifs[d], p)
			}
		}
		if len(p.list) > 0 {
			key := fmt.Sprint(p.list[0].Place)
			if lists[key] == nil {
				keys = append(keys, key)
			}
			lists[key] = append(lists[key], p)
		}
	}
	for _, d := range order {
		im.refuse(d, im.only(ifs[d]))
	}
	for _, key := range keys {
		im.list(lists[key][0].list, im.only(lists[key]))
	}
}

// only is a list of routes as a rule has it: nil where all are meant.
func (im *importer) only(places []*place) []*place {
	if len(places) == len(im.places) {
		return nil
	}
	return places
}

// list makes rules of allow and deny lines: neighbours of one kind are one rule.
func (im *importer) list(list []*nginxconf.Directive, routes []*place) {
	last := -1
	for i, d := range list {
		if d.Name == "deny" {
			last = i
		}
	}
	// An allow after the last deny allows who is allowed anyway.
	var rules []*rule
	for _, d := range list[:last+1] {
		var r *rule
		if n := len(rules); n > 0 && rules[n-1].verdict == d.Name && !rules[n-1].who.all && d.Arg(0) != "all" {
			r = rules[n-1]
		} else {
			r = &rule{verdict: d.Name, routes: routes}
			rules = append(rules, r)
		}
		if d.Arg(0) == "all" {
			r.who.all = true
		} else if n, why := network(d.Arg(0)); why != "" {
			im.note(d.Place, "%s: %s", d, why)
		} else if !slices.Contains(r.who.cidrs, n) {
			r.who.cidrs = append(r.who.cidrs, n)
		}
		r.from = append(r.from, d.Place)
	}
	for _, r := range rules {
		if r.who.empty() {
			continue
		}
		base := "site"
		if len(routes) > 0 {
			base = routes[0].name
		}
		word := map[bool]string{true: "others", false: map[string]string{"allow": "allowed", "deny": "denied"}[r.verdict]}[r.who.all]
		r.name = im.name(base + "_" + word)
		im.draft.access = append(im.draft.access, r)
		if r.who.all {
			return // nobody gets further
		}
	}
}

// refuse makes a rule of an if that returns 4xx.
func (im *importer) refuse(d *nginxconf.Directive, routes []*place) {
	r := &rule{verdict: "deny", status: refusal(d), routes: routes, from: []nginxconf.Place{d.Place}}
	words := d.Condition()
	if len(words) != 1 && len(words) != 3 || nginxconf.Lone(words[0]) == "" {
		im.note(d.Place, "if %s: no condition of the language", strings.Join(d.Texts(), " "))
		return
	}
	name := nginxconf.Lone(words[0])
	var out counted
	why := ""
	if _, isTable := im.tables[name]; isTable {
		why = im.tableCondition(&out, name, words)
	} else {
		why = im.plainCondition(&out, name, words)
	}
	if why != "" {
		im.note(d.Place, "if %s: %s", strings.Join(d.Texts(), " "), why)
		return
	}
	im.refusing(r, out, name)
}

// refusing adds the rules for a condition. Who is excepted is let past the
// rule that refuses all others.
func (im *importer) refusing(r *rule, out counted, name string) {
	r.when = out.when
	switch {
	case !out.except.empty():
		pass := &rule{name: im.name(name + "_passes"), verdict: "allow", who: out.except, when: out.when, routes: r.routes, from: r.from}
		im.draft.access = append(im.draft.access, pass)
		r.who.all = true
	case !out.only.empty():
		r.who = out.only
	default:
		r.who.all = true
	}
	r.name = im.name(name)
	if r.status == 403 {
		r.status = 0
	}
	im.draft.access = append(im.draft.access, r)
}

// tableCondition is about a variable that maps make.
func (im *importer) tableCondition(out *counted, name string, words []string) string {
	c, why := im.cases(name, 0)
	if why != "" {
		return why
	}
	fits := func(v string) bool { return v != "" && v != "0" }
	if len(words) == 3 {
		operand := words[2]
		switch words[1] {
		case "=":
			fits = func(v string) bool { return v == operand }
		case "!=":
			fits = func(v string) bool { return v != operand }
		default:
			return "an expression on a map"
		}
	}
	return im.condition(out, c, fits)
}

// plainCondition is about a variable of the request.
func (im *importer) plainCondition(out *counted, name string, words []string) string {
	if len(words) == 1 {
		if !strings.HasPrefix(name, "http_") && !strings.HasPrefix(name, "cookie_") && !strings.HasPrefix(name, "arg_") {
			return "$" + name + " is nothing that a condition can be about"
		}
		return values(out, name, []string{""}, true)
	}
	operand, key := words[2], ""
	usual := strings.HasPrefix(words[1], "!")
	switch strings.TrimPrefix(words[1], "!") {
	case "=":
		key = operand
		if strings.HasPrefix(key, "~") {
			return "a value that begins with ~"
		}
	case "~":
		key = "~" + operand
	case "~*":
		key = "~*" + operand
	default:
		return "no comparison that we know"
	}
	c := cases{base: name, list: []oneCase{{key, "1"}}}
	return im.condition(out, c, func(v string) bool { return (v == "1") != usual })
}

// unsaid notes what else limits or lets in, and is not imported.
func (im *importer) unsaid() {
	im.site.Root.Walk(func(d *nginxconf.Directive) {
		switch {
		case d.Name == "limit_except":
			im.note(d.Place, "limit_except %s stays with NGINX; in a policy it is a rule with deny: all and when: {methods: [...]}", strings.Join(d.Texts(), " "))
		case d.Name == "valid_referers":
			im.note(d.Place, "valid_referers stays with NGINX; in a policy it is a rule with when: {headers: {Referer: [...]}}")
		case d.Name == "auth_jwt":
			im.note(d.Place, "auth_jwt stays with NGINX; in a policy it is identity.sources: jwt, which needs jwks_file and issuer")
		case strings.HasPrefix(d.Name, "access_by_lua"), strings.HasPrefix(d.Name, "js_access"):
			im.note(d.Place, "%s is a program, which is not read; it stays with NGINX", d.Name)
		}
	})
	for _, d := range im.site.Missing {
		if name := d.Arg(0); !strings.HasSuffix(name, "mime.types") && !strings.HasSuffix(name, "_params") && !strings.HasSuffix(name, "fastcgi.conf") {
			im.note(d.Place, "%s is not here, so nothing of it is imported; want the output of nginx -T", name)
		}
	}
}

// statusOf is a status that the language takes for a denial.
func statusOf(n int) (string, bool) {
	var s policies.Status
	text := strconv.Itoa(n)
	return text, s.UnmarshalText([]byte(text)) == nil
}
