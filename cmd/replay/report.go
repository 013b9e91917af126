package replay

import (
	"strings"
	"time"

	"sluice/cmd/trial"
)

// How much of each list a report keeps, the largest first.
const (
	maxListed      = 50
	maxSuggestions = 100
	maxHeat        = 12 // routes, and groups
)

// Report is what a replay found. Times are UTC, counts are requests where they do
// not say otherwise.
type Report struct {
	// Policy and Against are the policies' names, for whoever prints the report.
	Policy  string `json:"policy"`
	Against string `json:"against,omitempty"`

	Log         LogFacts     `json:"log"`
	Verdicts    Verdicts     `json:"verdicts"`
	Denials     []Denial     `json:"denials"`
	WouldDeny   []Denial     `json:"would_deny,omitempty"` // but for mode: shadow
	Offenders   []Offender   `json:"offenders"`
	Routes      []Route      `json:"routes"`
	Unrouted    []Path       `json:"unrouted"`
	Unused      Unused       `json:"unused"`
	Suggestions []Suggestion `json:"suggestions"`
	Changes     *Changes     `json:"changes,omitempty"`
	Timeline    Timeline     `json:"timeline"`
	Heat        Heat         `json:"heat"`
	Notes       []string     `json:"notes"`
}

// LogFacts is what was read.
type LogFacts struct {
	Sources  int       `json:"sources"`
	Lines    int64     `json:"lines"`
	From     time.Time `json:"from"` // zero when nothing was replayed
	To       time.Time `json:"to"`
	Bad      []Bad     `json:"bad"` // lines that could not be read
	Repaired int64     `json:"repaired"`
	Late     int64     `json:"late"` // taken at a later time than their own
	Skipped  Skipped   `json:"skipped"`
}

// Bad is lines with one problem.
type Bad struct {
	Problem string `json:"problem"`
	Lines   int64  `json:"lines"`
	Source  string `json:"source"`
	Line    int64  `json:"line"` // of the first
}

// Verdicts is what became of the requests.
type Verdicts struct {
	Requests int64 `json:"requests"`
	Passed   int64 `json:"passed"`
	Held     int64 `json:"held"`     // passed later
	Degraded int64 `json:"degraded"` // passed because nothing could be decided
	Edge     int64 `json:"denied_edge"`
	Service  int64 `json:"denied_service"`
	Subjects int64 `json:"subjects"` // tenants, and clients without one
	Denied   int64 `json:"subjects_denied"`
}

// Denial is what denied requests.
type Denial struct {
	By            string    `json:"by"` // nginx, access, edge or service
	Reason        string    `json:"reason,omitempty"`
	Limit         string    `json:"limit,omitempty"` // or access rule
	Plan          string    `json:"plan,omitempty"`
	Requests      int64     `json:"requests"`
	Subjects      int64     `json:"subjects"`
	First         time.Time `json:"first"`
	Last          time.Time `json:"last"`
	Source        string    `json:"source"`
	Line          int64     `json:"line"` // of the first
	Worst         string    `json:"worst"`
	WorstRequests int64     `json:"worst_requests"`
}

// Offender is a tenant or client that was denied.
type Offender struct {
	Who      string    `json:"who"`
	Tenant   bool      `json:"tenant"` // Who is one
	Plan     string    `json:"plan,omitempty"`
	Requests int64     `json:"requests"`
	Denied   int64     `json:"denied"`
	Since    time.Time `json:"since"`
	By       string    `json:"by"` // what denied most
}

// Route is how much a route was used.
type Route struct {
	Name     string `json:"name"`
	Requests int64  `json:"requests"`
	Denied   int64  `json:"denied"`
}

// Path is a shape of paths.
type Path struct {
	Path     string `json:"path"`
	Requests int64  `json:"requests"`
}

// Unused is what no request of the log had to do with.
type Unused struct {
	AccessRules []string `json:"access_rules"`
	EdgeLimits  []string `json:"edge_limits"`
	Routes      []string `json:"routes"`
	Plans       []string `json:"plans"`
	Tenants     int      `json:"tenants"`
}

// Timeline is requests over time.
type Timeline struct {
	From    time.Time `json:"from"`
	Step    int64     `json:"step_seconds"`
	Buckets []Bucket  `json:"buckets"`
}

// Heat is denials of the busiest routes by the busiest groups.
type Heat struct {
	Routes []string     `json:"routes"`
	Groups []string     `json:"groups"`
	Cells  [][]HeatCell `json:"cells"` // by route, then group
}

// HeatCell is what a group did on a route.
type HeatCell struct {
	Requests int64 `json:"requests"`
	Denied   int64 `json:"denied"`
}

// Changes is what the policy does differently than the one it is compared with.
type Changes struct {
	NewlyDenied  int64         `json:"newly_denied"`
	NewlyWho     int64         `json:"newly_denied_subjects"`
	NoLonger     int64         `json:"no_longer_denied"`
	NoLongerWho  int64         `json:"no_longer_denied_subjects"`
	OtherCause   int64         `json:"other_cause"` // denied by both, for another cause
	Newly        []Denial      `json:"newly"`
	NoLongerList []Denial      `json:"no_longer"`
	Who          []ChangedWhom `json:"who"`
}

// ChangedWhom is a tenant or client for whom something changes.
type ChangedWhom struct {
	Who      string `json:"who"`
	Tenant   bool   `json:"tenant"`
	Newly    int64  `json:"newly_denied"`
	NoLonger int64  `json:"no_longer_denied"`
	Requests int64  `json:"requests"`
}

// Label names what denied.
func (d *Denial) Label() string {
	switch {
	case d.By == trial.ByNGINX.String():
		return "NGINX itself: 400"
	case d.By == trial.ByAccess.String() || d.Reason == "access":
		return "access rule " + d.Limit
	case strings.HasPrefix(d.Reason, "edge_"):
		return "edge limit " + d.Limit
	case d.Limit == "":
		return "service: " + d.Reason
	}
	label := d.Limit
	if d.Plan != "" {
		label += " (plan " + d.Plan + ")"
	}
	switch d.Reason {
	case "too_large":
		return label + ": too large"
	case "overload":
		return label + ": overload"
	}
	return label
}
