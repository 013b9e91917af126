package replay

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"sluice/cmd/accesslog"
	"sluice/cmd/trial"
)

func (r *runner) report(counts *accesslog.Counts) *Report {
	t := r.tally
	out := &Report{
		Log: LogFacts{Sources: len(r.Sources), Lines: counts.Lines, Repaired: counts.Repaired.Lines, Late: counts.Late, Skipped: r.skipped, Bad: []Bad{}},
		Verdicts: Verdicts{
			Requests: t.requests, Passed: t.passed, Held: t.held, Degraded: t.degraded,
			Edge: t.denied[trial.ByNGINX] + t.denied[trial.ByAccess] + t.denied[trial.ByEdge], Service: t.denied[trial.ByService],
		},
		Denials: t.denials(&t.causes), WouldDeny: t.denials(&t.watched), Offenders: t.offenders(),
		Routes: t.routeUses(), Unrouted: t.paths.list(), Unused: r.unused(), Suggestions: t.suggestions(),
		Timeline: Timeline{Step: t.timeline.step(), Buckets: t.timeline.buckets},
		Heat:     t.heat(), Notes: r.notes(counts),
	}
	if t.requests > 0 {
		out.Log.From, out.Log.To = utc(t.first), utc(t.last)
		out.Timeline.From = utc(t.timeline.first / t.timeline.step() * t.timeline.step() * micros)
	}
	for _, p := range accesslog.Problems() {
		if b := counts.Bad[p]; b.Lines > 0 {
			out.Log.Bad = append(out.Log.Bad, Bad{p.String(), b.Lines, b.Source, b.Line})
		}
	}
	for i := range t.subjects {
		if t.subjects[i].requests > 0 {
			out.Verdicts.Subjects++
		}
		if t.subjects[i].denied > 0 {
			out.Verdicts.Denied++
		}
	}
	if t.changes != nil {
		out.Changes = t.changed()
	}
	return out
}

func utc(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// who is a subject for people.
func (t *tally) who(s int32) string {
	x := &t.subjects[s]
	switch {
	case s == 0:
		return "others"
	case x.tenant != "":
		return x.tenant
	case !x.client.IsValid():
		return "no address"
	case x.client.IsSingleIP():
		return x.client.Addr().String()
	}
	return x.client.String()
}

// denials lists a ledger, the most requests first.
func (t *tally) denials(l *ledger) []Denial {
	out := make([]Denial, 0, len(l.entries))
	for _, x := range l.entries {
		out = append(out, Denial{
			By: x.by.String(), Reason: x.reason, Limit: x.limit, Plan: x.plan, Requests: x.count, Subjects: x.subjects,
			First: utc(x.first), Last: utc(x.last), Source: x.source, Line: x.line, Worst: t.who(x.worst), WorstRequests: x.worstCount,
		})
	}
	slices.SortFunc(out, func(a, b Denial) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Label(), b.Label()))
	})
	return out
}

func (t *tally) offenders() []Offender {
	var worst []int32
	for i := range t.subjects {
		if t.subjects[i].denied > 0 {
			worst = append(worst, int32(i))
		}
	}
	slices.SortFunc(worst, func(a, b int32) int {
		return cmp.Or(cmp.Compare(t.subjects[b].denied, t.subjects[a].denied), cmp.Compare(t.who(a), t.who(b)))
	})
	worst = worst[:min(len(worst), maxListed)]
	by := t.mostBy(worst)
	out := make([]Offender, 0, len(worst))
	for _, s := range worst {
		x := &t.subjects[s]
		o := Offender{Who: t.who(s), Tenant: x.tenant != "", Plan: x.plan, Requests: x.requests, Denied: x.denied, Since: utc(x.first)}
		if e := by[s]; e != nil {
			d := Denial{By: e.by.String(), Reason: e.reason, Limit: e.limit, Plan: e.plan}
			o.By = d.Label()
		}
		out = append(out, o)
	}
	return out
}

// mostBy is what denied each of these subjects most often.
func (t *tally) mostBy(subjects []int32) map[int32]*entry {
	out := make(map[int32]*entry, len(subjects))
	most := make(map[int32]int64, len(subjects))
	for _, s := range subjects {
		out[s] = nil
	}
	for p, n := range t.causes.pairs {
		e, wanted := out[p.subject]
		if !wanted || n < most[p.subject] {
			continue
		}
		if e == nil || n > most[p.subject] || p.entry.limit < e.limit {
			out[p.subject], most[p.subject] = p.entry, n
		}
	}
	return out
}

