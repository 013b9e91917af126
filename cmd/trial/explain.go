package trial

import (
	"fmt"
	"strconv"
	"time"

	"sluice/policies"
	"sluice/policies/edge"
)

// Mark is what a step came to.
type Mark string

// The marks of steps.
const (
	Told    Mark = "told"    // a fact
	Passes  Mark = "passes"  // it looked at the request and lets it pass
	Refuses Mark = "refuses" // it refuses
	Would   Mark = "would"   // it would refuse, but for a mode: shadow
	Skipped Mark = "skipped" // it does not concern the request
)

// Step is one step of a request's way, for people and programs.
type Step struct {
	Stage string `json:"stage"` // client, location, access, edge, service, identity, plan, route, limit or answer
	Name  string `json:"name,omitempty"`
	Mark  Mark   `json:"mark"`
	Text  string `json:"text"`
	// Of limits: the counter's name, what the request weighs, and what is left.
	Key       string `json:"key,omitempty"`
	Cost      int64  `json:"cost,omitempty"`
	Remaining *int64 `json:"remaining,omitempty"`
}

// Explanation is the whole way of one request.
type Explanation struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	At      time.Time         `json:"at"`
	Steps   []Step            `json:"steps"`
	Status  int               `json:"status"`
	Denied  bool              `json:"denied"`
	By      string            `json:"by,omitempty"`
	Reason  string            `json:"reason,omitempty"`
	Limit   string            `json:"limit,omitempty"`
	Headers map[string]string `json:"headers"`
	// Header are the same in their order.
	Header []edge.Field `json:"-"`
	// Delay is for how long the request is held, in seconds.
	Delay float64 `json:"delay,omitempty"`
}

// Explain puts a trace into words.
func (t *Trial) Explain(tr *Trace) *Explanation {
	o := &tr.Outcome
	x := &explainer{trial: t, tr: tr, o: o}
	x.client()
	x.location()
	if o.By != ByNGINX && o.Location != nil {
		x.access()
		x.edge()
		x.service()
	}
	x.answer()
	e := &Explanation{
		Method: tr.Method, URL: tr.URI, At: o.At, Steps: x.steps, Status: o.Status, Denied: o.Denied,
		By: o.By.String(), Reason: o.Reason, Limit: o.Limit, Headers: map[string]string{}, Header: tr.Header, Delay: o.Delay().Seconds(),
	}
	if e.Method == "" {
		e.Method = "GET"
	}
	for _, f := range tr.Header {
		e.Headers[f.Name] = f.Value
	}
	return e
}

type explainer struct {
	trial *Trial
	tr    *Trace
	o     *Outcome
	steps []Step
}

func (x *explainer) add(stage, name string, mark Mark, format string, args ...any) *Step {
	x.steps = append(x.steps, Step{Stage: stage, Name: name, Mark: mark, Text: fmt.Sprintf(format, args...)})
	return &x.steps[len(x.steps)-1]
}

func (x *explainer) service() {
	o := x.o
	switch {
	case o.By == ByAccess, o.By == ByEdge:
		x.add("service", "", Skipped, "is not asked: the request ends at the edge")
		return
	case o.By == ByLogin:
		x.add("identity", "auth_request", Refuses, "no credential is shown, and your own authenticator lets nobody in: its 401")
		return
	case x.tr.Preflight:
		x.add("service", "", Skipped, "is not asked about a CORS preflight")
		return
	case !o.Asked && o.Location.Exempt:
		return
	case !o.Asked:
		x.add("service", "", Skipped, "is not asked: no rule of it concerns the route")
		return
	}
	x.identity()
	x.plan()
	x.route()
	x.limits()
}

func (x *explainer) identity() {
	c, o := x.trial.policy, x.o
	if c.Identity == nil {
		x.add("identity", "", Told, "the policy identifies nobody: the client is his address")
		return
	}
	first := true
	for i := range c.Identity.Sources {
		name := sourceName(&c.Identity.Sources[i])
		switch shown := x.tr.Shown[i]; {
		case !shown:
			x.add("identity", name, Skipped, "is not shown")
		case !first:
			x.add("identity", name, Skipped, "is shown, but an earlier one decides")
		default:
			first = false
			x.shown(name)
		}
	}
	if first {
		switch {
		case o.Tenant != "" || o.Reason != "credential" && c.Identity.Login != nil:
			x.add("identity", "auth_request", Told, "your own authenticator names %s", orNobody(o.Tenant))
		default:
			x.add("identity", "missing", markOf(o.Reason == "credential"), "no credential is shown: %s", outcomeOf(c, c.Identity.Missing))
		}
	}
}

