package replay

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Style is how text is written.
type Style struct {
	Width  int // columns, at least 40
	Colour bool
}

// How many rows of each table text shows.
const (
	textRows        = 10
	textSuggestions = 12
)

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer, s Style) error {
	p := &printer{Style: s, oneYear: r.Log.From.Year() == r.Log.To.Year()}
	p.Width = max(p.Width, 40)
	p.summary(r)
	if r.Verdicts.Requests > 0 {
		p.changes(r)
		p.timeline(r)
		p.denials("What denies", r.Denials)
		p.denials("What would deny, but for mode: shadow", r.WouldDeny)
		p.offenders(r)
		p.unused(r)
		p.suggestions(r)
	}
	p.notes(r)
	_, err := io.WriteString(w, p.out.String())
	return err
}

// WriteChanges writes for people what changes against the other policy, and
// nothing else.
func (r *Report) WriteChanges(w io.Writer, s Style) error {
	p := &printer{Style: s, oneYear: r.Log.From.Year() == r.Log.To.Year()}
	p.Width = max(p.Width, 40)
	p.changes(r)
	_, err := io.WriteString(w, p.out.String())
	return err
}

func (p *printer) summary(r *Report) {
	v := &r.Verdicts
	p.line(p.bold(cut(clean(r.title()), p.Width)))
	if v.Requests == 0 {
		p.line("no requests")
		return
	}
	p.wrap("", "", fmt.Sprintf("%s from %s, %s to %s UTC", plural(v.Requests, "request"), subjects(v.Subjects), clock(r.Log.From), clock(r.Log.To)))
	if bad := r.Log.badLines(); bad*100 >= r.Log.Lines && bad > 0 {
		p.line(p.red(fmt.Sprintf("%s of %s could not be read: see the notes", thousands(bad), plural(r.Log.Lines, "line"))))
	}
	p.line("")
	p.line(fmt.Sprintf("  passed  %*s  %s", numberWidth(v.Requests), thousands(v.Passed), share(v.Passed, v.Requests)))
	denied := fmt.Sprintf("  denied  %*s  %s", numberWidth(v.Requests), thousands(v.Edge+v.Service), share(v.Edge+v.Service, v.Requests))
	if v.Edge+v.Service == 0 {
		p.line(p.green(denied))
		return
	}
	p.line(p.red(denied) + fmt.Sprintf("  edge %s, service %s; %s", thousands(v.Edge), thousands(v.Service), subjects(v.Denied)))
	if v.Held > 0 {
		p.line(fmt.Sprintf("  held    %*s  %s  passed, but later", numberWidth(v.Requests), thousands(v.Held), share(v.Held, v.Requests)))
	}
}

// badLines is how many lines could not be read.
func (l *LogFacts) badLines() int64 {
	n := int64(0)
	for _, b := range l.Bad {
		n += b.Lines
	}
	return n
}

// title says what was tried.
func (r *Report) title() string {
	if r.Against != "" {
		return "Replay under " + r.Policy + ", compared with " + r.Against
	}
	return "Replay under " + r.Policy
}

func (p *printer) changes(r *Report) {
	c := r.Changes
	if c == nil {
		return
	}
	p.head("What changes")
	if c.NewlyDenied+c.NoLonger == 0 {
		p.line("  " + p.green("the same requests pass"))
		return
	}
	p.line(p.red(fmt.Sprintf("  newly denied      %10s", thousands(c.NewlyDenied))) + "  " + subjects(c.NewlyWho))
	p.line(p.green(fmt.Sprintf("  no longer denied  %10s", thousands(c.NoLonger))) + "  " + subjects(c.NoLongerWho))
	p.denials("Newly denied", c.Newly)
	p.denials("No longer denied", c.NoLongerList)
	p.head("For whom")
	var rows [][]string
	for _, x := range c.Who[:min(len(c.Who), textRows)] {
		rows = append(rows, []string{thousands(x.Newly), thousands(x.NoLonger), thousands(x.Requests), name(x.Who, x.Tenant)})
	}
	table(p, []column{{head: "newly", right: true}, {head: "no longer", right: true}, {head: "of requests", right: true}, {head: "who"}}, rows)
}

func name(who string, tenant bool) string {
	if tenant {
		return "tenant " + who
	}
	return who
}

// timeline is a line of bars: requests denied in each step of time.
func (p *printer) timeline(r *Report) {
	t := &r.Timeline
	if r.Verdicts.Edge+r.Verdicts.Service == 0 || len(t.Buckets) < 2 {
		return
	}
	room := p.Width - 2
	each := (len(t.Buckets) + room - 1) / room
	var sums []int64
	for i, b := range t.Buckets {
		if i%each == 0 {
			sums = append(sums, 0)
		}
		sums[len(sums)-1] += b.Edge + b.Service
	}
	most := int64(0)
	for _, n := range sums {
		most = max(most, n)
	}
	p.head("Denials over time")
	p.line(p.dim(fmt.Sprintf("  %s a column, up to %s", span64(t.Step*int64(each)), plural(most, "request"))))
	bars := []rune(" ▁▂▃▄▅▆▇█")
	var line strings.Builder
	for _, n := range sums {
		i := (n*8 + most - 1) / most
		line.WriteRune(bars[i])
	}
	p.line("  " + p.red(strings.TrimRight(line.String(), " ")))
	from := clock(t.From)
	to := clock(t.From.Add(time.Duration(int64(len(t.Buckets))*t.Step) * time.Second))
	gap := len(sums) - runes(from) - runes(to)
	if gap < 2 {
		p.line(p.dim("  from " + from))
		return
	}
	p.line(p.dim("  " + from + strings.Repeat(" ", gap) + to))
}

func (p *printer) denials(head string, list []Denial) {
	if len(list) == 0 {
		return
	}
	p.head(head)
	var rows [][]string
	for i := range list[:min(len(list), textRows)] {
		d := &list[i]
		rows = append(rows, []string{
			thousands(d.Requests), thousands(d.Subjects), d.Label(), p.short(d.First), p.short(d.Last), d.Worst, thousands(d.WorstRequests), fmt.Sprintf("%s:%d", d.Source, d.Line),
		})
	}
	table(p, []column{
		{head: "requests", right: true}, {head: "of whom", right: true}, {head: "by"}, {head: "since"},
		{head: "until", wide: true}, {head: "most of all", wide: true}, {head: "requests", right: true, wide: true}, {head: "first line", wide: true},
	}, rows)
	p.more(len(list))
}

func (p *printer) more(n int) {
	if n > textRows {
		p.line(p.dim(fmt.Sprintf("  and %d more: --format json", n-textRows)))
	}
}

func (p *printer) offenders(r *Report) {
	if len(r.Offenders) == 0 {
		return
	}
	p.head("Who is denied most")
	var rows [][]string
	for _, o := range r.Offenders[:min(len(r.Offenders), textRows)] {
		rows = append(rows, []string{thousands(o.Denied), thousands(o.Requests), name(o.Who, o.Tenant), p.short(o.Since), o.By})
	}
	table(p, []column{{head: "denied", right: true}, {head: "of requests", right: true}, {head: "who"}, {head: "since"}, {head: "mostly by"}}, rows)
}
