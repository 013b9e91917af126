package policies

import (
	"net/netip"
	"slices"
	"time"
)

// PrivateNetworks are what the word `private` stands for: loopback,
// link-local, RFC 1918 and the unique local addresses of RFC 4193.
func PrivateNetworks() []netip.Prefix {
	var nets []netip.Prefix
	for _, s := range []string{
		"10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16",
		"::1/128", "fc00::/7", "fe80::/10",
	} {
		nets = append(nets, netip.MustParsePrefix(s))
	}
	return nets
}

// Networks are the prefixes of a list, sorted and without doubles; nil when
// the list is absent.
func Networks(list List[Network]) []netip.Prefix {
	if list == nil {
		return nil
	}
	nets := []netip.Prefix{}
	for _, n := range list.All() {
		if n.Private {
			nets = append(nets, PrivateNetworks()...)
		} else {
			nets = append(nets, n.Prefix)
		}
	}
	slices.SortFunc(nets, netip.Prefix.Compare)
	return slices.Compact(nets)
}

func (c *Compiled) compileEdge(s *EdgeSpec) {
	if s.Nodes != nil {
		c.Nodes = *s.Nodes
	}
	for i := range s.Access {
		c.Access = append(c.Access, c.compileAccess(i, &s.Access[i]))
	}
	for _, name := range sortedKeys(s.Limits) {
		c.Edge = append(c.Edge, c.compileEdgeLimit(string(name), s.Limits[name]))
	}
}

func (c *Compiled) compileAccess(i int, s *AccessSpec) AccessRule {
	rule := AccessRule{
		Index:  i,
		Name:   string(s.Name),
		Shadow: s.Mode == LimitShadow,
		When:   compileWhen(s.When),
		Routes: c.routeIndexes(s.Routes),
	}
	switch {
	case s.Exempt != nil:
		rule.Verdict, rule.Clients = AccessExempt, *compileClients(s.Exempt)
	case s.Allow != nil:
		rule.Verdict, rule.Clients = AccessAllow, *compileClients(s.Allow)
	default:
		rule.Verdict, rule.Clients, rule.Status = AccessDeny, *compileClients(s.Deny), 403
		if s.Status != nil {
			rule.Status = int(*s.Status)
		}
	}
	return rule
}

func (c *Compiled) compileEdgeLimit(name string, s EdgeLimitSpec) EdgeLimit {
	l := EdgeLimit{
		Name:   name,
		Per:    s.Per,
		Only:   compileClients(s.Only),
		Except: compileClients(s.Except),
		When:   compileWhen(s.When),
		Routes: c.routeIndexes(s.Routes),
		Shadow: s.Mode == LimitShadow,
	}
	nodes := int64(c.Nodes)
	if s.Rate != nil {
		l.Rate = s.Rate.perNode(nodes)
	}
	if s.Burst != nil {
		l.Burst = ceilDiv(int64(*s.Burst), nodes)
	}
	if s.Connections != nil {
		l.Connections = ceilDiv(int64(*s.Connections), nodes)
	}
	if s.Expect != nil {
		l.Expect = int64(*s.Expect)
	}
	if s.Delay != nil {
		l.Delay = Delay{All: s.Delay.All, N: ceilDiv(s.Delay.N, nodes)}
	}
	return l
}

// perNode is one node's part of a rate, as NGINX can hold it: whole requests
// each second, else whole requests each minute, rounded up.
func (r Rate) perNode(nodes int64) Rate {
	perMinute := ceilDiv(r.Micro*int64(time.Minute/r.Per), nodes*1_000_000)
	if perMinute%60 == 0 {
		return Rate{Micro: perMinute / 60 * 1_000_000, Per: time.Second}
	}
	return Rate{Micro: perMinute * 1_000_000, Per: time.Minute}
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

func compileClients(s *Clients) *ClientSet {
	if s == nil {
		return nil
	}
	set := &ClientSet{All: s.All, Networks: Networks(s.CIDRs)}
	for _, re := range s.UserAgents.All() {
		set.UserAgents = append(set.UserAgents, &re)
	}
	set.places(s)
	return set
}

func compileWhen(s *WhenSpec) *When {
	if s == nil {
		return nil
	}
	w := &When{Methods: text(s.Methods)}
	for _, name := range sortedKeys(s.Headers) {
		w.Tests = append(w.Tests, compileTest(CarrierHeader, string(name), s.Headers[name]))
	}
	for _, name := range sortedKeys(s.Query) {
		w.Tests = append(w.Tests, compileTest(CarrierQuery, string(name), s.Query[name]))
	}
	for _, name := range sortedKeys(s.Cookies) {
		w.Tests = append(w.Tests, compileTest(CarrierCookie, string(name), s.Cookies[name]))
	}
	return w
}

func compileTest(from Carrier, name string, cond Condition) Test {
	t := Test{Carrier: from, Name: name, Present: cond.Present, Absent: cond.Absent}
	for _, re := range cond.Regexes {
		t.Regexes = append(t.Regexes, &re)
	}
	return t
}
