package gen

// The views are what templates see: tokens, booleans, numbers, and lists and
// groups of them. A test walks these types and fails on anything else, so a
// policy's words can reach a file only through the constructors of tokens.

// block is one map or geo block.
type block struct {
	From     Token // the place of the policy that it comes from, as in the other views; empty: none
	Comments []Token
	Kind     Token // map or geo
	Source   Token // empty: a geo of the client's address
	Variable Token
	Volatile bool
	Entries  []entry
}

// entry is one line of a block.
type entry struct {
	From       Token
	Key, Value Token
	Comment    Token // empty: none
}

// header is one header that is set, by a value or a variable.
type header struct {
	Name, Value Token
}

// peer is one address of an upstream.
type peer struct{ Address Token }

// zone is the shared memory of one edge limit.
type zone struct {
	From     Token
	Comments []Token
	Rate     Token // empty: it counts connections
	Key      Token
	Name     Token
	Size     Token
}

// clientView is for real_ip.conf.
type clientView struct {
	From          Token
	Stamp         Token
	Trusted       []Token
	Header        Token
	ProxyProtocol bool
}

// httpView is for http.conf.
type httpView struct {
	Stamp     Token
	Defaults  []Token // variables without the dollar
	Client    []block
	Values    []block
	Geo       []block // where clients are
	Access    []block
	Keys      []block
	Zones     []zone
	ZoneTotal Token // empty: no zone
	Asked     bool
	Answers   []block // what the service answered, kept over the passes of a request
	Authz     []peer
	Sent      []block // what the service is told
	Deny      denyCache
	Login     login
	Denials   []block
	App       []peer
	Costs     []header // what tells the cost of a request: a header, and what holds it
}

// varsView is for vars.conf.
type varsView struct {
	Stamp Token
	Vars  []header // the variable, without the dollar, and what it is set to
}

// askView is for ask.conf, the body of the internal locations.
type askView struct {
	Stamp   Token
	Headers []header
	Timeout Token
	Deny    denyCache // without a key: denials are not kept
	Login   bool      // an authenticator is chained
}

// cacheView is for cache.conf and no_cache.conf.
type cacheView struct {
	Stamp Token
	Deny  denyCache
}

// serverView is for server.conf.
type serverView struct {
	Stamp  Token
	Asked  bool
	Cached bool // denials are kept
	Login  bool // an authenticator is chained
	Pages  []page
}

// page is one named location that answers with a denial.
type page struct {
	Location Token
	Status   Token
	Body     Token
}

// appView is for app.conf.
type appView struct {
	Stamp   Token
	Defined bool // the upstream is ours
}

// headersView is for headers.conf and proxy_headers.conf.
type headersView struct {
	Stamp   Token
	Headers []header
}

// routeView is for one file of routes/.
type routeView struct {
	From     Token
	Stamp    Token
	Name     Token
	Comments []Token

	Close      bool // some access rule closes the connection
	Refuse     Token
	Exempt     Token
	Would      Token
	Rule       Token // the access rule that decides, for the log
	Route      Token // told to edge limits that count by route
	Retry      Token
	RateLimit  Token // the one limit of its kind, else empty
	ConnLimit  Token
	Limits     []routeLimit
	DryRun     bool
	LimitsRate bool
	LimitsConn bool

	Ask  Token // the subrequest's URI; empty: the service is not asked
	Hide []Token
}

// routeLimit is one edge limit in a route: exactly one of Rate and Connections.
type routeLimit struct {
	From        Token
	Rate        bool
	Zone        Token
	Burst       Token // empty: none
	Delay       Token // nodelay, delay=N or empty
	Connections Token
	Comment     Token
}

// locationsView is for locations.conf and the files of locations/.
type locationsView struct {
	Stamp     Token
	Comments  []Token
	Locations []location
}

// location is one location block. A container holds no directive of ours, only
// other locations.
type location struct {
	From     Token
	Modifier Token // =, ~, ^~ or empty
	Match    Token
	Include  Token // the route's file; empty: a container
	Inner    []location
}

// logView is for log.conf.
type logView struct {
	Stamp     Token
	Datagrams []Token
}

// geoView is for a file of places, which a geo or map block includes.
type geoView struct {
	Stamp    Token
	Comments []Token
	Words    []entry
	Lines    Token // a line for each prefix
}

// nginxView is for the whole nginx.conf.
type nginxView struct {
	Stamp   Token
	Module  Token // loaded first; empty: none
	Names   Token // the size of the table of host names; empty: NGINX's own will do
	Listen  []Token
	Suffix  Token // after each address
	Ends    bool  // the service is told when requests end
	Servers []fullServer
}

// fullServer is one server of the whole nginx.conf.
type fullServer struct {
	From      Token
	Name      Token
	Default   bool
	Locations Token
}
