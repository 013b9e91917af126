package policies

import (
	"fmt"
	"strconv"
	"strings"
)

// access compares access rules by name; one without a name is known by what it says.
func (d *differ) access() {
	was := map[string]*AccessRule{}
	for i := range d.from.Access {
		was[ruleKey(d.from, i)] = &d.from.Access[i]
	}
	order := func(c *Compiled) []string {
		var out []string
		for i := range c.Access {
			out = append(out, ruleKey(c, i))
		}
		return out
	}
	moved := asSet(displaced(order(d.from), order(d.to)))
	for i := range d.to.Access {
		n := &d.to.Access[i]
		key, path := ruleKey(d.to, i), elem("edge.access", i)
		o := was[key]
		delete(was, key)
		if o == nil {
			d.note(ScopeAccess, ruleTitle(n), "", path, diffFields{{Name: "rule", New: d.to.describeRule(n), Effects: rulePresence(n)}}, EffectAdded).Everybody = true
			continue
		}
		f := d.ruleFields(o, n)
		if moved[key] {
			f.add("order", "", "another", EffectMoved)
		}
		if len(f) > 0 {
			d.note(ScopeAccess, ruleTitle(n), "", path, f).Everybody = true
		}
	}
	for i := range d.from.Access {
		o := &d.from.Access[i]
		if was[ruleKey(d.from, i)] == nil {
			continue
		}
		var effects []Effect
		for _, e := range rulePresence(o) {
			effects = append(effects, e.opposite())
		}
		d.note(ScopeAccess, ruleTitle(o), "", elem("edge.access", i), diffFields{{Name: "rule", Old: d.from.describeRule(o), Effects: effects}}, EffectRemoved).Everybody = true
	}
}

func ruleKey(c *Compiled, i int) string {
	r := &c.Access[i]
	if r.Name != "" {
		return r.Name
	}
	return "\x00" + c.describeRule(r)
}

func ruleTitle(r *AccessRule) string {
	if r.Name != "" {
		return r.Name
	}
	return "#" + strconv.Itoa(r.Index+1)
}

// rulePresence is what a rule means by being there.
func rulePresence(r *AccessRule) []Effect {
	switch {
	case r.Shadow:
		return nil
	case r.Verdict == AccessDeny:
		return []Effect{EffectTightened}
	}
	return []Effect{EffectLoosened}
}

func verdictWord(v AccessVerdict) string { return [...]string{"allow", "exempt", "deny"}[v] }

// describeRule is a rule in a few words.
func (c *Compiled) describeRule(r *AccessRule) string {
	s := verdictWord(r.Verdict) + " " + fewOf(r.Clients.words(), "all")
	if r.Verdict == AccessDeny && r.Status != 403 {
		s += " with " + strconv.Itoa(r.Status)
	}
	if w := r.When.words(); w != "" {
		s += ", when " + w
	}
	if r.Routes != nil {
		s += ", on " + strings.Join(c.routeNames(r.Routes), ", ")
	}
	if r.Shadow {
		s += ", in shadow"
	}
	return s
}

// fewOf shows the first of a list; nil is everything.
func fewOf(list []string, all string) string {
	switch {
	case list == nil:
		return all
	case len(list) > fewEntries:
		return fmt.Sprintf("%s and %d more", strings.Join(list[:fewEntries], ", "), len(list)-fewEntries)
	}
	return strings.Join(list, ", ")
}

// routeNames are routes by name; nil stays nil.
func (c *Compiled) routeNames(indexes []int) []string {
	if indexes == nil {
		return nil
	}
	out := make([]string, len(indexes))
	for i, r := range indexes {
		out[i] = c.Routes[r].Name
	}
	return out
}

// ruleFields are the values of a rule that changed. Who is denied more is tighter,
// who is let through more is looser.
func (d *differ) ruleFields(o, n *AccessRule) diffFields {
	var f diffFields
	f.word("verdict", verdictWord(o.Verdict), verdictWord(n.Verdict), EffectTightened, "exempt", "allow", "deny")
	wider := EffectLoosened
	switch {
	case o.Verdict != n.Verdict:
		wider = EffectChanged // whom it means is of another kind now
	case n.Verdict == AccessDeny:
		wider = EffectTightened
	}
	f.entries("clients", o.Clients.words(), n.Clients.words(), "all", wider)
	if o.Verdict == AccessDeny && n.Verdict == AccessDeny {
		f.value("status", strconv.Itoa(o.Status), strconv.Itoa(n.Status), EffectChanged)
	}
	if o.Shadow != n.Shadow {
		f.word("mode", modeWord(o.Shadow), modeWord(n.Shadow), wider, string(LimitShadow), string(LimitEnforce))
	}
	f.entries("routes", d.from.routeNames(o.Routes), d.to.routeNames(n.Routes), "every route", wider)
	f.condition(o.When, n.When, wider)
	return f
}

// condition compares conditions: to have one at all is narrower.
func (f *diffFields) condition(o, n *When, wider Effect) {
	old, new := o.words(), n.words()
	switch {
	case old == new:
	case new == "":
		f.add("when", old, "", wider)
	case old == "":
		f.add("when", "", new, wider.opposite())
	default:
		f.add("when", old, new, EffectChanged)
	}
}

// words is a condition as text, empty for none.
func (w *When) words() string {
	if w == nil {
		return ""
	}
	var out []string
	if len(w.Methods) > 0 {
		out = append(out, "method "+strings.Join(w.Methods, " or "))
	}
	for _, t := range w.Tests {
		s := [...]string{"header ", "query ", "cookie "}[t.Carrier] + t.Name
		switch {
		case t.Present:
			s += " present"
		case t.Absent:
			s += " absent"
		}
		for i, re := range t.Regexes {
			s += [...]string{" like ", " or "}[min(i, 1)] + re.Source
		}
		out = append(out, s)
	}
	return strings.Join(out, " and ")
}

// words are the entries of a set; nil is everybody.
func (s *ClientSet) words() []string {
	if s == nil || s.All {
		return nil
	}
	out := words(s.Networks)
	for _, c := range s.Countries {
		out = append(out, string(c))
	}
	for _, c := range s.Continents {
		out = append(out, "continent "+string(c))
	}
	for _, a := range s.ASNs {
		out = append(out, a.String())
	}
	if s.UnknownCountry {
		out = append(out, "unknown country")
	}
	if s.UnknownASN {
		out = append(out, "unknown network")
	}
	for _, re := range s.UserAgents {
		out = append(out, "agent "+re.Source)
	}
	return orNone(out)
}
