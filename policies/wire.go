package policies

// What NGINX's rendered configuration and the service must agree on, to the
// letter. See DESIGN.md, section 3.

// Request headers from NGINX to the service.
const (
	HeaderMethod  = "X-Sluice-Method"
	HeaderURI     = "X-Sluice-Uri"
	HeaderHost    = "X-Sluice-Host"
	HeaderIP      = "X-Sluice-Ip"
	HeaderRequest = "X-Sluice-Request"
	HeaderPolicy  = "X-Sluice-Policy"
	HeaderExempt  = "X-Sluice-Exempt"
	// HeaderCert is the client's certificate as PEM, escaped as a part of a URI,
	// when NGINX has verified it: sent when the policy names client_cert.
	HeaderCert         = "X-Sluice-Cert"
	HeaderQueryPrefix  = "X-Sluice-Query-"
	HeaderCookiePrefix = "X-Sluice-Cookie-"
	// HeaderRetry is 1 when the client says that this is a retry, and
	// HeaderIdempotency its Idempotency-Key: sent when a limit counts retries.
	HeaderRetry       = "X-Sluice-Retry"
	HeaderIdempotency = "X-Sluice-Idempotency"
	// HeaderServer is the name of NGINX's server, not what the client calls it:
	// sent when a limit of the service counts by it.
	HeaderServer = "X-Sluice-Server"
	// HeaderValuePrefix carries a client's header that a `per` of the policy
	// counts by, under a name of ours: it is a counter's subject, no credential.
	HeaderValuePrefix = "X-Sluice-Header-"
)

// What the site's own authenticator said, from the rendered server that asks it
// to the service: HeaderLogin is 1 when it let the request pass.
const (
	HeaderLogin       = "X-Sluice-Login"
	HeaderLoginUser   = "X-Sluice-Login-User"
	HeaderLoginTenant = "X-Sluice-Login-Tenant"
)

// Response headers from the service to NGINX.
const (
	HeaderDecision = "X-Sluice-Decision" // allow or deny
	HeaderStatus   = "X-Sluice-Status"   // the true status of a denial that is not 401
	HeaderLimit    = "X-Sluice-Limit"
	HeaderReason   = "X-Sluice-Reason"
	HeaderTenant   = "X-Sluice-Tenant"
	HeaderPlan     = "X-Sluice-Plan"
	HeaderPriority = "X-Sluice-Priority"
	HeaderDegraded = "X-Sluice-Degraded" // 1 when the fail mode decided
)

// InvalidCredential is what NGINX sends in place of a credential that its map
// refuses: it was shown, and cannot be good.
const InvalidCredential = "!"

// Limits of what NGINX passes on, in bytes. A longer API key or token is invalid;
// a longer value of a `per` counts by address, as if it were missing. A token
// fits into a header as large as NGINX takes by default.
const (
	MaxCredential = 512
	MaxToken      = 8000
	MaxValue      = 200
)

// AuthPrefix is where the internal locations live: AuthPrefix + mode + "/" +
// route. No route of a policy may lie below it.
const AuthPrefix = "/_sluice/"

// AuthPath is the subrequest's URI for a route that fails open or closed.
func AuthPath(mode FailMode, route string) string {
	if mode == FailClosed {
		return AuthPrefix + "closed/" + route
	}
	return AuthPrefix + "open/" + route
}

// DenyStatuses are the statuses a denial can have at the client, apart from
// 401 and from the 4xx that access rules choose.
func DenyStatuses() []int { return []int{402, 403, 429, 451, 503} }
