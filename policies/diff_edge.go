package policies

import (
	"fmt"
	"slices"
	"strings"
)

// edge compares what NGINX decides by itself.
func (d *differ) edge() {
	var f diffFields
	f.number("nodes", int64(d.from.Nodes), int64(d.to.Nodes), EffectTightened, plainNumber)
	d.everybody(ScopeEdge, "edge.nodes", f)
	d.access()
	d.edgeLimits()
}

// edgeLimits compares edge limits by name, with the numbers that the policy says
// for all nodes together.
func (d *differ) edgeLimits() {
	specs := func(p *Policy) map[Name]EdgeLimitSpec {
		if p.Edge == nil {
			return nil
		}
		return p.Edge.Limits
	}
	old, new := specs(d.old), specs(d.new)
	for _, name := range sortedKeys(new) {
		n, path := new[name], field("edge.limits", string(name))
		o, ok := old[name]
		if !ok {
			c := d.note(ScopeEdgeLimit, string(name), "", path, diffFields{{Name: "limit", New: describeEdge(n), Effects: edgePresence(n)}}, EffectAdded)
			c.Everybody = true
			continue
		}
		if f := edgeFields(o, n); len(f) > 0 {
			d.note(ScopeEdgeLimit, string(name), "", path, f).Everybody = true
		}
	}
	for _, name := range sortedKeys(old) {
		if _, stays := new[name]; stays {
			continue
		}
		o := old[name]
		var effects []Effect
		for _, e := range edgePresence(o) {
			effects = append(effects, e.opposite())
		}
		d.note(ScopeEdgeLimit, string(name), "", field("edge.limits", string(name)), diffFields{{Name: "limit", Old: describeEdge(o), Effects: effects}}, EffectRemoved).Everybody = true
	}
}

func edgePresence(l EdgeLimitSpec) []Effect {
	if l.Mode == LimitShadow {
		return nil
	}
	return []Effect{EffectTightened}
}

func describeEdge(l EdgeLimitSpec) string {
	s := fmt.Sprintf("%d connections", zero(l.Connections))
	if l.Rate != nil {
		s = fmt.Sprintf("%s, burst %d", *l.Rate, zero(l.Burst))
	}
	return s + ", per " + strings.Join(perWords(l.Per), " and ")
}

// zero is a count, 0 for none.
func zero(c *Count) int64 {
	if c == nil {
		return 0
	}
	return int64(*c)
}

// edgeFields are the values of an edge limit that changed. NGINX starts counting
// anew when the key of a zone, or its size, is another one.
func edgeFields(o, n EdgeLimitSpec) diffFields {
	var f diffFields
	anew := []Effect{EffectRestarts}
	if (o.Rate == nil) != (n.Rate == nil) {
		f.add("kind", describeEdge(o), describeEdge(n), EffectChanged, EffectRestarts)
	} else {
		if o.Rate != nil {
			f.rate("rate", *o.Rate, *n.Rate, EffectLoosened)
		}
		f.number("burst", zero(o.Burst), zero(n.Burst), EffectLoosened, plainNumber)
		f.number("connections", zero(o.Connections), zero(n.Connections), EffectLoosened, plainNumber)
		f.delay(o.Delay, n.Delay)
	}
	f.value("expect", orWord(o.Expect), orWord(n.Expect), anew...)
	f.per(perWords(o.Per), perWords(n.Per), alsoIf(anew, !sameSet(perWords(o.Per), perWords(n.Per))))
	f.entries("routes", text(o.Routes), text(n.Routes), "every route", EffectTightened)
	f.entries("only", compileClients(o.Only).words(), compileClients(n.Only).words(), "everybody", EffectTightened)
	f.entries("except", exceptWords(o.Except), exceptWords(n.Except), "", EffectLoosened)
	f.condition(compileWhen(o.When), compileWhen(n.When), EffectTightened)
	if conditional := func(l EdgeLimitSpec) bool { return l.Only != nil || l.Except != nil || l.When != nil }; conditional(o) != conditional(n) {
		for i := range f {
			if slices.Contains([]string{"only", "except", "when"}, f[i].Name) {
				f[i].Effects = append(f[i].Effects, anew...)
			}
		}
	}
	f.word("mode", modeWord(o.Mode == LimitShadow), modeWord(n.Mode == LimitShadow), EffectTightened, string(LimitShadow), string(LimitEnforce))
	return f
}

// exceptWords are who is not counted; nobody is an empty list.
func exceptWords(c *Clients) []string {
	if c != nil && c.All {
		return []string{"all"}
	}
	return orNone(compileClients(c).words())
}

// sameSet tells whether two lists hold the same, in whatever order.
func sameSet(a, b []string) bool { return len(missingFrom(a, b)) == 0 && len(missingFrom(b, a)) == 0 }

func orWord(c *Count) string {
	if c == nil {
		return ""
	}
	return c.String()
}

// delay compares how many requests of the excess pass at once: all but few is
// looser than none.
func (f *diffFields) delay(o, n *Delay) {
	passing := func(y *Delay) (int64, string) {
		switch {
		case y == nil || !y.All && y.N == 0:
			return 1 << 60, "none"
		case y.All:
			return 0, "all"
		}
		return y.N, plainNumber(y.N)
	}
	old, oldWord := passing(o)
	new, newWord := passing(n)
	switch {
	case old < new:
		f.add("delay", oldWord, newWord, EffectLoosened)
	case old > new:
		f.add("delay", oldWord, newWord, EffectTightened)
	}
}
