package replay

import (
	"fmt"
	"slices"
	"strings"

	"sluice/cmd/accesslog"
	"sluice/cmd/trial"
	"sluice/policies"
)

// manyPrivate is the share of requests, in percent, from which one private address
// is a proxy that nobody trusts rather than a client.
const manyPrivate = 30

// notes are what people must know to read the report rightly: above all what the
// log does not say.
func (r *runner) notes(counts *accesslog.Counts) []string {
	n := &notes{runner: r, list: []string{}}
	if r.tally.requests == 0 {
		n.addf("no request was replayed")
		return n.list
	}
	n.order(counts)
	n.unsaid()
	n.clients()
	n.tenants()
	n.limits(counts)
	n.bounds()
	return n.list
}

type notes struct {
	*runner
	list []string
}

func (n *notes) addf(format string, args ...any) {
	n.list = append(n.list, fmt.Sprintf(format, args...))
}

func (n *notes) order(counts *accesslog.Counts) {
	if counts.Whole == counts.Entries {
		n.addf("the log's times are whole seconds: requests of one second are taken to come at once, so short bursts may look larger than they were; $msec in the log_format is exact")
	}
	if counts.Late > 0 {
		n.addf("%s came too late to be sorted, or began before the window did, and were taken at a later time than their own; --window is how far apart lines may be", plural(counts.Late, "line"))
	}
	if counts.Narrowed > 0 {
		n.addf("more lines came in a window than are kept at a time: %s were sorted in less", plural(counts.Narrowed, "second"))
	}
}

// unsaid tells what the policy looks at and the log never says.
func (n *notes) unsaid() {
	for _, list := range [][]want{n.builder.headers, n.builder.cookies, n.builder.args, n.builder.costs} {
		for i := range list {
			w := &list[i]
			why := slices.DeleteFunc(slices.Clone(w.why), func(s string) bool {
				return s == "" || n.named() && strings.HasPrefix(s, "identity.")
			})
			if len(why) == 0 || n.builder.says(w) {
				continue
			}
			n.addf("no line says $%s, which %s: taken as absent", n.builder.vars.Name(w.v), looks(why))
		}
	}
}

// named tells whether the log itself says whose requests are.
func (n *notes) named() bool {
	return n.builder.told[n.builder.whose.now.column]
}

// says tells whether some line said it, in a variable of its own or in one that
// holds it: a query is in every request's target.
func (b *builder) says(w *want) bool {
	switch {
	case b.told[w.v]:
		return true
	case strings.HasPrefix(b.vars.Name(w.v), "arg_"):
		return b.queries
	case strings.HasPrefix(b.vars.Name(w.v), "cookie_"):
		return b.told[accesslog.VarCookies]
	}
	return false
}

func looks(why []string) string {
	if len(why) == 1 {
		return why[0] + " looks at"
	}
	if len(why) > 3 {
		return fmt.Sprintf("%s and %d more look at", strings.Join(why[:2], ", "), len(why)-2)
	}
	return strings.Join(why[:len(why)-1], ", ") + " and " + why[len(why)-1] + " look at"
}

func (n *notes) clients() {
	t := n.tally
	if n.builder.direct > 0 {
		n.addf("%s do not say whether the client came through a trusted proxy, which client_ip.direct asks: taken as yes; log $realip_remote_addr", plural(n.builder.direct, "line"))
	}
	if n.builder.header != "" && !n.builder.told[n.builder.forwarded] {
		n.addf("no line says $%s: $remote_addr is taken for the client, as NGINX's real_ip writes it", n.builder.vars.Name(n.builder.forwarded))
	}
	for client, count := range t.private {
		if count*100 >= t.requests*manyPrivate && len(t.subjects) > 2 || count == t.requests && t.requests > 100 {
			n.addf("%d %% of the requests come from %s, a private address: a proxy that client_ip.trusted_proxies should name?", count*100/t.requests, client.Addr())
		}
	}
}

func (n *notes) tenants() {
	w := n.builder.whose.now
	switch {
	case n.Policy.Identity == nil && w.asked:
		n.addf("the policy identifies nobody: whose a request is changes nothing")
	case n.Policy.Identity == nil:
	case w.asked && !n.named():
		n.addf("no line says $%s, so nobody's tenant is known", n.builder.vars.Name(w.column))
	case w.mute > 0:
		n.addf("%s name a tenant without an API key: taken as without a credential", plural(w.mute, "line"))
	case w.strangers > 0:
		n.addf("%s name a tenant or key that the policy does not know", plural(w.strangers, "line"))
	}
}

// bounds tells where a table was full: what is beyond is counted together.
func (n *notes) bounds() {
	t := n.tally
	if len(t.subjects) >= maxSubjects {
		n.addf("more than %s clients and tenants: those that came last are counted together", thousands(maxSubjects))
	}
	if len(t.cells) >= maxCells {
		n.addf("more than %s tenants on routes: those that came last have no suggestion", thousands(maxCells))
	}
	if t.paths.rest > 0 {
		n.addf("%s fit no route and none of the %s shapes of paths that are kept", plural(t.paths.rest, "request"), thousands(maxPaths))
	}
}

func (n *notes) limits(counts *accesslog.Counts) {
	if counts.Timed == 0 && counts.Entries > 0 && countsOpen(n.Policy) {
		n.addf("the log says no $request_time: requests are taken to end at once, so limits on how many run at a time refuse nobody here")
	}
	if n.refused > 0 {
		n.addf("%s had been answered 429 when they were logged: some would not have come again if they had passed", plural(n.refused, "request"))
	}
	if n.tally.degraded > 0 {
		n.addf("%s passed because nothing could be decided: more counters were wanted than a replay keeps", plural(n.tally.degraded, "request"))
	}
	if n.skipped.CacheHits > 0 {
		n.addf("%s from NGINX's cache were left out, as asked; in production limits apply before the cache", plural(n.skipped.CacheHits, "answer"))
	}
	for i := range n.Policy.Plans {
		p := &n.Policy.Plans[i]
		for j := range p.Limits {
			if l := &p.Limits[j]; l.Soft {
				n.addf("plans.%s.limits.%s is counted softly: services may admit what comes between two writes (5 s) beyond it, a twentieth at most; here it is exact", p.Name, l.Name)
			}
		}
	}
	if n.tally.denied[trial.ByNGINX] > 0 {
		n.addf("%s have a target that NGINX itself answers with 400", plural(n.tally.denied[trial.ByNGINX], "request"))
	}
}

// countsOpen tells whether some limit counts requests at a time.
func countsOpen(c *policies.Compiled) bool {
	for i := range c.Edge {
		if c.Edge[i].Connections > 0 {
			return true
		}
	}
	for i := range c.Plans {
		if slices.ContainsFunc(c.Plans[i].Limits, func(l policies.Limit) bool { return l.Kind == policies.KindConcurrency }) {
			return true
		}
	}
	return slices.ContainsFunc(c.Limits, func(l policies.Limit) bool { return l.Kind == policies.KindConcurrency })
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
