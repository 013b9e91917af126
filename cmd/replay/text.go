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

type printer struct {
	Style
	oneYear bool // the whole log
	out     strings.Builder
}

func (p *printer) line(s string) { p.out.WriteString(s + "\n") }

func (p *printer) paint(code, s string) string {
	if !p.Colour {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p *printer) bold(s string) string { return p.paint("1", s) }
func (p *printer) dim(s string) string  { return p.paint("2", s) }
func (p *printer) red(s string) string  { return p.paint("31", s) }

func (p *printer) green(s string) string { return p.paint("32", s) }

// head begins a section.
func (p *printer) head(s string) { p.line("\n" + p.bold(s)) }

// wrap writes text with a first and a following indent, broken between words.
func (p *printer) wrap(first, following, text string) {
	line, at := first, runes(first)
	for i, word := range strings.Fields(clean(text)) {
		if i > 0 && at+1+runes(word) > p.Width {
			p.line(line)
			line, at = following+word, runes(following)+runes(word)
			continue
		}
		if i > 0 {
			line, at = line+" ", at+1
		}
		line, at = line+word, at+runes(word)
	}
	p.line(line)
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

func numberWidth(n int64) int { return len(thousands(n)) }

func subjects(n int64) string {
	if n == 1 {
		return "1 client or tenant"
	}
	return thousands(n) + " clients and tenants"
}

// share is a percentage of five columns: never 0 of something, never all of less.
func share(n, of int64) string {
	switch x := float64(n) * 100 / float64(max(of, 1)); {
	case n == 0 || n == of:
		return fmt.Sprintf("%5.0f %%", x)
	case x < 0.1:
		return " <0.1 %"
	case x > 99.9:
		return ">99.9 %"
	default:
		return fmt.Sprintf("%5.1f %%", x)
	}
}

// short is a time without its year, where the log has one year alone.
func (p *printer) short(t time.Time) string {
	if p.oneYear && p.Width < wideFrom {
		return t.Format("01-02 15:04:05")
	}
	return clock(t)
}

func clock(t time.Time) string { return t.Format("2006-01-02 15:04:05") }

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

// span64 writes so many seconds as people do.
func span64(seconds int64) string {
	switch {
	case seconds%86400 == 0:
		return fmt.Sprintf("%d d", seconds/86400)
	case seconds%3600 == 0:
		return fmt.Sprintf("%d h", seconds/3600)
	case seconds%60 == 0:
		return fmt.Sprintf("%d min", seconds/60)
	}
	return fmt.Sprintf("%d s", seconds)
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
