package trial

import (
	"net/netip"
	"time"

	"sluice/policies"
	"sluice/policies/edge"
)

// Request is one request to try. It belongs to the Trial from Submit until its
// outcome is told.
type Request struct {
	edge.Request
	// At is when it comes, and Takes how long the application needs for it.
	At    time.Time
	Takes time.Duration
	// Status is what the application answers; 0: 200.
	Status int
	// Costs are headers of the application's answer that tell what it cost, by name.
	// They must stay as they are until the request ends.
	Costs map[string]string
	// Cost is what it has cost in the end, told in whatever way the route asks for it,
	// by a header or a report; nil: only Costs tell it.
	Cost *int64
	// Key is a key of the policy whose credential the request shows: see Trial.Key.
	Key *Key
	// Login is whom the site's own authenticator names; nil: nobody.
	Login *Login
	// ID is the request's id; empty: one of its own.
	ID string
	// Trace, when it is not nil, is filled with every step.
	Trace *Trace
}

// Login is what the site's own authenticator says.
type Login struct{ User, Tenant string }

// Outcome is what became of a request. It is the callee's only until the
// function that gets it returns.
type Outcome struct {
	Request *Request
	// At is when it was decided: later than Request.At when the edge held it.
	At time.Time

	// Denied tells that the application does not see it. Status is what the client
	// sees: the application's own when it passes; 444 closes the connection.
	Denied bool
	Status int
	// By is who denied it, or who would have: see Would.
	By By
	// Reason and Limit say why it was denied, and Would why it would have been
	// without `mode: shadow` somewhere: a reason, of whatever comes first.
	Reason, Limit string
	Would         string
	WouldLimit    string
	// Wait is the time until it fits; 0 when waiting cannot help or is not needed.
	// RetryAfter is what the client is told, in seconds; 0: nothing.
	Wait       time.Duration
	RetryAfter int64
	// EdgeDelay is for how long limit_req held it, and Hold the service.
	EdgeDelay, Hold time.Duration

	// Location is the route that names the location; nil: there is none.
	Location *policies.Route
	// Client is who asks, by address, as limits count him.
	Client netip.Prefix
	// Rule is the access rule that decided; Exempt tells that it freed the client.
	Rule   string
	Exempt bool
	// Asked tells that the service was asked: then these are its words.
	Asked                    bool
	Route, Tenant, Key, Plan string
	Priority                 policies.Priority
	Cost                     int64
	// Degraded tells that the fail mode decided, because of Err.
	Degraded bool
	Err      error

	flight *flight
	trial  *Trial
}

// Delay is for how long the request was held in all.
func (o *Outcome) Delay() time.Duration { return o.EdgeDelay + o.Hold }

// By is who decides.
type By uint8

// Who decides about requests.
const (
	ByNobody  By = iota // it passes
	ByNGINX             // what is no HTTP for it
	ByAccess            // an access rule
	ByEdge              // an edge limit
	ByService           // the service
	ByLogin             // the site's own authenticator, which the policy chains
)

// String is the word for people.
func (b By) String() string {
	switch b {
	case ByNGINX:
		return "nginx"
	case ByAccess:
		return "access"
	case ByEdge:
		return "edge"
	case ByService:
		return "service"
	case ByLogin:
		return "login"
	}
	return ""
}
