package policies

import (
	"net/netip"
	"regexp"
	"time"
)

// The scalar types of the language. Each is read from the text of a YAML
// scalar by its UnmarshalText, which refuses what the type must not hold, so a
// value that exists is a good one. The zero value means absent.

// Name names a limit, plan, tenant, key, rule or route: a letter or digit, then
// up to 63 letters, digits, dots, dashes and underscores.
type Name string

// Text is one line or more of free text without control characters other than newline.
type Text string

// Path is an absolute URL path as NGINX matches it: decoded, normalised, no query.
type Path string

// HeaderName is an HTTP field name as NGINX can read it: letters, digits and dashes.
type HeaderName string

// ParamName is the name of a query parameter or cookie: letters, digits, _ and -.
type ParamName string

// Token is an HTTP token, such as an authentication scheme.
type Token string

// Prefix is the fixed beginning of API keys: visible ASCII without quotes.
type Prefix string

// FileName is a path of a file, relative to the policy's directory or absolute.
type FileName string

// Claim is the name of a claim in a token.
type Claim string

// Method is an HTTP method in capital letters.
type Method string

// Host is a host name in lower case, or one with `*.` in front.
type Host string

// Language is a language tag such as en or pt-BR.
type Language string

// URL is an absolute http or https URL.
type URL string

// EnvName is the name of an environment variable.
type EnvName string

// Timezone is a name of the IANA database.
type Timezone string

// Status is an HTTP status, 400 to 599; where it stands narrows it further.
type Status int

// Count is a whole number of units or things, 0 to 2^53.
type Count int64

// Percent is a share of a hundred: 0 to 100.
type Percent int

// Share is a step of a quota at which to notify: 1 to 100.
type Share int

// Duration is a length of time, more than zero: 250ms, 30s, 15m, 1h, 1d, 1w.
type Duration time.Duration

// Date is a day of the calendar, written 2006-01-02.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// Rate is so many micro-units in each Per; 100/s is {100e6, time.Second}.
type Rate struct {
	Micro int64 // 1 and more
	Per   time.Duration
}

// Window is at most Limit units in each Length.
type Window struct {
	Limit  int64
	Length time.Duration
}

// Quota is at most Limit units in each calendar Period.
type Quota struct {
	Limit     int64
	Unlimited bool
	Period    Period
}

// Delay shapes the excess of an edge limit: none of it, all of it, or all after
// the first N requests.
type Delay struct {
	All bool
	N   int64 // with All unset; 0 means none
}

// CountRule says what a limit counts. Statuses, when there are any, are exact
// (401) or classes (4 for 4xx).
type CountRule struct {
	Requests bool // 1 for each request, whatever its cost
	Statuses []int
}

// Network is a prefix of addresses, IPv4 unwrapped, no host bits set, or the
// word `private`.
type Network struct {
	Prefix  netip.Prefix
	Private bool
}

// Country is an ISO 3166-1 alpha-2 code in capitals, or UnknownCountry.
type Country string

// UnknownCountry is a public address that the database lacks.
const UnknownCountry Country = "unknown"

// Continent is one of AF AN AS EU NA OC SA.
type Continent string

// Group is a named set of countries; there is one: eu_members.
type Group string

// ASN is the number of an autonomous system, 1 to 2^32-1; 0 is the word `unknown`.
type ASN uint32

// SHA256 is a hash, written as 64 hexadecimal digits.
type SHA256 [32]byte

// Regex is a regular expression that NGINX and Go both read, and read alike.
type Regex struct {
	Source string
	// Go is the expression for subjects that Latin1 has widened, so that it sees
	// single bytes as PCRE does, and with a final $ that is the very end.
	Go *regexp.Regexp
}

// Enumerations. The empty string is absent; Compile puts in the default.
type (
	Mode       string
	LimitMode  string
	Direct     string
	FailMode   string
	Sync       string
	Algorithm  string
	Accounting string
	Period     string
	Priority   string
	Dialect    string
	BodyFormat string
)

// The words of the enumerations.
const (
	ModeEnforce  Mode = "enforce"
	ModeShadow   Mode = "shadow"
	ModeDisabled Mode = "disabled"

	LimitEnforce LimitMode = "enforce"
	LimitShadow  LimitMode = "shadow"

	DirectAllow Direct = "allow"
	DirectDeny  Direct = "deny"

	FailOpen   FailMode = "open"
	FailClosed FailMode = "closed"
	FailLocal  FailMode = "local"

	SyncLeased Sync = "leased"

	AlgorithmSliding Algorithm = "sliding"
	AlgorithmFixed   Algorithm = "fixed"
	AlgorithmLog     Algorithm = "log"

	AccountingHard Accounting = "hard"
	AccountingSoft Accounting = "soft"

	PeriodHour  Period = "hour"
	PeriodDay   Period = "day"
	PeriodWeek  Period = "week"
	PeriodMonth Period = "month"

	PriorityLow    Priority = "low"
	PriorityNormal Priority = "normal"
	PriorityHigh   Priority = "high"

	DialectRateLimit   Dialect = "ratelimit"    // draft 11: RateLimit-Policy and RateLimit, q and w, r and t
	DialectRateLimit12 Dialect = "ratelimit-12" // draft 12
	DialectRateLimit3  Dialect = "ratelimit-3"  // RateLimit-Limit, -Remaining, -Reset
	DialectXRateLimit  Dialect = "x-ratelimit"  // X-RateLimit-Limit, -Remaining, -Reset (epoch)

	BodyProblem BodyFormat = "problem+json"
	BodyJSON    BodyFormat = "json"
	BodyText    BodyFormat = "text"
)

// Per is what a limit counts by: one dimension or several together.
type Per []Dim

// Dim is one dimension of a counter.
type Dim struct {
	Kind    DimKind
	Name    string // of the header, cookie or parameter
	Capture *Regex // of a parameter: the part that its first group takes
}

// DimKind is a kind of dimension, spelled as in the file.
type DimKind string

// The dimensions. Key, tenant, user and scope are the service's alone.
const (
	DimIP      DimKind = "ip"
	DimCountry DimKind = "country"
	DimASN     DimKind = "asn"
	DimServer  DimKind = "server"
	DimRoute   DimKind = "route"
	DimGlobal  DimKind = "global"
	DimHeader  DimKind = "header"
	DimCookie  DimKind = "cookie"
	DimQuery   DimKind = "query"
	DimKey     DimKind = "key"
	DimTenant  DimKind = "tenant"
	DimUser    DimKind = "user"
	DimScope   DimKind = "scope"
)

// List is a list in which an entry may also be {file: F}: a file with one
// entry a line.
type List[T any] []Entry[T]

// Entry is one entry of a List: a value, or a file and the values it holds.
type Entry[T any] struct {
	Value T
	File  FileName // set when the entry is a file
	Items []Item[T]
}

// Item is a value read from a list file.
type Item[T any] struct {
	Value T
	Line  int `json:"-"` // in that file, from 1; no part of what the policy means
}

// All returns the values of a list in order, those of its files in their place.
func (l List[T]) All() []T {
	var all []T
	for _, e := range l {
		if e.File == "" {
			all = append(all, e.Value)
			continue
		}
		for _, it := range e.Items {
			all = append(all, it.Value)
		}
	}
	return all
}
