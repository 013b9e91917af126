package edge

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"go4.org/netipx"

	"sluice/geo"
	"sluice/policies"
)

// Model is an NGINX with one policy: its rules, and its counters. It is one node
// of those among which the policy divides its numbers.
type Model struct {
	c          *policies.Compiled
	geo        geo.Tables
	servers    servers
	trusted    *netipx.IPSet
	continents map[policies.Country]policies.Continent
	accessSets []*clientSet // by index of Compiled.Access
	ruleNames  []string
	limits     []edgeLimit // by index of Compiled.Edge
	rated      []bool      // by route: it has a rate
	counting   []bool      // by route: it has a limit on connections
	asks       []bool      // by route
	ask        asking
	key        []byte // built here
}

// edgeLimit is one edge limit and its counters: zone or open.
type edgeLimit struct {
	*policies.EdgeLimit
	dims         []policies.Dim
	only, except *clientSet
	shadow       bool
	bucket       Bucket
	zone         *zone
	open         map[string]int64
	met          bool // some request came to where it counts
}

// New makes a Model that nobody has asked yet. Without a database the places of
// clients are unknown, but for those that requests name themselves.
func New(c *policies.Compiled, tables geo.Tables) *Model {
	m := &Model{
		c: c, geo: tables, servers: newServers(c), trusted: ipSet(c.Client.Trusted), continents: geo.ContinentOf(),
		rated: make([]bool, len(c.Routes)), counting: make([]bool, len(c.Routes)), asks: make([]bool, len(c.Routes)),
		ask: newAsking(c),
	}
	for i := range c.Access {
		m.accessSets = append(m.accessSets, newClientSet(&c.Access[i].Clients))
		m.ruleNames = append(m.ruleNames, RuleName(&c.Access[i]))
	}
	for i := range c.Edge {
		m.limits = append(m.limits, newEdgeLimit(c, &c.Edge[i]))
	}
	for i := range c.Routes {
		m.asks[i] = Asks(c, &c.Routes[i])
		for _, e := range c.Routes[i].Edge {
			m.rated[i] = m.rated[i] || m.limits[e].zone != nil
			m.counting[i] = m.counting[i] || m.limits[e].open != nil
		}
	}
	return m
}

func newEdgeLimit(c *policies.Compiled, l *policies.EdgeLimit) edgeLimit {
	e := edgeLimit{
		EdgeLimit: l, dims: KeyDims(l.Per), only: newClientSet(l.Only), except: newClientSet(l.Except),
		shadow: l.Shadow || c.Mode == policies.ModeShadow,
	}
	if l.Connections > 0 {
		e.open = map[string]int64{}
		return e
	}
	e.bucket, _ = BucketOf(l)
	e.zone = newZone(e.bucket.PerSecond())
	return e
}

// Met tells whether the edge limit, an index of Compiled.Edge, was asked about any
// request yet: not when all of them are on other routes, or of clients or of a kind
// that it does not count.
func (m *Model) Met(limit int) bool { return m.limits[limit].met }

// Fresh is a Model of the same policy that nobody has asked yet. It shares with m
// what never changes.
func (m *Model) Fresh() *Model {
	f := *m
	f.key, f.limits = nil, slices.Clone(m.limits)
	for i := range f.limits {
		l := &f.limits[i]
		if l.met = false; l.zone != nil {
			l.zone = newZone(l.zone.rate)
		} else {
			l.open = map[string]int64{}
		}
	}
	return &f
}

// Inherit takes over what another Model has counted in rates of the same name and
// keys, as NGINX's zones live through a reload. That one must not be used again
// but by whoever waits for the same turn.
func (m *Model) Inherit(from *Model) {
	for i := range m.limits {
		l := &m.limits[i]
		for j := range from.limits {
			o := &from.limits[j]
			if l.zone != nil && o.zone != nil && l.Name == o.Name && slices.Equal(l.dims, o.dims) {
				l.zone.buckets = o.zone.buckets
			}
		}
	}
}

