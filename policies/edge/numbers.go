package edge

import (
	"time"

	"sluice/policies"
)

// Bucket is a rate as limit_req has it.
type Bucket struct {
	// Requests in each second, or in each minute: rate=10r/s, rate=10r/m.
	Requests int64
	Minute   bool
	// Burst is NGINX's: how many fit besides the one that is always served; 0 for none.
	Burst int64
	// NoDelay lets the whole burst pass at once, and Delay so many of it, 0 for none:
	// the others are held until the rate allows them.
	NoDelay bool
	Delay   int64
}

// BucketOf is the bucket of an edge limit that is a rate. It is false when NGINX
// cannot have that rate, which no checked policy has.
func BucketOf(l *policies.EdgeLimit) (b Bucket, ok bool) {
	b = Bucket{Requests: l.Rate.Micro / 1e6, Minute: l.Rate.Per == time.Minute}
	ok = l.Rate.Micro > 0 && l.Rate.Micro%1e6 == 0 && (b.Minute || l.Rate.Per == time.Second)
	if l.Burst <= 1 {
		return b, ok
	}
	b.Burst = l.Burst - 1
	switch {
	case l.Delay.All || l.Delay.N == 1:
	case l.Delay.N == 0 || l.Delay.N >= l.Burst:
		b.NoDelay = true
	default:
		b.Delay = l.Delay.N - 1
	}
	return b, ok
}

// PerSecond is the rate in thousandths of a request each second, rounded down as
// NGINX rounds it: 7r/m is 116.
func (b Bucket) PerSecond() int64 {
	if b.Minute {
		return b.Requests * 1000 / 60
	}
	return b.Requests * 1000
}

// RetryAfter is when one more request fits, in whole seconds, at least 1. It is
// what clients are told that an edge rate refused.
func RetryAfter(r policies.Rate) int64 {
	if r.Micro <= 0 {
		return 1
	}
	seconds := int64(r.Per / time.Second)
	return max(1, (seconds*1e6+r.Micro-1)/r.Micro)
}

// RouteRetry is what clients of a route are told to wait, in seconds, when one of
// its rates refused: NGINX does not say which of them did.
func RouteRetry(c *policies.Compiled, r *policies.Route) int64 {
	retry := int64(1)
	for _, i := range r.Edge {
		if l := &c.Edge[i]; l.Connections == 0 {
			retry = max(retry, RetryAfter(l.Rate))
		}
	}
	return retry
}

// OnlyLimit is the name of the route's one rate, or of its one limit on
// connections: clients are told it. Empty when there are several, of which NGINX
// does not say which refused.
func OnlyLimit(c *policies.Compiled, r *policies.Route, connections bool) string {
	name, n := "", 0
	for _, i := range r.Edge {
		if l := &c.Edge[i]; (l.Connections > 0) == connections {
			name, n = l.Name, n+1
		}
	}
	if n > 1 {
		return ""
	}
	return name
}

// MaxJoined is the longest key with several values of a client in it, in bytes:
// limit_conn does not limit keys of more than 255 bytes at all. The address
// stands in for a longer one.
const MaxJoined = 250

// KeyDims puts the address first and the client's own values last, and leaves
// `global` out beside others; the order of dimensions means nothing.
func KeyDims(per policies.Per) []policies.Dim {
	rank := func(d policies.Dim) int {
		switch d.Kind {
		case policies.DimIP:
			return 0
		case policies.DimHeader, policies.DimCookie, policies.DimQuery:
			return 2
		}
		return 1
	}
	var out []policies.Dim
	for want := range 3 {
		for _, d := range per {
			if rank(d) == want && (d.Kind != policies.DimGlobal || len(per) == 1) {
				out = append(out, d)
			}
		}
	}
	return out
}

// Asks tells whether the location that a route is in asks the service: routes
// that share a match share the location.
func Asks(c *policies.Compiled, r *policies.Route) bool {
	asked := r.Asked
	for i := range c.Routes {
		if o := &c.Routes[i]; o.SameMatch(r) && meet(r, o) {
			asked = asked || o.Asked
		}
	}
	return asked && !r.Exempt
}

// meet tells whether two routes can be in one server.
func meet(r, o *policies.Route) bool {
	if len(r.Hosts) == 0 || len(o.Hosts) == 0 {
		return true
	}
	for _, h := range r.Hosts {
		if o.TakesHost(h) {
			return true
		}
	}
	for _, h := range o.Hosts {
		if r.TakesHost(h) {
			return true
		}
	}
	return false
}

// ServiceDims are the dimensions of all limits of the service, each once, in
// the order of the compiled policy: what NGINX must send of a request.
func ServiceDims(c *policies.Compiled) []policies.Dim {
	var dims []policies.Dim
	seen := map[string]bool{}
	add := func(limits []policies.Limit) {
		for _, l := range limits {
			for _, d := range l.Per {
				id := string(d.Kind) + "\x00" + d.Name
				if !seen[id] {
					seen[id] = true
					dims = append(dims, d)
				}
			}
		}
	}
	add(c.Limits)
	for i := range c.Plans {
		add(c.Plans[i].Limits)
	}
	for i := range c.Routes {
		add(c.Routes[i].Limits)
	}
	return dims
}

// LimitHeaders are the headers that tell clients of limits.
func LimitHeaders(dialects []policies.Dialect) []string {
	var names []string
	seen := map[string]bool{}
	add := func(list ...string) {
		for _, n := range list {
			if !seen[n] {
				seen[n] = true
				names = append(names, n)
			}
		}
	}
	for _, d := range dialects {
		switch d {
		case policies.DialectRateLimit, policies.DialectRateLimit12:
			add("RateLimit", "RateLimit-Policy")
		case policies.DialectRateLimit3:
			add("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
		case policies.DialectXRateLimit:
			add("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
		}
	}
	return names
}
