package policies

// Policy is the file as it was written: every key of the language, defaults
// not yet applied, references not yet resolved. Parse and Load make it,
// Validate checks it, Compile turns it into what the rest of Sluice uses.
//
// The order of the fields is the order that Format gives to the keys of a file.
//
// Maps are keyed by the names that the file gives; their order carries no
// meaning. A pointer or an empty string means that the key is absent.
type Policy struct {
	Version       int                `yaml:"version"`
	Mode          Mode               `yaml:"mode"`
	ClientIP      *ClientIPSpec      `yaml:"client_ip"`
	Identity      *IdentitySpec      `yaml:"identity"`
	Edge          *EdgeSpec          `yaml:"edge"`
	Limits        map[Name]LimitSpec `yaml:"limits"`
	Plans         map[Name]PlanSpec  `yaml:"plans"`
	Tenants       []TenantSpec       `yaml:"tenants"`
	TenantFiles   []string           `yaml:"tenant_files"`
	Routes        []RouteSpec        `yaml:"routes"`
	Responses     *ResponsesSpec     `yaml:"responses"`
	Notifications []NotificationSpec `yaml:"notifications"`

	// sources are the YAML trees behind the fields, the policy's own first and
	// then one for each tenant file: where a finding is looked up.
	sources sources
	// keySets are what the jwks_files hold, by their names.
	keySets map[FileName][]VerifyKey
}

// ClientIPSpec says who may name the client's address, and how large one client is.
type ClientIPSpec struct {
	TrustedProxies List[Network] `yaml:"trusted_proxies"`
	Header         HeaderName    `yaml:"header"` // X-Forwarded-For by default; ProxyProtocol is the one word that is no header
	Direct         Direct        `yaml:"direct"`
	IPv6Prefix     *int          `yaml:"ipv6_prefix"` // 48..128, 64 by default
}

// ProxyProtocol is the value of client_ip.header that means the PROXY protocol.
const ProxyProtocol HeaderName = "proxy_protocol"

// IdentitySpec says which credentials count and what happens without one.
type IdentitySpec struct {
	Sources  []SourceSpec `yaml:"sources"`
	Missing  *Fallback    `yaml:"missing"`
	Invalid  *Fallback    `yaml:"invalid"`
	Unlisted *Fallback    `yaml:"unlisted"`
}

// SourceSpec is one place a credential may be in: exactly one field is set.
type SourceSpec struct {
	APIKey      *APIKeySpec      `yaml:"api_key"`
	JWT         *JWTSpec         `yaml:"jwt"`
	ClientCert  *ClientCertSpec  `yaml:"client_cert"`
	AuthRequest *AuthRequestSpec `yaml:"auth_request"`
}

// APIKeySpec finds an API key in exactly one of a header, a query parameter or a cookie.
type APIKeySpec struct {
	Header HeaderName `yaml:"header"`
	Query  ParamName  `yaml:"query"`
	Cookie ParamName  `yaml:"cookie"`
	Scheme Token      `yaml:"scheme"` // with Header only; cut off, compared without regard to case
	Prefix Prefix     `yaml:"prefix"` // without it in front the value is not ours
}

// JWTSpec finds and checks a signed token.
type JWTSpec struct {
	Header      HeaderName `yaml:"header"`
	Query       ParamName  `yaml:"query"`
	Cookie      ParamName  `yaml:"cookie"`
	JWKSFile    FileName   `yaml:"jwks_file"`
	Issuer      Text       `yaml:"issuer"`
	Audience    Text       `yaml:"audience"`
	TenantClaim Claim      `yaml:"tenant_claim"`
	UserClaim   Claim      `yaml:"user_claim"`
	ScopeClaim  Claim      `yaml:"scope_claim"`
	PlanClaim   Claim      `yaml:"plan_claim"`
	Leeway      *Duration  `yaml:"leeway"`
}

// ClientCertSpec takes the SHA-256 of the certificate that NGINX verified.
type ClientCertSpec struct{}

// AuthRequestSpec chains the site's own authenticator.
type AuthRequestSpec struct {
	Location     Path       `yaml:"location"`
	UserHeader   HeaderName `yaml:"user_header"`
	TenantHeader HeaderName `yaml:"tenant_header"`
}

