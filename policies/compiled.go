package policies

import (
	"net/netip"
	"time"
)

// Compiled is a policy that was checked and resolved: defaults applied, names
// turned into indexes and pointers, plans flattened. It is read-only, and the
// renderer and the service share it. Slices of names are sorted as people
// count (p2 before p10); routes, access rules and sources keep the file's order.
type Compiled struct {
	// Hash tells policies apart by what they mean for NGINX and the service: 16
	// hexadecimal digits over all but tenants, formatting and comments.
	Hash string
	Mode Mode

	Client    ClientRules
	Identity  *Identity // nil: nobody is identified
	Access    []AccessRule
	Edge      []EdgeLimit
	Nodes     int
	Limits    []Limit // for every request that the service is asked about
	Plans     []Plan
	Tenants   []Tenant
	Routes    []Route
	Responses Responses
	Webhooks  []Webhook // who is told of quotas and denials

	keys    map[SHA256]KeyRef // by the hash of the API key
	certs   map[SHA256]int    // tenants, by the hash of a certificate
	byClaim map[string]int    // tenants, by claim, or by id where there is none
	byName  map[string]int    // routes
	matcher matcher
	admits  admission
}

// ClientRules say who the client is.
type ClientRules struct {
	Trusted       []netip.Prefix
	Header        HeaderName // empty: there is no trusted proxy
	ProxyProtocol bool
	DenyDirect    bool
	IPv6Prefix    int
	// Lists are the files that Trusted came out of, in part.
	Lists []ListFile
}

// ListFile is a file with entries, as it was read.
type ListFile struct {
	Name    string // as the policy names it
	Entries int
}

// AccessVerdict is what an access rule says.
type AccessVerdict uint8

// The verdicts of access rules.
const (
	AccessAllow AccessVerdict = iota
	AccessExempt
	AccessDeny
)

// AccessRule is one access rule. Of those that concern a route the first that
// fits decides.
type AccessRule struct {
	Index   int // in Compiled.Access
	Name    string
	Verdict AccessVerdict
	Status  int // of a denial
	Shadow  bool
	Clients ClientSet
	When    *When
	Routes  []int // indexes of Compiled.Routes; nil: every route
}

// ClientSet is who a rule means: any entry that fits.
type ClientSet struct {
	All        bool
	Networks   []netip.Prefix // sorted, without doubles; `private` is PrivateNetworks in here
	UserAgents []*Regex

	// What takes a database to know: sorted, without doubles, groups spelled out.
	// Unknown is a public address that the database lacks.
	Countries      []Country
	Continents     []Continent
	ASNs           []ASN
	UnknownCountry bool
	UnknownASN     bool
}

// When is a condition on requests: all of its parts must hold.
type When struct {
	Methods []string
	Tests   []Test // sorted by carrier and name
}

// Test is a condition on one value of a request, empty when it is absent.
type Test struct {
	Carrier Carrier
	Name    string
	Present bool
	Absent  bool
	Regexes []*Regex // any of them
}

// EdgeLimit is one limit that NGINX holds: Rate or Connections. Its numbers are
// those of one node.
type EdgeLimit struct {
	Name        string
	Per         []Dim
	Rate        Rate // zero when it counts connections
	Burst       int64
	Delay       Delay
	Connections int64
	Expect      int64 // clients at a time, 0: not said
	Only        *ClientSet
	Except      *ClientSet
	When        *When
	Routes      []int // nil: every route
	Shadow      bool
}

// LimitKind is a kind of limit of the service.
type LimitKind string

// The kinds of limits.
const (
	KindRate        LimitKind = "rate"
	KindWindow      LimitKind = "window"
	KindQuota       LimitKind = "quota"
	KindConcurrency LimitKind = "concurrency"
	KindRetries     LimitKind = "retries"
)

