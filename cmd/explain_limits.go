package cmd

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"sluice/cmd/trial"
	"sluice/policies"
)

// explainLimits tells the limits of a tenant or plan.
func explainLimits(e *env, o explainOptions, p *policies.Policy, c *policies.Compiled) error {
	x, err := trial.EffectiveOf(p, c, o.Tenant, o.Plan, o.Nodes)
	if err != nil {
		return usageError{err}
	}
	if o.Format == "json" {
		return writeIndented(e.Out, x)
	}
	lines := effectiveLines(x, o.Nodes, paintFor(e))
	_, err = io.WriteString(e.Out, strings.Join(lines, "\n")+"\n")
	return err
}

// effectiveLines are the limits for people.
func effectiveLines(x *trial.Effective, instances int, p paint) []string {
	title := "plan " + x.Plan
	if x.Tenant != "" {
		title = "tenant " + x.Tenant + ", " + title
	}
	if x.Extends != "" {
		title += ", which extends " + x.Extends
	}
	title += ", priority " + x.Priority
	out := []string{p.strong(title)}
	if x.Disabled {
		out = append(out, p.bad("The tenant is disabled: every request is refused with 403."))
	}
	out = section(out, "Limits", x.Limits, instances, p)
	for i := range x.Keys {
		k := &x.Keys[i]
		name := "Limits of key " + k.ID + " alone, plan " + k.Plan
		if k.Disabled {
			name = "Key " + k.ID + " is disabled. Limits of its own"
		}
		out = section(out, name, k.Limits, instances, p)
	}
	out = section(out, "Limits of routes", x.Routes, instances, p)
	out = section(out, "Limits of every request", x.Every, instances, p)
	if len(x.Refused) > 0 {
		out = append(out, "", p.strong("Refused with 403"))
		out = append(out, wrapIndent("the plan may not use "+strings.Join(x.Refused, ", "), 2, 2)...)
	}
	return append(out, awayLines(x.Away, instances, p)...)
}

func section(out []string, title string, limits []trial.Limit, instances int, p paint) []string {
	if len(limits) == 0 {
		return out
	}
	out = append(out, "", p.strong(title))
	width := 0
	for i := range limits {
		width = max(width, len(limitName(&limits[i])))
	}
	for i := range limits {
		out = append(out, limitLines(&limits[i], width, instances, p)...)
	}
	return out
}

func limitName(l *trial.Limit) string {
	if l.Route != "" {
		return l.Route + ": " + l.Name
	}
	return l.Name
}

// limitLines are one limit: what it allows, then each number and where it was
// said, grants, and what else is to know.
func limitLines(l *trial.Limit, width, instances int, p paint) []string {
	indent := strings.Repeat(" ", width+4)
	out := []string{"  " + p.strong(pad(limitName(l), width)) + "  " + l.Text + forWhom(l.Per) + p.faint(", else "+strconv.Itoa(l.Status))}
	keys, values := 0, 0
	for _, s := range l.Said {
		keys, values = max(keys, len(s.Key)), max(values, len(s.Value))
	}
	for _, s := range l.Said {
		line := indent + pad(s.Key, keys) + "  " + pad(s.Value, min(values, 24)) + "  " + p.faint(s.From+" ("+s.Where+")")
		out = append(out, strings.TrimRight(line, " "))
	}
	for _, g := range l.Grants {
		out = append(out, fmt.Sprintf("%s+%d  %s", indent, g.Add, p.faint("grant, "+g.From+" to "+g.Until)))
	}
	notes := l.Notes
	if l.Overshoot != nil {
		notes = append(notes, fmt.Sprintf("soft: %s may let %d units more pass at worst", plural(instances, "instance"), *l.Overshoot))
	}
	for _, n := range notes {
		out = append(out, wrapIndent(n, width+4, width+6)...)
	}
	return out
}

func forWhom(per string) string {
	if per == "everybody together" {
		return " for " + per
	}
	return " per " + per
}

// awayLines tell what happens when the store is away.
func awayLines(away []trial.Away, instances int, p paint) []string {
	if len(away) == 0 {
		return nil
	}
	out := []string{"", p.strong("When the store is away")}
	for _, a := range away {
		what := map[string]string{
			"open":   "let pass, uncounted",
			"closed": "refused with 503, Retry-After 1",
			"local":  "each service counts in its memory alone, limits divided by " + plural(instances, "instance"),
		}[a.Mode]
		out = append(out, wrapIndent(a.Mode+": "+what+": "+strings.Join(a.Routes, ", "), 2, 4)...)
	}
	return out
}