// Fallback is what a request without a good credential gets: a plan, or a
// refusal with a status (401 or 403). Exactly one field is set.
type Fallback struct {
	Plan Name    `yaml:"plan"`
	Deny *Status `yaml:"deny"`
}

// EdgeSpec is what NGINX decides by itself.
type EdgeSpec struct {
	Access []AccessSpec           `yaml:"access"`
	Limits map[Name]EdgeLimitSpec `yaml:"limits"`
	Nodes  *int                   `yaml:"nodes"` // 1..1000, 1 by default
}

// AccessSpec is one access rule: exactly one of Exempt, Allow, Deny is set.
type AccessSpec struct {
	Name   Name      `yaml:"name"`
	Exempt *Clients  `yaml:"exempt"`
	Allow  *Clients  `yaml:"allow"`
	Deny   *Clients  `yaml:"deny"`
	Status *Status   `yaml:"status"` // with Deny: 400..499, 403 by default
	Mode   LimitMode `yaml:"mode"`
	Routes []Name    `yaml:"routes"`
	When   *WhenSpec `yaml:"when"`
}

// Clients names clients by lists; any entry of any list fits. In the file it
// is a mapping of lists, or the word `all`, which sets All.
type Clients struct {
	All        bool            `yaml:"-"`
	CIDRs      List[Network]   `yaml:"cidrs"`
	Countries  List[Country]   `yaml:"countries"`
	Continents List[Continent] `yaml:"continents"`
	Groups     List[Group]     `yaml:"groups"`
	ASNs       List[ASN]       `yaml:"asns"`
	UserAgents List[Regex]     `yaml:"user_agents"`
}

// WhenSpec names requests: every line must hold.
type WhenSpec struct {
	Methods []Method                 `yaml:"methods"`
	Headers map[HeaderName]Condition `yaml:"headers"`
	Cookies map[ParamName]Condition  `yaml:"cookies"`
	Query   map[ParamName]Condition  `yaml:"query"`
}

// Condition is what a header, cookie or parameter must be: the word `present`
// or `absent`, a regular expression, or a list of them of which one must fit.
type Condition struct {
	Present bool
	Absent  bool
	Regexes []Regex
}

// EdgeLimitSpec is one limit of NGINX: exactly one of Rate and Connections is set.
type EdgeLimitSpec struct {
	Per         Per       `yaml:"per"`
	Only        *Clients  `yaml:"only"`
	Except      *Clients  `yaml:"except"`
	Rate        *Rate     `yaml:"rate"`
	Burst       *Count    `yaml:"burst"`
	Connections *Count    `yaml:"connections"`
	Expect      *Count    `yaml:"expect"`
	Delay       *Delay    `yaml:"delay"`
	Routes      []Name    `yaml:"routes"`
	When        *WhenSpec `yaml:"when"`
	Mode        LimitMode `yaml:"mode"`
}

// LimitSpec is one limit of the service. Of Rate, Window, Quota, Concurrency
// and Retries exactly one is set, but in a plan that extends another it may
// also say only what it changes.
type LimitSpec struct {
	Per Per `yaml:"per"`

	Rate    *Rate     `yaml:"rate"`
	Burst   *Count    `yaml:"burst"`
	Wait    *Duration `yaml:"wait"`
	Sync    Sync      `yaml:"sync"`
	Reserve *Reserve  `yaml:"reserve"`

	Window    *Window   `yaml:"window"`
	Algorithm Algorithm `yaml:"algorithm"`

	Quota      *Quota     `yaml:"quota"`
	Timezone   Timezone   `yaml:"timezone"`
	AnchorDay  *int       `yaml:"anchor_day"`
	Accounting Accounting `yaml:"accounting"`
	Overage    *Count     `yaml:"overage"`
	Notify     []Share    `yaml:"notify"`

	Concurrency *Count    `yaml:"concurrency"`
	Lease       *Duration `yaml:"lease"`

	Retries *Rate `yaml:"retries"`

	Count *CountRule `yaml:"count"`
	// Status of a denial: 402, 403 or 429.
	Status *Status   `yaml:"status"`
	Mode   LimitMode `yaml:"mode"`
}