// Limit is one limit of the service, complete.
type Limit struct {
	Name string
	// ID is the name and a short hash of what makes it another counter: kind,
	// per, count, where it is defined, and what a window's or a quota's time is.
	// Numbers are not in it.
	ID       string
	Kind     LimitKind
	Per      []Dim
	InPlan   bool // its counters belong to the tenant; else Per says all
	Shadow   bool
	Requests bool // a request costs 1, whatever its route
	// Statuses, when there are any, are those of the answers that count: exact
	// (401), or classes (4 for 4xx). The others are given back.
	Statuses []int
	Status   int // of a denial: 429, 402 or 403

	// A rate, and the retries of a retry budget: Burst of those is one period's.
	Rate    Rate
	Burst   int64
	Wait    time.Duration // how long a request may be held for tokens to come
	Reserve Shares        // of Burst, kept for higher priorities
	Leased  bool          // instances take shares ahead

	// A window.
	Window    Window
	Algorithm Algorithm

	// A quota.
	Quota     Quota
	Zone      *time.Location
	AnchorDay int // day of the month 1..31, or of the week 1..7 from Monday
	Overage   int64
	Soft      bool    // counted in memory, flushed in batches
	Grants    []Grant // the tenant's, sorted by their first day
	Notify    []int   // percents of the quota at which somebody is told, rising

	// A number of requests at a time.
	Concurrency int64
	Lease       time.Duration
}

// Shares are percents of a bucket that are kept: High for priority high, Normal
// for normal and high.
type Shares struct{ High, Normal int }

// Grant adds units to a quota from one day to another, both included, in the
// limit's time zone.
type Grant struct {
	Add         int64
	From, Until Date
}

// Plan is a plan with all that it inherited.
type Plan struct {
	Index    int
	Name     string
	Priority Priority
	Limits   []Limit // sorted by name
}

// Tenant is one tenant.
type Tenant struct {
	ID       string
	Plan     int
	Disabled bool
	Networks []netip.Prefix // its credentials count only from here; nil: from anywhere
	Claim    string         // what tokens and logins call it: its id where the file says nothing else
	Certs    []SHA256       // of its certificates, in DER
	Keys     []Key
	Limits   []Limit // its plan's, with its overrides
}

// Key is one API key of a tenant.
type Key struct {
	ID       string
	Hash     SHA256
	Plan     int // its own, or its tenant's
	Disabled bool
	Networks []netip.Prefix
	Simulate string  // the limit that it always meets, charging nothing; empty: none
	Limits   []Limit // those that hold for this key
}

// KeyRef finds a key: indexes of Compiled.Tenants and Tenant.Keys.
type KeyRef struct{ Tenant, Key int }

// MatchKind is how a route matches paths.
type MatchKind uint8

// The kinds of matches.
const (
	MatchExact  MatchKind = iota
	MatchPrefix           // whole segments: /v1 is /v1 and what begins with /v1/
	MatchRegex
)

// Route is one route.
type Route struct {
	Index   int
	Name    string
	Kind    MatchKind
	Path    string // of an exact match or a prefix; a prefix has no final slash but "/" itself
	Regex   *Regex
	Hosts   []string // empty: every host
	Methods []string // empty: every method

	Exempt bool
	// Asked tells whether NGINX asks the service about this route: not when it
	// is exempt, when the file says so, or when no rule of the service concerns it.
	Asked bool
	Cost  int64
	// CostHeader is the header of the application's answer that tells the true cost,
	// CostReport how long the application has to report it; both are zero where Cost
	// is the cost. CostMax bounds what is told.
	CostHeader  string
	CostReport  time.Duration
	CostMax     int64
	OnStoreDown FailMode
	Plans       []bool // by plan index; nil: every plan
	Limits      []Limit

	Access []int // of Compiled.Access, in order
	Edge   []int // of Compiled.Edge
}

// Responses is what clients see.
type Responses struct {
	Dialects   []Dialect
	Jitter     int // percent
	Body       BodyFormat
	Languages  []Language // the first is the default
	Messages   map[Language]string
	SupportURL string
}

// Webhook is one receiver of notifications.
type Webhook struct {
	URL       string // may hold a secret of the receiver's
	SecretEnv string // the environment variable with the secret that signs
}

// MaxWait is the longest that a request may be held.
const MaxWait = 2 * time.Second
