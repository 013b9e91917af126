package policies

import "net/netip"

func checkClientIP(p *Policy, f *findings) {
	c := p.ClientIP
	if c == nil {
		return
	}
	if n := c.IPv6Prefix; n != nil && (*n < 48 || *n > 128) {
		f.errorf("client_ip.ipv6_prefix", ruleIPv6Prefix, "%d bits are no size of one IPv6 client; want 48 to 128, 64 as a rule", *n)
	}
	if len(c.TrustedProxies.All()) > 0 {
		return
	}
	if c.Direct == DirectDeny {
		f.errorf("client_ip.direct", ruleNoProxies, "nobody could come in: only trusted proxies may, and there are none; want trusted_proxies")
	}
	if c.Header != "" {
		f.errorf("client_ip.header", ruleNoProxies, "%s is believed from nobody; want trusted_proxies that may send it", c.Header)
	}
}

// A prefix this short, IPv4 and IPv6, trusts strangers: as an error, and
// where it is public as a warning.
const (
	widest4, wide4 = 8, 12
	widest6, wide6 = 16, 24
)

func checkTrustedProxies(p *Policy, f *findings) {
	if p.ClientIP == nil {
		return
	}
	const path = "client_ip.trusted_proxies"
	repeats(f, path, p.ClientIP.TrustedProxies)
	for n, at := range places(path, p.ClientIP.TrustedProxies) {
		if n.Private || within(n.Prefix, PrivateNetworks()) {
			continue
		}
		shortest, short := widest6, wide6
		if n.Prefix.Addr().Is4() {
			shortest, short = widest4, wide4
		}
		switch {
		case n.Prefix.Bits() < shortest:
			f.errorf(at.path, ruleProxiesWide, "%s%s lets strangers say who they are: whoever is in it may name any client; want the addresses of your proxies alone", n, f.from(at))
		case n.Prefix.Bits() < short:
			f.warnf(at.path, ruleProxiesWide, "%s%s is much public space for proxies, and whoever is in it may name any client; want the addresses of your proxies alone", n, f.from(at))
		}
	}
}

// within tells whether one of some networks holds all of a prefix.
func within(p netip.Prefix, nets []netip.Prefix) bool {
	for _, n := range nets {
		if n.Bits() <= p.Bits() && n.Overlaps(p) {
			return true
		}
	}
	return false
}

// checkTrustedAllowed finds proxies that are let pass as clients. When a header
// names nobody the proxy itself is the client, and so everybody behind it.
func checkTrustedAllowed(p *Policy, f *findings) {
	if p.ClientIP == nil || p.Edge == nil {
		return
	}
	trusted := p.ClientIP.TrustedProxies.All()
	for i := range p.Edge.Access {
		rule := &p.Edge.Access[i]
		verdict, clients := rule.verdict()
		if clients == nil || verdict == AccessDeny {
			continue
		}
		path := field(elem("edge.access", i), verdict.key())
		for n, at := range places(field(path, "cidrs"), clients.CIDRs) {
			// An allowed LAN may well hold its proxies; an exempt one is no longer counted.
			if n.Private && verdict == AccessAllow {
				continue
			}
			if proxy, ok := meets(n, trusted); ok {
				f.warnf(at.path, ruleProxyAllowed, "%s%s meets the trusted proxy %s: a request that names no client comes from the proxy, and passes here; want networks of clients alone", n, f.from(at), proxy)
				break // one says it for the list
			}
		}
	}
}

// meets finds a trusted proxy that shares addresses with a network.
func meets(n Network, trusted []Network) (Network, bool) {
	for _, t := range trusted {
		switch {
		case n == t,
			n.Private && !t.Private && within(t.Prefix, PrivateNetworks()),
			t.Private && !n.Private && within(n.Prefix, PrivateNetworks()),
			!n.Private && !t.Private && n.Prefix.Overlaps(t.Prefix):
			return t, true
		}
	}
	return Network{}, false
}
