package policies

import (
	"slices"
	"strings"
)

func checkPlans(p *Policy, f *findings) {
	for _, name := range sortedKeys(p.Plans) {
		path := field(field("plans", string(name)), "extends")
		base := p.Plans[name].Extends
		if base == "" || !f.wantPlan(path, base) {
			continue
		}
		line := lineage(p, name)
		last := line[len(line)-1]
		// Only who is in the circle is told, not those who come to it from outside.
		if p.Plans[last].Extends == name {
			f.errorf(path, ruleCycle, "the plans extend each other in a circle: %s; want one that extends none",
				strings.Join(append(text(line), string(name)), ", "))
		}
	}
}

// checkPlanLimits checks the limits of plans with all that they inherit, each
// where its plan says something about it.
func checkPlanLimits(p *Policy, f *findings) {
	for _, name := range sortedKeys(p.Plans) {
		plan := p.Plans[name]
		if len(plan.Limits) == 0 || slices.Contains(lineage(p, plan.Extends), name) {
			continue // in a circle nothing is inherited for certain
		}
		inherited := planLimits(p, plan.Extends)
		for _, limit := range sortedKeys(plan.Limits) {
			own := plan.Limits[limit]
			f.planLimit(field(field(field("plans", string(name)), "limits"), string(limit)), inherited[limit], own)
		}
	}
}

func (f *findings) planLimit(path string, base, own LimitSpec) {
	if was, is := base.Kind(), own.Kind(); was != "" && is != "" && was != is {
		f.errorf(field(path, string(is)), ruleKindChanged, "the plan that this one extends has a limit of %s by this name, which cannot turn into one of %s; want another name", was, is)
		return
	}
	all := overlay(base, own)
	for i, d := range own.Per {
		if d.Kind == DimGlobal {
			at := field(path, "per")
			if len(own.Per) > 1 {
				at = elem(at, i)
			}
			f.errorf(at, rulePerGlobal, "a plan's counters belong to each tenant, so none is global; want per: tenant, or the limit in limits at the top level")
		}
	}
	f.limit(path, &all, &own)
}
