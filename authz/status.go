package authz

import (
	"time"

	"sluice/policies"
)

// Status is what /-/status shows.
type Status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Uptime  int64     `json:"uptime_seconds"`
	Ready   bool      `json:"ready"`
	// Policy is the one in force; nil when there is none.
	Policy    *PolicyStatus     `json:"policy"`
	Reload    ReloadReport      `json:"reload"`
	Skew      SkewStatus        `json:"skew"`
	Store     StoreStatus       `json:"store"`
	Forward   ForwardStatus     `json:"forward_auth"`
	Databases []DatabaseStatus  `json:"databases"` // never nil
	Listeners map[string]string `json:"listeners"`
	Panics    uint64            `json:"panics"`
}

// PolicyStatus says which policy is in force.
type PolicyStatus struct {
	Hash    string        `json:"hash"`
	Mode    policies.Mode `json:"mode"`
	Loaded  time.Time     `json:"loaded"`
	Routes  int           `json:"routes"`
	Plans   int           `json:"plans"`
	Tenants int           `json:"tenants"`
}

// DatabaseStatus says which database tells where clients are.
type DatabaseStatus struct {
	Knows string    `json:"knows"` // country or asn
	Type  string    `json:"type"`  // as it says itself, such as GeoLite2-Country
	Built time.Time `json:"built"`
}

// databases are those in force.
func (e *Engine) databases() []DatabaseStatus {
	out, t := []DatabaseStatus{}, e.Tables()
	if t.Countries != nil {
		out = append(out, DatabaseStatus{"country", t.Countries.Type, t.Countries.Built})
	}
	if t.ASNs != nil {
		out = append(out, DatabaseStatus{"asn", t.ASNs.Type, t.ASNs.Built})
	}
	return out
}

// ReloadReport says how reloading goes. Error and its findings are those of the
// newest policy when it is broken, and the one before serves.
type ReloadReport struct {
	Loads    int        `json:"loads"`
	Failures int        `json:"failures"`
	Last     *time.Time `json:"last"`
	Error    string     `json:"error,omitempty"`
	Findings []Finding  `json:"findings,omitempty"`
}

// SkewStatus says what was heard of other policies: NGINX is rendered from one
// and the service runs another.
type SkewStatus struct {
	Count uint64 `json:"count"`
	// Policy is the hash of the last other one, when NGINX told it.
	Policy string     `json:"policy,omitempty"`
	Last   *time.Time `json:"last"`
}

// StoreStatus says how the store does. Degraded: it has left a decision to the
// fail mode within the last 10 seconds.
type StoreStatus struct {
	Kind string `json:"kind"`
	// Breaker is closed, half_open or open; absent for a store that needs none.
	Breaker   string     `json:"breaker,omitempty"`
	Degraded  bool       `json:"degraded"`
	Errors    uint64     `json:"errors"`
	LastError string     `json:"last_error,omitempty"`
	LastAt    *time.Time `json:"last_error_at"`
}

// Finding is a diagnostic as JSON has it.
type Finding struct {
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
	Rule     string `json:"rule"`
	Severity string `json:"severity"` // error or warning
}

// shownInStatus is how many findings an answer has; all are in what `validate` says.
const shownInStatus = 100

func findings(found policies.Diagnostics) []Finding {
	return Findings(found[:min(len(found), shownInStatus)])
}

// Findings are diagnostics as JSON has them, all of them; never nil.
func Findings(found policies.Diagnostics) []Finding {
	out := make([]Finding, 0, len(found))
	for _, d := range found {
		f := Finding{
			File: d.Pos.File, Line: d.Pos.Line, Column: d.Pos.Col,
			Path: d.Path, Message: d.Message, Rule: d.Rule, Severity: "error",
		}
		if d.Warning {
			f.Severity = "warning"
		}
		out = append(out, f)
	}
	return out
}

// moment is a time in UTC; nil for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// policyStatus is nil before the first policy.
func (e *Engine) policyStatus() *PolicyStatus {
	b := e.state.Load()
	if b == nil {
		return nil
	}
	return &PolicyStatus{
		Hash: b.policy.Hash, Mode: b.policy.Mode, Loaded: b.since.UTC(),
		Routes: len(b.policy.Routes), Plans: len(b.policy.Plans), Tenants: len(b.policy.Tenants),
	}
}

func (e *Engine) skewStatus() SkewStatus {
	s := SkewStatus{Count: e.counters.skew.Load(), Policy: hashText(e.skew.hash.Load())}
	if at := e.skew.at.Load(); at != 0 {
		s.Last = moment(time.Unix(at, 0))
	}
	return s
}

func (e *Engine) storeStatus(kind string, now time.Time) StoreStatus {
	s := StoreStatus{Kind: kind, Degraded: e.storeTrouble.now(now), Errors: e.counters.store.Load()}
	if e.breaker != nil {
		s.Breaker = e.breaker.State().String()
	}
	if f := e.storeTrouble.last.Load(); f != nil {
		s.LastError, s.LastAt = f.text, moment(f.at)
	}
	return s
}

func (r *Reloader) report() ReloadReport {
	s := r.Status()
	out := ReloadReport{Loads: s.Loads, Failures: s.Failures, Last: moment(s.At)}
	if s.Err != nil {
		out.Error, out.Findings = s.Err.Error(), findings(s.Findings)
	}
	return out
}
