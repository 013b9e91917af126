package importer

import (
	"fmt"
	"slices"

	"sluice/cmd/nginxconf"
	"sluice/policies"
)

// Result is what an import found.
type Result struct {
	Policy []byte
	Notes  policies.Diagnostics // what the policy does not say as the site did
}

// Import reads the limits of a site.
func Import(site *nginxconf.Site) Result {
	im := &importer{site: site, tables: site.Tables(), zones: map[string]*zone{}, names: map[string]bool{}}
	im.findLocated()
	im.findZones()
	im.findPlaces()
	im.clientAddress()
	im.authenticator()
	im.prune()
	im.limits()
	im.accessRules()
	im.unsaid()
	im.notes.Sort()
	im.notes = slices.Compact(im.notes)
	return Result{im.write(), im.notes}
}

// importer gathers the draft of a policy.
type importer struct {
	site   *nginxconf.Site
	tables map[string]*nginxconf.Table
	notes  policies.Diagnostics
	names  map[string]bool // taken, of whatever kind

	// located are the variables that databases make: country or asn.
	located map[string]string
	zones   map[string]*zone
	places  []*place
	merged  bool // all requests are treated alike: no routes are needed
	draft   draft
}

// draft is the policy to be.
type draft struct {
	trusted     []string
	trustedFrom nginxconf.Place
	header      string
	auth        *auth
	access      []*rule
	limits      []*limit
}

// rule is an access rule.
type rule struct {
	name    string
	verdict string // allow or deny
	who     clients
	status  int
	when    []string // YAML of its lines
	routes  []*place // nil: everywhere
	from    []nginxconf.Place
}

// limit is an edge limit.
type limit struct {
	name        string
	key         counted
	rate        string
	burst       int
	delay       string
	connections int
	expect      int
	shadow      bool
	routes      []*place
	everywhere  bool
	remark      string
	from        []nginxconf.Place
}

// clients are lists that name clients; all is everybody.
type clients struct {
	all                          bool
	cidrs, countries, userAgents []string
}

func (c clients) empty() bool {
	return !c.all && len(c.cidrs)+len(c.countries)+len(c.userAgents) == 0
}

// note says what the policy does not say as the site did.
func (im *importer) note(at nginxconf.Place, format string, args ...any) {
	im.notes = append(im.notes, policies.Diagnostic{
		Pos:     policies.Pos{File: at.File, Line: at.Line, Col: at.Col},
		Message: fmt.Sprintf(format, args...), Rule: "not-imported", Warning: true,
	})
}

// name makes a name of the language out of a text, one that is not taken.
func (im *importer) name(text string) string {
	base := ident(text)
	name := base
	for i := 2; im.names[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	im.names[name] = true
	return name
}

// ident is a text cut down to the letters of names.
func ident(text string) string {
	const most = 48
	var out []byte
	for i := 0; i < len(text) && len(out) < most; i++ {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
		switch {
		case letter && (len(out) > 0 || c != '-'):
			out = append(out, c)
		case !letter && len(out) > 0 && out[len(out)-1] != '_':
			out = append(out, '_')
		}
	}
	for len(out) > 0 && (out[len(out)-1] == '_' || out[len(out)-1] == '-') {
		out = out[:len(out)-1]
	}
	if len(out) == 0 {
		return "all"
	}
	return string(out)
}

// inherited is what the innermost block, from this one outwards, that has one of these
// directives has of them: so NGINX inherits lists.
func inherited(block *nginxconf.Directive, names ...string) []*nginxconf.Directive {
	for b := block; b != nil; b = b.Parent {
		if list := b.All(names...); len(list) > 0 {
			return list
		}
	}
	return nil
}

// setting is the value of a directive that has one, as it is inherited.
func setting(block *nginxconf.Directive, name, otherwise string) string {
	if list := inherited(block, name); len(list) > 0 && len(list[0].Args) > 0 {
		return list[0].Arg(0)
	}
	return otherwise
}
