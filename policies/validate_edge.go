package policies

import (
	"slices"
	"time"
)

// What NGINX can hold.
const (
	maxEdgeRate    = 1_000_000 // requests a second; NGINX counts thousandths and would overflow far above
	maxEdgeBurst   = 1_000_000
	maxConnections = 65535
	maxNodes       = 1000
	// A browser opens six connections over HTTP/1.1, and over HTTP/2 as many
	// streams as a page has parts; below this it fails on ordinary pages.
	fewConnections = 10
	// A zone of one megabyte holds about so many clients.
	clientsPerMegabyte = 8000
	maxZones           = 1024 // megabytes, before we ask whether that is meant
)

func checkEdgeLimits(p *Policy, f *findings) {
	if p.Edge == nil {
		return
	}
	if n := p.Edge.Nodes; n != nil && (*n < 1 || *n > maxNodes) {
		f.errorf("edge.nodes", ruleNodes, "%d nodes cannot share the traffic; want 1 to %d", *n, maxNodes)
	}
	for _, name := range sortedKeys(p.Edge.Limits) {
		l, path := p.Edge.Limits[name], field("edge.limits", string(name))
		f.one(path, key{"rate", l.Rate != nil}, key{"connections", l.Connections != nil})
		f.need(path, key{"per", len(l.Per) > 0})
		f.per(field(path, "per"), l.Per, true)
		f.wantRoutes(field(path, "routes"), l.Routes)
		f.edgeClients(path, &l)
		if l.Rate != nil {
			f.edgeRate(path, &l)
		} else {
			f.only(path, "rate", key{"burst", l.Burst != nil}, key{"delay", l.Delay != nil})
		}
		if l.Connections != nil {
			f.edgeConnections(path, &l)
		}
	}
}

func (f *findings) edgeClients(path string, l *EdgeLimitSpec) {
	if l.Only != nil {
		f.clients(field(path, "only"), l.Only)
		f.without(path, "a limit counts all clients by itself", key{"only", l.Only.All})
	}
	if l.Except != nil {
		f.clients(field(path, "except"), l.Except)
		if l.Except.All {
			f.errorf(path, ruleNoEffect, "the limit counts nobody: all are excepted; want a narrower except, or the limit left out")
		}
	}
}

func (f *findings) edgeRate(path string, l *EdgeLimitSpec) {
	f.heldRate(field(path, "rate"), *l.Rate)
	switch {
	case l.Burst == nil:
		f.errorf(path, ruleRequired, "burst is missing; want so many requests at once as shall pass, 1 for none beyond the rate")
		return
	case *l.Burst < 1 || *l.Burst > maxEdgeBurst:
		f.errorf(field(path, "burst"), ruleEdgeNumber, "NGINX cannot hold a burst of %d; want 1 to %d, so many requests at once", *l.Burst, maxEdgeBurst)
		return
	}
	if *l.Burst == 1 && l.shared() {
		f.warnf(field(path, "burst"), ruleSharedBurst, "everybody shares this counter, and with a burst of 1 two requests in one moment are one too many, however low the rate; want a larger burst")
	}
	if l.Delay != nil && l.Delay.N >= int64(*l.Burst) {
		f.errorf(field(path, "delay"), ruleEdgeDelay, "the first %d pass undelayed, but the burst is %d, so nothing is ever delayed; want less than the burst, or none", l.Delay.N, *l.Burst)
	}
}

// heldRate wants a rate that NGINX holds: whole requests a second or a minute.
func (f *findings) heldRate(path string, r Rate) {
	minutes := r.Micro * int64(time.Minute/max(r.Per, time.Second))
	switch {
	case r.Per > time.Minute || minutes < micro:
		f.errorf(path, ruleEdgeRate, "%s is too slow for NGINX, which counts by the second and by the minute; want 1/m or more, or the limit in limits, plans or a route, where the service holds it", r)
	case minutes%micro != 0:
		low := minutes / micro
		f.errorf(path, ruleEdgeRate, "%s is no whole number of requests a minute, and NGINX holds no other; want %d/m or %d/m", r, low, low+1)
	case minutes > maxEdgeRate*60*micro:
		f.errorf(path, ruleEdgeRate, "%s is more than NGINX could count; want at most %d/s", r, maxEdgeRate)
	}
}

func (f *findings) edgeConnections(path string, l *EdgeLimitSpec) {
	n, at := *l.Connections, field(path, "connections")
	switch {
	case n == 0:
		f.errorf(at, ruleEdgeNumber, "0 connections would let nobody in, and NGINX refuses it; want 1 to %d, or an access rule with deny", maxConnections)
	case n > maxConnections:
		f.errorf(at, ruleEdgeNumber, "%d connections are more than NGINX can count; want 1 to %d", n, maxConnections)
	case n < fewConnections && slices.ContainsFunc(l.Per, func(d Dim) bool { return d.Kind == DimIP }):
		f.warnf(at, ruleFewConns, "a browser needs more than %d: on HTTP/2 every open stream counts, and a page opens dozens at once; want %d or more, 50 for pages", n, fewConnections)
	}
}

// shared tells whether many clients have one counter.
func (l *EdgeLimitSpec) shared() bool {
	return len(l.Per) > 0 && !slices.ContainsFunc(l.Per, func(d Dim) bool {
		return d.Kind != DimGlobal && d.Kind != DimServer && d.Kind != DimRoute
	})
}

// checkZoneSize warns of zones that take more memory than somebody may have meant.
func checkZoneSize(p *Policy, f *findings) {
	if p.Edge == nil {
		return
	}
	var clients int64
	for _, l := range p.Edge.Limits {
		if l.Expect != nil {
			clients += min(int64(*l.Expect), maxCount/int64(len(p.Edge.Limits)))
		}
	}
	if megabytes := clients / clientsPerMegabyte; megabytes > maxZones {
		f.warnf("edge.limits", ruleZoneSize, "the zones of these limits take about %d MB of memory on each node; want smaller numbers in expect", megabytes)
	}
}