// shown is a credential that decides.
func (x *explainer) shown(name string) {
	c, o := x.trial.policy, x.o
	switch {
	case o.Tenant == "":
		x.add("identity", name, markOf(o.Reason == "credential"), "is shown, and is nobody's: %s", outcomeOf(c, c.Identity.Invalid))
	case o.Reason == "disabled":
		x.add("identity", name, Refuses, "is %s, and switched off", ownerOf(o))
	case o.Reason == "address":
		x.add("identity", name, Refuses, "is %s, and does not count from this address", ownerOf(o))
	default:
		x.add("identity", name, Told, "is %s", ownerOf(o))
	}
}

func ownerOf(o *Outcome) string {
	if o.Key != "" {
		return "key " + o.Key + " of tenant " + o.Tenant
	}
	return "tenant " + o.Tenant
}

func orNobody(name string) string {
	if name == "" {
		return "nobody"
	}
	return "tenant " + name
}

func outcomeOf(c *policies.Compiled, o policies.Outcome) string {
	if o.Plan < 0 {
		return "denied with " + strconv.Itoa(o.Status)
	}
	return "plan " + c.Plans[o.Plan].Name + ", counted by address"
}

func markOf(refuses bool) Mark {
	if refuses {
		return Refuses
	}
	return Told
}

func sourceName(s *policies.Source) string {
	if s.Kind == policies.SourceCert {
		return "client_cert"
	}
	name := edge.CarrierName(s.Carrier) + " " + s.Name
	if s.Scheme != "" {
		name += ": " + s.Scheme
	}
	if s.Prefix != "" {
		name += " " + s.Prefix + "…"
	}
	return name
}

func (x *explainer) plan() {
	if x.o.Plan == "" {
		return
	}
	text := "priority " + string(x.o.Priority)
	for i := range x.trial.policy.Tenants {
		if t := &x.trial.policy.Tenants[i]; t.ID == x.o.Tenant && x.trial.policy.Plans[t.Plan].Name != x.o.Plan {
			text += "; the key's own, tenant " + t.ID + " has " + x.trial.policy.Plans[t.Plan].Name
		}
	}
	x.add("plan", x.o.Plan, Told, "%s", text)
}

func (x *explainer) route() {
	o := x.o
	switch {
	case o.Route == "" && o.Reason == "":
		x.add("route", "", Told, "no route takes this method here: allowed, and not counted")
		return
	case o.Route == "":
		return
	}
	text := "costs " + plural(o.Cost, "unit")
	if o.Route != o.Location.Name {
		text = "takes the method, which " + o.Location.Name + " does not; " + text
	}
	if o.Reason == "plan" {
		text += "; plan " + orNone(o.Plan) + " may not use it"
	}
	x.add("route", o.Route, markOf(o.Reason == "plan"), "%s", text)
}

func orNone(name string) string {
	if name == "" {
		return "none"
	}
	return name
}

func (x *explainer) answer() {
	o := x.o
	switch {
	case o.Denied && o.Status == 444:
		x.add("answer", "444", Refuses, "the connection is closed without one")
	case o.Denied && o.Limit != "":
		x.add("answer", strconv.Itoa(o.Status), Refuses, "%s: %s", o.Reason, o.Limit)
	case o.Denied:
		x.add("answer", strconv.Itoa(o.Status), Refuses, "%s", orNone(o.Reason))
	case o.Degraded:
		x.add("answer", "", Passes, "the application's: the fail mode is open")
	case o.Would != "":
		x.add("answer", "", Passes, "the application's; in shadow it would be refused: %s %s", o.Would, o.WouldLimit)
	default:
		x.add("answer", "", Passes, "the application's")
	}
	if x.tr.Upgrade && !o.Denied {
		x.add("answer", "", Told, "a handshake is one request: what is said on the connection is not counted")
	}
}
