package policies

import (
	"slices"
	"strings"
)

// planChange is what happened to one limit of a plan.
type planChange struct {
	fields diffFields
	perKey bool // it counts by something within a tenant, so a key's own plan has it
	change *Change
}

// plans compares plans with all that they inherit.
func (d *differ) plans() {
	d.plan = map[string]map[string]planChange{}
	was := map[string]*Plan{}
	for i := range d.from.Plans {
		was[d.from.Plans[i].Name] = &d.from.Plans[i]
	}
	anonymous := d.anonymous()
	for i := range d.to.Plans {
		n := &d.to.Plans[i]
		o, path := was[n.Name], field("plans", n.Name)
		delete(was, n.Name)
		if o == nil {
			d.note(ScopePlan, n.Name, "", path, diffFields{{Name: "limits", New: strings.Join(namesOf(n.Limits), ", ")}}, EffectAdded)
			continue
		}
		d.plan[n.Name] = map[string]planChange{}
		limitChanges(o.Limits, n.Limits, func(limit string, f diffFields, effects ...Effect) {
			c := d.note(ScopePlan, n.Name, limit, field(field(path, "limits"), limit), f, effects...)
			c.Anonymous = c.Anonymous || anonymous[n.Name]
			d.plan[n.Name][limit] = planChange{f, perKey(o.Limits, limit) || perKey(n.Limits, limit), c}
		})
		var f diffFields
		f.word("priority", string(o.Priority), string(n.Priority), EffectLoosened, string(PriorityLow), string(PriorityNormal), string(PriorityHigh))
		if len(f) > 0 {
			c := d.note(ScopePlan, n.Name, "", path, f)
			c.Anonymous = c.Anonymous || anonymous[n.Name]
			d.plan[n.Name][""] = planChange{f, true, c}
		}
	}
	for _, o := range d.from.Plans {
		if was[o.Name] != nil {
			d.note(ScopePlan, o.Name, "", field("plans", o.Name), diffFields{{Name: "limits", Old: strings.Join(namesOf(o.Limits), ", ")}}, EffectRemoved)
		}
	}
}

func namesOf(limits []Limit) []string {
	var names []string
	for i := range limits {
		names = append(names, limits[i].Name)
	}
	return names
}

// perKey tells whether a limit of a list belongs to keys with a plan of their own.
func perKey(limits []Limit, name string) bool {
	i := slices.IndexFunc(limits, func(l Limit) bool { return l.Name == name })
	return i >= 0 && limits[i].perKey()
}

// anonymous are the plans of those who show no good credential.
func (d *differ) anonymous() map[string]bool {
	out := map[string]bool{}
	if id := d.to.Identity; id != nil {
		for _, o := range []Outcome{id.Missing, id.Invalid, id.Unlisted} {
			if o.Plan >= 0 {
				out[d.to.Plans[o.Plan].Name] = true
			}
		}
	}
	return out
}

// moving is what changes for those who move from a plan to another: the numbers
// of each limit. The limits of most tenants are their plan's, so it is kept.
func (d *differ) moving(from, to int) diffFields {
	f, known := d.moves[[2]int{from, to}]
	if !known {
		if d.moves == nil {
			d.moves = map[[2]int]diffFields{}
		}
		f = allLimits(d.from.Plans[from].Limits, d.to.Plans[to].Limits)
		f.word("priority", string(d.from.Plans[from].Priority), string(d.to.Plans[to].Priority), EffectLoosened, string(PriorityLow), string(PriorityNormal), string(PriorityHigh))
		d.moves[[2]int{from, to}] = f
	}
	return f
}

// allLimits are the fields of all limits that changed, each under its limit's name.
func allLimits(old, new []Limit) diffFields {
	var out diffFields
	limitChanges(old, new, func(limit string, f diffFields, effects ...Effect) {
		f = f.within(limit)
		for i := range f {
			if len(effects) > 0 {
				f[i].Name = limit
				f[i].Effects = append(slices.Clone(effects), f[i].Effects...)
			}
		}
		out = append(out, f...)
	})
	return out
}