// Bound makes every rate keep at most so many keys, or as many clients as the
// policy expects if those are more. Beyond them some key is forgotten for each new
// one, as NGINX does when a zone is full: without a bound memory is whoever's who
// has many addresses.
func (m *Model) Bound(keys int) {
	for i := range m.limits {
		if l := &m.limits[i]; l.zone != nil {
			l.zone.most = max(keys, int(min(l.Expect, 1<<24)))
		}
	}
}

// Enter takes v.Request through the access rules and limit_req, at a time that
// must never be before that of the visit before.
func (m *Model) Enter(v *Visit, now time.Time) {
	if m.Arrive(v) {
		m.Meter(v, now)
	}
}

// Arrive is Enter as far as the access rules. It tells whether limit_req is to be
// asked next. It changes nothing but v: many visits may arrive at once.
func (m *Model) Arrive(v *Visit) bool {
	v.reset()
	m.address(v)
	v.Host = hostOf(v.Request)
	v.Server = m.servers.of(v.Host)
	path, ok := policies.NormalizePath(v.path, []byte(v.Request.URI))
	v.path = path
	if !ok {
		v.Verdict = Bad
		return false
	}
	if v.Trace != nil {
		v.Trace.Path = string(path)
	}
	if v.Location = m.c.Match(v.Host, "", path); v.Location == nil {
		return false
	}
	if m.access(v); v.Refused != 0 {
		v.Verdict = Access
		return false
	}
	return m.rated[v.Location.Index]
}

// Meter is Enter's other half: limit_req, for a visit of which Arrive said so. As
// with all that counts, one visit after another.
func (m *Model) Meter(v *Visit, now time.Time) { m.rates(v, now.UnixMilli()) }

// address finds the client.
func (m *Model) address(v *Visit) {
	v.Peer, v.Trusted = v.Request.Peer, m.isTrusted(v.Request.Peer)
	v.Client = v.Peer.Unmap()
	switch {
	case !v.Client.IsValid():
	case m.c.Client.ProxyProtocol:
		v.Client = m.c.ClientAddress(v.Request.Peer, v.Request.all(ProxyProtocol))
	case m.c.Client.Header != "" && v.Trusted:
		v.Client = m.c.ClientAddress(v.Request.Peer, v.Request.all(string(m.c.Client.Header)))
	}
	v.Counted = counted(v.Client, m.c.Client.IPv6Prefix)
}

// ProxyProtocol is the name of the field that stands for the PROXY line of a
// connection: who speaks HTTP alone can say it no other way.
const ProxyProtocol = "PROXY"

func (m *Model) isTrusted(peer netip.Addr) bool { return m.trusted.Contains(looked(peer)) }

// unused tells why a limit does not count the request; empty: it does.
func (m *Model) unused(v *Visit, l *edgeLimit) string {
	switch {
	case v.Exempt:
		return "access rule " + v.Rule + " exempts the client"
	case l.only != nil && m.fits(v, l.only) == "":
		return "the client is not among `only`"
	case l.except != nil && m.fits(v, l.except) != "":
		return "the client is among `except`"
	}
	if l.When != nil {
		switch unmet := v.Request.Unmet(l.When); {
		case unmet == "":
		case v.Trace == nil:
			return "`when` does not hold" // nobody reads more, and a text costs memory
		default:
			return "`when` does not hold: " + unmet
		}
	}
	return ""
}

// RetryAfter is what the client is told to wait, in seconds, after a refusal of
// the edge; 0: nothing.
func (m *Model) RetryAfter(v *Visit) int64 {
	switch v.Verdict {
	case EdgeRate:
		return RouteRetry(m.c, v.Location)
	case EdgeConn:
		return 1
	}
	return 0
}

// Header are the headers of limits and reasons that the client gets with a
// refusal of the edge.
func (m *Model) Header(v *Visit) []Field {
	if v.Verdict == Passed || v.Verdict == Bad || v.Shadow {
		return nil
	}
	var out []Field
	if seconds := m.RetryAfter(v); seconds > 0 {
		out = append(out, Field{"Retry-After", strconv.FormatInt(seconds, 10)})
	}
	if v.Verdict != Access {
		if name := OnlyLimit(m.c, v.Location, v.Verdict == EdgeConn); name != "" {
			out = append(out, Field{policies.HeaderLimit, name})
		}
	}
	return append(out, Field{policies.HeaderReason, v.Verdict.String()})
}