// Reserve keeps a share of a bucket for higher priorities.
type Reserve struct {
	High   *Percent `yaml:"high"`
	Normal *Percent `yaml:"normal"`
}

// PlanSpec is a named set of limits.
type PlanSpec struct {
	Extends  Name               `yaml:"extends"`
	Priority Priority           `yaml:"priority"`
	Limits   map[Name]LimitSpec `yaml:"limits"`
}

// TenantSpec is one organisation.
type TenantSpec struct {
	ID         Name                  `yaml:"id"`
	Name       Text                  `yaml:"name"`
	Plan       Name                  `yaml:"plan"`
	Disabled   bool                  `yaml:"disabled"`
	Claim      Text                  `yaml:"claim"`
	CIDRs      List[Network]         `yaml:"cidrs"`
	Keys       []KeySpec             `yaml:"keys"`
	CertSHA256 []SHA256              `yaml:"cert_sha256"`
	Overrides  map[Name]OverrideSpec `yaml:"overrides"`
	Grants     []GrantSpec           `yaml:"grants"`
}

// KeySpec is one API key, known by its hash alone.
type KeySpec struct {
	ID       Name          `yaml:"id"`
	SHA256   SHA256        `yaml:"sha256"`
	Plan     Name          `yaml:"plan"`
	CIDRs    List[Network] `yaml:"cidrs"`
	Simulate Name          `yaml:"simulate"`
	Disabled bool          `yaml:"disabled"`
}

// OverrideSpec changes the numbers of a limit of the tenant's plan, and nothing else.
type OverrideSpec struct {
	Rate        *Rate     `yaml:"rate"`
	Burst       *Count    `yaml:"burst"`
	Wait        *Duration `yaml:"wait"`
	Window      *Window   `yaml:"window"`
	Quota       *Quota    `yaml:"quota"`
	Overage     *Count    `yaml:"overage"`
	Concurrency *Count    `yaml:"concurrency"`
	Retries     *Rate     `yaml:"retries"`
}

// GrantSpec adds units to a quota for some days, both ends included.
type GrantSpec struct {
	Limit  Name   `yaml:"limit"`
	Add    *Count `yaml:"add"`
	From   Date   `yaml:"from"`
	Until  Date   `yaml:"until"`
	Reason Text   `yaml:"reason"`
}

// RouteSpec is a named set of requests.
type RouteSpec struct {
	Name        Name               `yaml:"name"`
	Match       *MatchSpec         `yaml:"match"`
	Exempt      bool               `yaml:"exempt"`
	Service     *bool              `yaml:"service"`
	Cost        *Count             `yaml:"cost"`
	CostFrom    *CostFromSpec      `yaml:"cost_from"`
	OnStoreDown FailMode           `yaml:"on_store_down"`
	Plans       []Name             `yaml:"plans"`
	Limits      map[Name]LimitSpec `yaml:"limits"`
}

// MatchSpec says which requests: exactly one of Exact, Prefix, Regex is set.
type MatchSpec struct {
	Hosts   []Host   `yaml:"hosts"`
	Exact   Path     `yaml:"exact"`
	Prefix  Path     `yaml:"prefix"`
	Regex   *Regex   `yaml:"regex"`
	Methods []Method `yaml:"methods"`
}

// CostFromSpec settles the cost of a request when it has ended: exactly one
// of ResponseHeader and Report is set.
type CostFromSpec struct {
	ResponseHeader HeaderName `yaml:"response_header"`
	Report         *Duration  `yaml:"report"`
	Max            *Count     `yaml:"max"`
}

// ResponsesSpec is what clients see.
type ResponsesSpec struct {
	Headers          []Dialect         `yaml:"headers"`
	RetryAfterJitter *Percent          `yaml:"retry_after_jitter"`
	Body             BodyFormat        `yaml:"body"`
	Messages         map[Language]Text `yaml:"messages"`
	SupportURL       URL               `yaml:"support_url"`

	// MessageOrder is the languages of Messages as the file has them: the first
	// is the default.
	MessageOrder []Language `yaml:"-"`
}

// NotificationSpec is one receiver of events.
type NotificationSpec struct {
	Webhook   URL     `yaml:"webhook"`
	SecretEnv EnvName `yaml:"secret_env"`
}
