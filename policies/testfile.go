package policies

import (
	"net/netip"
	"path/filepath"
	"time"
)

// TestFile is a file of policy tests: requests at times, and what is to become
// of them. LoadTests reads it; Check holds it against its policy.
type TestFile struct {
	Policy FileName   `yaml:"policy"` // relative to this file; policy.yaml when left out
	Start  Instant    `yaml:"start"`  // what 0s is in tests that do not say it themselves
	Tests  []TestSpec `yaml:"tests"`

	name    string
	sources sources
}

// TestSpec is one test: it begins with all counters empty.
type TestSpec struct {
	Name     Text          `yaml:"name"`
	Start    Instant       `yaml:"start"` // what 0s is here
	Requests []TestRequest `yaml:"requests"`

	Pos Pos `yaml:"-"`
}

// TestRequest is one request, or several that are alike.
type TestRequest struct {
	At      *Offset   `yaml:"at"`      // when it comes; left out: when the one before began to come
	Times   *Count    `yaml:"times"`   // so many of them, 1 when left out
	Every   *Duration `yaml:"every"`   // one after the other; left out: all at once
	Clients *Count    `yaml:"clients"` // from so many addresses, counted up from IP; each sends Times

	IP      *Address `yaml:"ip"`   // the client; 203.0.113.1 when left out
	Peer    *Address `yaml:"peer"` // who connects, when it is not the client himself
	Country Country  `yaml:"country"`
	ASN     ASN      `yaml:"asn"`

	Key    Name           `yaml:"key"`    // the id of a key, whose credential it shows
	Tenant Name           `yaml:"tenant"` // a tenant who is logged in
	User   Text           `yaml:"user"`   // his user
	JWT    map[Claim]Text `yaml:"jwt"`    // the claims of a good token

	Method  Method              `yaml:"method"` // GET when left out
	URL     Target              `yaml:"url"`
	Host    Host                `yaml:"host"`
	Headers map[HeaderName]Text `yaml:"headers"`

	Takes   *Duration  `yaml:"takes"`   // how long the application needs; left out: no time
	Answers TestStatus `yaml:"answers"` // what it answers, 200 when left out
	Costs   *Count     `yaml:"costs"`   // what the request has cost in the end, for a route with cost_from

	Expect *ExpectSpec `yaml:"expect"`

	Pos Pos `yaml:"-"`
}

// ExpectSpec is what is to become of a request: all that is said must hold, of
// each of several requests alike.
type ExpectSpec struct {
	Status     TestStatus          `yaml:"status"`
	Limit      Name                `yaml:"limit"`  // the limit or access rule that refuses
	Reason     ReasonWord          `yaml:"reason"` // why
	By         DeciderWord         `yaml:"by"`     // who refuses
	Remaining  map[Name]Count      `yaml:"remaining"`
	RetryAfter *Count              `yaml:"retry_after"` // seconds; 0: no such header
	Delay      *Offset             `yaml:"delay"`       // for how long it is held, at the edge and in the service
	Headers    map[HeaderName]Text `yaml:"headers"`     // a value, or present, or absent
	Route      Name                `yaml:"route"`
	Plan       Name                `yaml:"plan"`
	Tenant     Name                `yaml:"tenant"`
	Shadow     ReasonWord          `yaml:"shadow"`  // why it would be refused, but for a mode: shadow
	Allowed    *Count              `yaml:"allowed"` // how many of all these requests pass

	Pos Pos `yaml:"-"`
}

// Offset is a time since the beginning, 0s or a Duration.
type Offset time.Duration

// Instant is a moment, written 2026-12-01T09:00:00Z. The zero Instant is none.
type Instant time.Time

// Address is the address of a client.
type Address netip.Addr

// Target is what a request asks for: a path with its query, or a whole URL.
type Target string

// TestStatus is a status of HTTP, 100 to 599. 0 is none.
type TestStatus int

// ReasonWord is one of Reasons.
type ReasonWord string

// DeciderWord says who refuses: nginx, access, edge, service, or login, which is the
// site's own authenticator.
type DeciderWord string

// PolicyFile is the path of the policy that the file tests.
func (f *TestFile) PolicyFile() string {
	name := f.Policy
	if name == "" {
		name = "policy.yaml"
	}
	if filepath.IsAbs(string(name)) {
		return string(name)
	}
	return filepath.Join(f.sources.dir, string(name))
}

// Name is the name of the file, as it was opened.
func (f *TestFile) Name() string { return f.name }