func (t *tally) routeUses() []Route {
	out := make([]Route, 0, len(t.routes))
	for i, u := range t.routes {
		out = append(out, Route{t.policy.Routes[i].Name, u.requests, u.denied})
	}
	slices.SortStableFunc(out, func(a, b Route) int { return cmp.Compare(b.Requests, a.Requests) })
	return out
}

func (p *paths) list() []Path {
	out := make([]Path, 0, min(len(p.count), maxListed))
	for path, n := range p.count {
		out = append(out, Path{path, n})
	}
	slices.SortFunc(out, func(a, b Path) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Path, b.Path))
	})
	return out[:min(len(out), maxListed)]
}

func (r *runner) unused() Unused {
	t := r.tally
	u := Unused{AccessRules: slices.AppendSeq([]string{}, maps.Keys(t.unseen)), EdgeLimits: []string{}, Routes: []string{}, Plans: []string{}}
	slices.Sort(u.AccessRules)
	for i := range t.policy.Edge {
		if !r.now.Met(i) {
			u.EdgeLimits = append(u.EdgeLimits, t.policy.Edge[i].Name)
		}
	}
	for i, x := range t.routes {
		if x.requests == 0 {
			u.Routes = append(u.Routes, t.policy.Routes[i].Name)
		}
	}
	for i := range t.policy.Plans {
		if name := t.policy.Plans[i].Name; t.plans[name] == 0 {
			u.Plans = append(u.Plans, name)
		}
	}
	for i := range t.policy.Tenants {
		if _, met := t.tenants[t.policy.Tenants[i].ID]; !met {
			u.Tenants++
		}
	}
	return u
}

// suggestions are for the busiest cells, those of whole groups among them.
func (t *tally) suggestions() []Suggestion {
	out := []Suggestion{}
	for key, c := range t.cells {
		c.days.roll()
		d := c.days.busiest
		if d.Minutes < fewMinutes {
			continue
		}
		s := Suggestion{Who: t.groupName(key.group), Each: key.group < 0, Requests: c.requests, Demand: d}
		if key.route >= 0 {
			s.Route = t.policy.Routes[key.route].Name
		}
		s.Rate, s.Burst = d.suggest()
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Who, b.Who), cmp.Compare(a.Route, b.Route))
	})
	return out[:min(len(out), maxSuggestions)]
}

// heat is the busiest routes by the busiest groups.
func (t *tally) heat() Heat {
	routes, groups := map[int32]int64{}, map[group]int64{}
	for key, c := range t.cells {
		if key.route < 0 {
			continue
		}
		// Who is denied is what people look for.
		weight := c.requests + 10*c.denied
		routes[key.route] += weight
		groups[key.group] += weight
	}
	rows, columns := heaviest(routes), heaviest(groups)
	h := Heat{Routes: []string{}, Groups: []string{}, Cells: [][]HeatCell{}}
	for _, g := range columns {
		h.Groups = append(h.Groups, t.groupName(g))
	}
	for _, r := range rows {
		h.Routes = append(h.Routes, t.policy.Routes[r].Name)
		row := make([]HeatCell, len(columns))
		for i, g := range columns {
			if c := t.cells[cellKey{r, g}]; c != nil {
				row[i] = HeatCell{c.requests, c.denied}
			}
		}
		h.Cells = append(h.Cells, row)
	}
	return h
}

func heaviest[K cmp.Ordered](weights map[K]int64) []K {
	keys := slices.Collect(maps.Keys(weights))
	slices.SortFunc(keys, func(a, b K) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a, b)) })
	return keys[:min(len(keys), maxHeat)]
}

func (t *tally) changed() *Changes {
	c := t.changes
	out := &Changes{
		NewlyDenied: c.newlyCount, NewlyWho: c.newlyWho, NoLonger: c.freeCount, NoLongerWho: c.freeWho, OtherCause: c.otherwise,
		Newly: t.denials(&c.newly), NoLongerList: t.denials(&c.noLonger), Who: []ChangedWhom{},
	}
	for i := range t.subjects {
		if x := &t.subjects[i]; x.newly+x.noLonger > 0 {
			out.Who = append(out.Who, ChangedWhom{t.who(int32(i)), x.tenant != "", x.newly, x.noLonger, x.requests})
		}
	}
	slices.SortFunc(out.Who, func(a, b ChangedWhom) int {
		return cmp.Or(cmp.Compare(b.Newly, a.Newly), cmp.Compare(b.NoLonger, a.NoLonger), cmp.Compare(a.Who, b.Who))
	})
	out.Who = out.Who[:min(len(out.Who), maxListed)]
	return out
}
