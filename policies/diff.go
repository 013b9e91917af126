package policies

import (
	"cmp"
	"slices"
	"strings"
)

// Effect is what a change means for those whom it concerns.
type Effect string

// The effects, in the order of how much they matter. A change may have several.
const (
	EffectTightened Effect = "tightened" // somebody may be denied who was not
	EffectRestarts  Effect = "restarts"  // counters start anew
	EffectLoosened  Effect = "loosened"  // somebody may pass who did not
	EffectMoved     Effect = "moved"     // to another plan, or to another place where order decides
	EffectAdded     Effect = "added"
	EffectRemoved   Effect = "removed"
	EffectChanged   Effect = "changed" // neither tighter nor looser, or not to be said
)

// Effects are all effects in the order of how much they matter.
func Effects() []Effect {
	return []Effect{EffectTightened, EffectRestarts, EffectLoosened, EffectMoved, EffectAdded, EffectRemoved, EffectChanged}
}

// rank is the place of an effect in Effects.
func (e Effect) rank() int { return slices.Index(Effects(), e) }

// opposite is what the change in the other direction has.
func (e Effect) opposite() Effect {
	switch e {
	case EffectTightened:
		return EffectLoosened
	case EffectLoosened:
		return EffectTightened
	}
	return e
}

// Scope is the part of a policy that a change is in.
type Scope string

// The scopes, from what concerns everybody to what concerns few.
const (
	ScopePolicy        Scope = "policy"
	ScopeClient        Scope = "client_ip"
	ScopeIdentity      Scope = "identity"
	ScopeAccess        Scope = "access rule"
	ScopeEdge          Scope = "edge"
	ScopeEdgeLimit     Scope = "edge limit"
	ScopeLimit         Scope = "limit"
	ScopePlan          Scope = "plan"
	ScopeRoute         Scope = "route"
	ScopeTenant        Scope = "tenant"
	ScopeKey           Scope = "key"
	ScopeResponses     Scope = "responses"
	ScopeNotifications Scope = "notifications"
)

func scopes() []Scope {
	return []Scope{ScopePolicy, ScopeClient, ScopeIdentity, ScopeAccess, ScopeEdge, ScopeEdgeLimit, ScopeLimit, ScopePlan, ScopeRoute,
		ScopeTenant, ScopeKey, ScopeResponses, ScopeNotifications}
}

// Change is one thing that means something else in the new policy, for one
// subject or for many that change alike.
type Change struct {
	Scope Scope
	// Names are the subjects: plans, routes, rules, tenants, keys as TENANT/KEY.
	// Empty where the scope says all.
	Names []string
	// Limit is the limit of the plan or route that it is about; empty: none.
	Limit   string
	Effects []Effect // sorted, each once
	Fields  []FieldChange
	// Path is the place of the first subject in the new policy, or in the old one
	// when it is gone; Pos is where that is.
	Path string
	Pos  Pos

	Everybody bool // it is for every request, whoever sends it
	Anonymous bool // it is also for those who show no good credential
	Tenants   int  // tenants whom it concerns; of a route for some plans, those who may use it
	Keys      int  // and keys
}

// FieldChange is one value that is another one now: as the policy would write it,
// after extends, overrides and grants. An empty Old or New is absent.
type FieldChange struct {
	Name     string
	Old, New string
	// Gone and Come are the entries of a list that only the old or the new one has,
	// all of them, where Old and New may show the first few.
	Gone, Come []string
	Effects    []Effect
}

// Has tells whether a change has an effect.
func (c *Change) Has(e Effect) bool { return slices.Contains(c.Effects, e) }

// Difference is what changes in meaning between two policies. What only looks
// different (comments, order of keys, spelling, names of list files) is not in it.
type Difference struct {
	Changes   []Change // what matters most comes first
	Everybody bool     // some change is for every request
	Tenants   int      // tenants whom some change of plans, tenants or keys concerns
	Keys      int      // and keys
}

// Diff compares two policies that Validate found without errors.
func Diff(old, new *Policy) Difference {
	d := differ{old: old, new: new, from: Compile(old), to: Compile(new), index: map[string]*Change{}, last: map[*Change]int{}, some: map[*Change][]bool{}}
	d.site()
	d.client()
	d.identity()
	d.edge()
	d.limits(ScopeLimit, "", "limits", d.from.Limits, d.to.Limits, func(c *Change) { c.Everybody = true })
	d.plans()
	d.routes()
	d.tenants()
	return d.difference()
}

// differ collects changes.
type differ struct {
	old, new *Policy
	from, to *Compiled // of old and new
	changes  []*Change
	index    map[string]*Change // by all but their subjects
	last     map[*Change]int    // the tenant that was counted last, plus 1

	plan    map[string]map[string]planChange // by plan and limit
	moves   map[[2]int]diffFields            // what moving from plan to plan changes
	touched []bool                           // tenants of the new policy
	some    map[*Change][]bool               // changes that are for some plans: those of the new policy
	keys    int
}

// note adds a change of a subject; a subject that changes alike joins the others.
func (d *differ) note(scope Scope, name, limit, path string, f diffFields, effects ...Effect) *Change {
	all := slices.Clone(effects)
	var sign strings.Builder
	sign.WriteString(string(scope) + "\x00" + limit)
	for _, e := range effects {
		sign.WriteString("\x00" + string(e))
	}
	for _, field := range f {
		all = append(all, field.Effects...)
		sign.WriteString("\x01" + field.Name + "\x00" + field.Old + "\x00" + field.New)
		for _, e := range field.Effects {
			sign.WriteString("\x00" + string(e))
		}
		for _, list := range [][]string{field.Gone, field.Come} {
			sign.WriteString("\x02" + strings.Join(list, "\x00"))
		}
	}
	c := d.index[sign.String()]
	if c == nil {
		slices.SortFunc(all, func(a, b Effect) int { return cmp.Compare(a.rank(), b.rank()) })
		c = &Change{Scope: scope, Limit: limit, Effects: slices.Compact(all), Fields: f, Path: path}
		d.index[sign.String()] = c
		d.changes = append(d.changes, c)
	}
	if name != "" {
		c.Names = append(c.Names, name)
	}
	return c
}

// difference sorts what was found.
func (d *differ) difference() Difference {
	out := Difference{Keys: d.keys}
	for _, t := range d.touched {
		if t {
			out.Tenants++
		}
	}
	d.onPlans()
	for _, c := range d.changes {
		slices.SortFunc(c.Names, CompareNatural)
		from := d.new
		if c.Has(EffectRemoved) {
			from = d.old
		}
		c.Pos = from.pos(c.Path)
		out.Everybody = out.Everybody || c.Everybody
		out.Changes = append(out.Changes, *c)
	}
	slices.SortStableFunc(out.Changes, compareChanges)
	return out
}

// compareChanges puts what matters most first: the worst effect, then what
// concerns everybody, then what concerns most.
func compareChanges(a, b Change) int {
	everybody := func(c Change) int {
		if c.Everybody {
			return 0
		}
		return 1
	}
	scope := func(c Change) int { return slices.Index(scopes(), c.Scope) }
	if c := cmp.Or(
		cmp.Compare(a.Effects[0].rank(), b.Effects[0].rank()),
		cmp.Compare(everybody(a), everybody(b)),
		cmp.Compare(b.Tenants, a.Tenants),
		cmp.Compare(b.Keys, a.Keys),
		cmp.Compare(scope(a), scope(b)),
	); c != 0 {
		return c
	}
	return cmp.Or(slices.CompareFunc(a.Names, b.Names, CompareNatural), CompareNatural(a.Limit, b.Limit))
}
