package gen

import (
	"fmt"
	"strconv"
	"strings"

	"sluice/policies"
	"sluice/policies/edge"
)

// chain is what the access rules of a route say, first match first. Routes
// with the same rules share one. Empty names: no rule says such a thing.
type chain struct {
	refuse string // the status of a denial, else empty
	exempt string // 1 when the client is exempt
	would  string // the rule in shadow that would have denied
	rule   string // the rule that decides
	close  bool   // some denial closes the connection
}

// link is one rule of a chain.
type link struct {
	name    string
	flag    condition
	verdict policies.AccessVerdict
	status  int
	shadow  bool // told, never done
}

// accessRules defines the flag of each access rule that some route has, and
// returns them by index.
func (b *builder) accessRules() []link {
	used := make([]bool, len(b.c.Access))
	for i := range b.c.Routes {
		for _, a := range b.c.Routes[i].Access {
			used[a] = true
		}
	}
	links := make([]link, len(b.c.Access))
	for i := range b.c.Access {
		if used[i] {
			links[i] = b.accessRule(&b.c.Access[i])
		}
	}
	return links
}

func (b *builder) accessRule(r *policies.AccessRule) link {
	title := edge.RuleName(r)
	id := ident(r.Name)
	if r.Name == "" {
		id = "__i" + strconv.Itoa(r.Index+1)
	}
	name := "sluice_access_" + id
	at, values := len(b.access), len(b.values)
	flags := append([]condition{b.clients(&b.access, name, &r.Clients)}, b.when(&b.access, name, r.When)...)
	l := link{name: title, flag: b.both(&b.access, name, flags...), verdict: r.Verdict, status: r.Status}
	l.shadow = r.Shadow
	if at < len(b.access) {
		b.access[at].Comments = commentLines([]string{ruleTitle(r, title)})
	}
	from(accessPath(r), b.access[at:])
	from(accessPath(r), b.values[values:])
	return l
}

// ruleTitle says what a rule does.
func ruleTitle(r *policies.AccessRule, title string) string {
	what := "allow"
	switch r.Verdict {
	case policies.AccessExempt:
		what = "exempt"
	case policies.AccessDeny:
		what = "deny with " + strconv.Itoa(r.Status)
	}
	if r.Shadow {
		what += ", in shadow"
	}
	return title + ": " + what
}

// direct is the rule in front of all others when only trusted proxies may
// connect: it looks at the peer, not at the client whom the peer names.
func (b *builder) direct() link {
	const name = "sluice_direct"
	if !b.named[name] {
		b.named[name] = true
		m := block{From: mark("client_ip"), Kind: word("geo"), Source: word("$realip_remote_addr"), Variable: word("$" + name)}
		m.Comments = commentLines([]string{"A peer that is no trusted proxy: denied with 403."})
		m.otherwise(word("1"))
		for _, p := range b.c.Client.Trusted {
			m.line(cidr(p), word("0"))
		}
		b.access = append(b.access, m)
	}
	return link{name: edge.Direct, flag: isSet(name), verdict: policies.AccessDeny, status: 403}
}

// chainOf is the chain of a route, defined once for all routes with the same rules.
func (b *builder) chainOf(r *policies.Route, rules []link) chain {
	if r.Exempt || b.c.Mode == policies.ModeDisabled {
		return chain{}
	}
	var links []link
	if b.c.Client.DenyDirect {
		links = append(links, b.direct())
	}
	for _, i := range r.Access {
		links = append(links, rules[i])
	}
	id := fmt.Sprint(b.c.Client.DenyDirect, r.Access)
	c, ok := b.chains[id]
	if !ok && len(links) > 0 {
		c = b.newChain(ident(r.Name), links)
		b.chains[id] = c
	}
	return c
}

// newChain defines the maps over the flags of all rules of a route.
func (b *builder) newChain(id string, links []link) chain {
	source := make([]part, len(links))
	for i, l := range links {
		source[i] = l.flag
	}
	var c chain
	at := len(b.access)
	flags := b.concatenated(&b.access, "sluice_flags_"+id+"_", source)
	from("edge.access", b.access[at:])
	refuse := newMap(flags, "sluice_refuse_"+id, chainTitle(links))
	exempt := newMap(flags, "sluice_exempt_"+id)
	would := newMap(flags, "sluice_would_"+id)
	rule := newMap(flags, "sluice_rule_"+id)
	for _, m := range []*block{&refuse, &exempt, &would, &rule} {
		m.otherwise(none())
	}
	for i, l := range links {
		key := ownRegex(reached(links, i))
		shadow := l.shadow || b.c.Mode == policies.ModeShadow
		if !l.shadow && (!shadow || l.verdict != policies.AccessDeny) {
			rule.line(key, b.take(Quote(l.name)))
			c.rule = rule.Variable.text[1:]
		}
		switch {
		case shadow && l.verdict == policies.AccessDeny:
			would.line(key, b.take(Quote(l.name)))
			c.would = would.Variable.text[1:]
		case l.shadow:
		case l.verdict == policies.AccessDeny:
			refuse.line(key, number(int64(l.status)))
			c.refuse = refuse.Variable.text[1:]
			c.close = c.close || l.status == 444
		case l.verdict == policies.AccessExempt:
			exempt.line(key, word("1"))
			c.exempt = exempt.Variable.text[1:]
		}
	}
	for _, m := range []struct {
		name  string
		block block
	}{{c.refuse, refuse}, {c.exempt, exempt}, {c.would, would}, {c.rule, rule}} {
		if m.name != "" {
			m.block.From = mark("edge.access")
			b.access = append(b.access, m.block)
		}
	}
	return c
}

// reached matches the flags of a chain when rule i fits and no enforced rule
// before it does. A rule in shadow stands in nobody's way.
func reached(links []link, i int) string {
	var s strings.Builder
	s.WriteString("^")
	flag := func(l link) byte {
		if l.shadow {
			return '.'
		}
		return '0'
	}
	for j := 0; j < i; {
		run := 1
		for j+run < i && flag(links[j+run]) == flag(links[j]) {
			run++
		}
		const few = 16 // so many are easier to read one by one
		if run <= few {
			s.WriteString(strings.Repeat(string(flag(links[j])), run))
		} else {
			fmt.Fprintf(&s, "%c{%d}", flag(links[j]), run)
		}
		j += run
	}
	s.WriteByte('1')
	return s.String()
}

func chainTitle(links []link) string {
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.name
	}
	return "First match of: " + strings.Join(names, ", ")
}
