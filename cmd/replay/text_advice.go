package replay

import (
	"fmt"
	"strings"
)

// unusedNames are the names of one kind.
type unusedNames struct {
	what  string
	names []string
}

// lists are the kinds that have any.
func (u *Unused) lists() []unusedNames {
	var out []unusedNames
	for _, l := range []unusedNames{{"access rules", u.AccessRules}, {"edge limits", u.EdgeLimits}, {"routes", u.Routes}, {"plans", u.Plans}} {
		if len(l.names) > 0 {
			out = append(out, l)
		}
	}
	if u.Tenants > 0 {
		out = append(out, unusedNames{"tenants", []string{thousands(int64(u.Tenants))}})
	}
	return out
}

func (p *printer) unused(r *Report) {
	if lists := r.Unused.lists(); len(lists) > 0 {
		p.head("What no request of this log met")
		for _, l := range lists {
			p.wrap(fmt.Sprintf("  %-12s  ", l.what), strings.Repeat(" ", 16), strings.Join(l.names, ", "))
		}
	}
	if len(r.Unrouted) == 0 {
		return
	}
	p.head("Paths that no route names")
	var rows [][]string
	for _, x := range r.Unrouted[:min(len(r.Unrouted), textRows)] {
		rows = append(rows, []string{thousands(x.Requests), x.Path})
	}
	table(p, []column{{head: "requests", right: true}, {head: "path"}}, rows)
	p.more(len(r.Unrouted))
}

func (p *printer) suggestions(r *Report) {
	if len(r.Suggestions) == 0 {
		return
	}
	p.head("Limits that would have let this pass")
	p.wrap("  ", "  ", fmt.Sprintf("The rate is p99.9 of the units that one client or tenant took in a minute, on its busiest day, plus %d %% of head room; the burst is the same of ten seconds.", headRoom))
	var rows [][]string
	for _, s := range r.Suggestions[:min(len(r.Suggestions), textSuggestions)] {
		rows = append(rows, []string{s.Where(), s.Whom(), thousands(s.Requests), thousands(s.Demand.Median), thousands(s.Demand.P99), thousands(s.Demand.P999), s.Rate, thousands(s.Burst)})
	}
	table(p, []column{
		{head: "route"}, {head: "who"}, {head: "requests", right: true, wide: true}, {head: "median/min", right: true, wide: true},
		{head: "p99/min", right: true, wide: true}, {head: "p99.9/min", right: true}, {head: "rate", right: true}, {head: "burst", right: true},
	}, rows)
}

// Where is the route for people.
func (s *Suggestion) Where() string {
	switch {
	case s.Route != "":
		return s.Route
	case s.Who == "clients":
		return "all requests" // counted so, whatever they cost
	}
	return "all together"
}

// Whom is who the numbers are of, for people.
func (s *Suggestion) Whom() string {
	if rest, ok := strings.CutPrefix(s.Who, "clients"); ok && s.Each {
		return "each client" + rest
	}
	return "tenant " + s.Who
}

func (p *printer) notes(r *Report) {
	lines := r.noteLines()
	if len(lines) == 0 {
		return
	}
	p.head("Notes")
	for _, s := range lines {
		p.wrap("  * ", "    ", s)
	}
}

// noteLines are the notes, with what the counts of the log say.
func (r *Report) noteLines() []string {
	var lines []string
	l := &r.Log
	for _, b := range l.Bad {
		lines = append(lines, fmt.Sprintf("%s could not be read: %s; the first is %s:%d", plural(b.Lines, "line"), b.Problem, b.Source, b.Line))
	}
	if l.Repaired > 0 {
		lines = append(lines, plural(l.Repaired, "line")+" of JSON had to be repaired; escape=json in the log_format writes good ones")
	}
	for _, x := range []struct {
		n    int64
		what string
	}{
		{l.Skipped.NoRequest, "without a request that NGINX could read"},
		{l.Skipped.Subrequests, "of NGINX's own requests to a service, left out"},
		{l.Skipped.Datagrams, "of datagrams to the service, which name no client: left out"},
	} {
		if x.n > 0 {
			lines = append(lines, plural(x.n, "line")+" "+x.what)
		}
	}
	return append(lines, r.Notes...)
}
