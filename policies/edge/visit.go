package edge

import (
	"net/netip"
	"time"

	"sluice/geo"
	"sluice/policies"
)

// Verdict is what NGINX makes of a request by itself.
type Verdict uint8

// The verdicts of the edge.
const (
	Passed   Verdict = iota // on to the service, or to the application
	Bad                     // 400: NGINX cannot read the target
	Access                  // an access rule refused
	EdgeRate                // limit_req did
	EdgeConn                // limit_conn did
)

// String is the word for a verdict that clients see as the reason of a denial;
// empty for Passed and Bad.
func (v Verdict) String() string {
	switch v {
	case Access:
		return "access"
	case EdgeRate:
		return "edge_rate"
	case EdgeConn:
		return "edge_conn"
	}
	return ""
}

// Visit is one request on its way. It is made to be used again after Leave; the
// zero value is ready.
type Visit struct {
	Request *Request
	// Trace, when it is not nil, is told every step. It costs time.
	Trace *Trace

	// Peer is who connected, and Trusted whether he may name the client.
	Peer    netip.Addr
	Trusted bool
	// Client is his address after trusted proxies, invalid when there is none, and
	// Counted the one client that limits take him for.
	Client  netip.Addr
	Counted netip.Prefix
	// Host is $host and Server $server_name.
	Host, Server string
	// Location is the route that names the location; nil: the site has none for it.
	Location *policies.Route
	// Rule is the access rule that decided, empty when none did; Would the one in
	// shadow that would have refused.
	Rule, Would string
	// Exempt tells that an access rule freed the client from all limits.
	Exempt bool
	// Refused is the status of a refusal by an access rule; 444 closes the connection.
	Refused int
	// Verdict is what Enter, and then Connect, came to. With Shadow a limit was
	// exceeded and the request passes all the same.
	Verdict Verdict
	Shadow  bool
	// Limit is the limit that was exceeded, and Wait the time until a rate has room
	// again; 0 for connections.
	Limit string
	Wait  time.Duration
	// Delay is how long limit_req holds the request, in whole milliseconds.
	Delay time.Duration

	place  geo.Place
	placed bool
	path   []byte
	keys   []byte
	taken  []taken
	held   []held
}

// Trace is what rules and limits said of a request, those that do not concern it
// included, in NGINX's order.
type Trace struct {
	Path  string // as locations are matched
	Rules []Rule
	Rates []Rate
	Conns []Conn
}

// reset makes v ready for another request and keeps its buffers.
func (v *Visit) reset() {
	*v = Visit{Request: v.Request, Trace: v.Trace, path: v.path[:0], keys: v.keys[:0], taken: v.taken[:0], held: v.held[:0]}
}

// Holds tells whether the visit counts in a limit on connections, which Leave
// will free.
func (v *Visit) Holds() bool { return len(v.held) > 0 }
