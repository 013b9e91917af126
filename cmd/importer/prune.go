package importer

import (
	"slices"
	"strings"
)

// signature is the same for places that are treated alike.
func (im *importer) signature(p *place) string {
	var b strings.Builder
	for _, u := range im.usesOf(p) {
		b.WriteString(u.key() + "\n")
	}
	for _, d := range im.listOf(p) {
		b.WriteString(d.String() + "\n")
	}
	for _, d := range conditions(p.Directive) {
		b.WriteString(d.Place.String() + "\n")
	}
	if p.Directive != p.server {
		for _, d := range conditions(p.server) {
			b.WriteString(d.Place.String() + "\n")
		}
	}
	b.WriteString(p.auth)
	return b.String()
}

// prune leaves out the places that make no difference: what the policy says
// without them is the same.
func (im *importer) prune() {
	signatures := map[*place]string{}
	all := map[string]bool{}
	for _, p := range im.places {
		signatures[p] = im.signature(p)
		all[signatures[p]] = true
	}
	if len(all) <= 1 {
		im.merged = true
		im.places = im.places[:min(len(im.places), 1)]
		return
	}
	same := func(p, o *place) bool { return signatures[p] == signatures[o] }
	rivals := func(p *place) []*place {
		return slices.DeleteFunc(slices.Clone(im.places), func(o *place) bool { return o.server != p.server })
	}
	// Expressions first: whether a prefix matters depends on those that stay.
	for i := len(im.places) - 1; i >= 0; i-- {
		if p := im.places[i]; p.kind == "regex" && !slices.ContainsFunc(rivals(p), func(o *place) bool {
			return o.kind != "exact" && !o.first && !same(p, o)
		}) {
			im.places = slices.Delete(im.places, i, i+1)
		}
	}
	for i := len(im.places) - 1; i >= 0; i-- {
		p := im.places[i]
		if p.kind == "regex" || p.kind == "prefix" && p.match == "/" {
			continue
		}
		around := rivals(p)
		expressions := slices.ContainsFunc(around, func(o *place) bool { return o.kind == "regex" })
		if outer := enclosing(around, p); outer != nil && same(p, outer) && (!expressions || p.kind == "prefix" && !p.first) {
			im.places = slices.Delete(im.places, i, i+1)
		}
	}
	im.eager()
}

// enclosing is the longest prefix around a place, itself not counted.
func enclosing(places []*place, p *place) *place {
	var best *place
	for _, o := range places {
		inside := o.match == "/" || p.match == o.match && p.kind == "exact" || strings.HasPrefix(p.match, o.match+"/")
		if o != p && o.kind == "prefix" && inside && (best == nil || len(o.match) > len(best.match)) {
			best = o
		}
	}
	return best
}

// eager notes the prefixes that kept expressions away.
func (im *importer) eager() {
	for _, p := range im.places {
		if !p.first {
			continue
		}
		for _, o := range im.places {
			if o.kind == "regex" && o.server == p.server && !strings.HasPrefix(o.match, "^/") && im.signature(o) != im.signature(p) {
				im.note(p.Place, "^~ keeps expressions away from %s; a policy asks them first, so what fits %s here is route %s", p.match, o.match, o.name)
			}
		}
	}
}

// order is NGINX's own: exact paths, expressions as they stand, prefixes from
// the longest. Routes without hosts come last, for they take all.
func (im *importer) order() []*place {
	rank := map[string]int{"exact": 0, "regex": 1, "prefix": 2}
	out := slices.Clone(im.places)
	slices.SortStableFunc(out, func(a, b *place) int {
		if (len(a.hosts) == 0) != (len(b.hosts) == 0) {
			return len(b.hosts)*1000 - len(a.hosts)*1000
		}
		if rank[a.kind] != rank[b.kind] {
			return rank[a.kind] - rank[b.kind]
		}
		if a.kind == "prefix" {
			return len(b.match) - len(a.match)
		}
		return 0
	})
	return out
}
