package replay

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"sluice/authz"
	"sluice/cmd/trial"
	"sluice/policies"
	"sluice/policies/edge"
)

// Bounds of what is counted one by one; what goes beyond is counted together.
const (
	maxSubjects = 1_000_000
	maxCells    = 20_000
	maxPaths    = 10_000
)

// fate is what became of a request under one policy.
type fate struct {
	denied, degraded bool
	by               trial.By
	cause            cause
	would            cause // without shadow somewhere
	route            int   // index of the policy's routes; -1: none
	plan             string
	tenant           string
	client           netip.Prefix
	cost             int64
	held             time.Duration
}

// cause is what denied: comparable, with names of the policy alone.
type cause struct {
	by            trial.By
	reason, limit string
	plan          string // of a limit of the service
}

// fill takes over what the outcome says. Its names are the policy's, but for a
// tenant that only a login names.
func (f *fate) fill(o *trial.Outcome, t *tally, r *trial.Request) {
	*f = fate{
		denied: o.Denied, degraded: o.Degraded, by: o.By, route: -1, plan: o.Plan, tenant: o.Tenant,
		client: o.Client, cost: max(o.Cost, 1), held: o.Delay(),
	}
	if o.Location != nil {
		f.route = o.Location.Index
	}
	switch {
	case o.Denied:
		f.cause = cause{by: o.By, reason: o.Reason, limit: o.Limit}
		if o.By == trial.ByService && o.Limit != "" {
			f.cause.plan = o.Plan
		}
	case o.Would != "":
		f.would = cause{reason: o.Would, limit: o.WouldLimit}
		if f.would.isLimit() {
			f.would.plan = o.Plan
		}
	case t != nil && t.shadows:
		t.shadowed(o, f)
	}
	if t != nil {
		t.see(o, f, r)
	}
}

// isLimit tells whether it is a limit of the service.
func (c *cause) isLimit() bool {
	return c.limit != "" && c.reason != edge.Access.String() && c.reason != edge.EdgeRate.String() && c.reason != edge.EdgeConn.String()
}

// shadowed finds a limit of the service in shadow that would have refused.
func (t *tally) shadowed(o *trial.Outcome, f *fate) {
	t.charges = o.Charges(t.charges[:0])
	for i := range t.charges {
		if c := &t.charges[i]; c.Limit.Shadow && !c.State.Fits {
			f.would = cause{reason: string(c.Limit.Kind), limit: c.Limit.Name, plan: o.Plan}
			return
		}
	}
}

// inShadow tells whether some limit of the service only watches.
func inShadow(c *policies.Compiled) bool {
	some := func(limits []policies.Limit) bool {
		return slices.ContainsFunc(limits, func(l policies.Limit) bool { return l.Shadow })
	}
	return some(c.Limits) || slices.ContainsFunc(c.Plans, func(p policies.Plan) bool { return some(p.Limits) }) ||
		slices.ContainsFunc(c.Routes, func(r policies.Route) bool { return some(r.Limits) })
}

// tally counts what became of requests.
type tally struct {
	policy *policies.Compiled
	unseen map[string]bool // access rules that nobody has met yet

	shadows bool // some limit of the service only watches
	charges []authz.Charge

	requests, passed, held, degraded, would int64
	denied                                  [trial.ByService + 1]int64
	first, last                             int64 // microseconds

	subjects []subject
	clients  map[netip.Prefix]int32
	tenants  map[string]int32
	causes   ledger
	watched  ledger // would have denied
	cells    map[cellKey]*cell
	routes   []routeUse
	plans    map[string]int64
	paths    paths
	timeline timeline
	demand   demand
	changes  *changes
	private  map[netip.Prefix]int64
	unrouted int64
}

// subject is a tenant, or a client that belongs to none.
type subject struct {
	tenant string
	client netip.Prefix
	plan   string

	requests, denied int64
	first            int64 // of its denials, microseconds
	newly, noLonger  int64
}

type routeUse struct{ requests, denied int64 }

func newTally(c *policies.Compiled, against bool) *tally {
	t := &tally{
		policy: c, shadows: inShadow(c), unseen: rules(c), subjects: make([]subject, 1), clients: map[netip.Prefix]int32{}, tenants: map[string]int32{},
		causes: newLedger(), watched: newLedger(), cells: map[cellKey]*cell{},
		routes: make([]routeUse, len(c.Routes)), plans: map[string]int64{}, private: map[netip.Prefix]int64{},
	}
	t.paths.secret = secretOf(c)
	if against {
		t.changes = newChanges()
	}
	return t
}

// see looks at an outcome while it is there.
func (t *tally) see(o *trial.Outcome, f *fate, r *trial.Request) {
	// A route that shares its location with others is known by the service alone.
	if o.Asked && o.Route != "" && o.Location != nil && o.Route != o.Location.Name {
		if route := t.policy.RouteNamed([]byte(o.Route)); route != nil {
			f.route = route.Index
		}
	}
	if len(t.unseen) > 0 {
		delete(t.unseen, o.Rule)
		if o.Would == edge.Access.String() {
			delete(t.unseen, o.WouldLimit)
		}
	}
	if o.Location == nil && o.By != trial.ByNGINX {
		t.unrouted++
		t.paths.add(r.URI)
	}
}

// add counts an item whose fates are known.
func (t *tally) add(it *item) {
	f := &it.fate
	if t.requests == 0 || it.at < t.first {
		t.first = it.at
	}
	t.requests++
	t.last = max(t.last, it.at)
	s := t.subject(f)
	sub := &t.subjects[s]
	sub.requests++
	if f.plan != "" {
		sub.plan = f.plan
	}
	switch {
	case f.denied:
		t.denied[f.by]++
		sub.denied++
		if sub.denied == 1 {
			sub.first = it.at
		}
		t.causes.add(f.cause, it, s)
	default:
		t.passed++
		if f.held > 0 {
			t.held++
		}
		if f.degraded {
			t.degraded++
		}
		if f.would.reason != "" {
			t.would++
			t.watched.add(f.would, it, s)
		}
	}
	if f.plan != "" {
		t.plans[f.plan]++
	}
	if f.route >= 0 {
		t.routes[f.route].requests++
		if f.denied {
			t.routes[f.route].denied++
		}
		t.cell(f, it.at, s)
	}
	if f.client.IsValid() && f.client.Addr().IsPrivate() {
		t.private[f.client]++
	}
	t.timeline.add(it)
	if t.changes != nil {
		t.changes.add(it, sub, s)
	}
}

// subject is the index of whoever made the request; 0 for all that are too many.
func (t *tally) subject(f *fate) int32 {
	if f.tenant != "" {
		i, ok := t.tenants[f.tenant]
		if !ok && len(t.subjects) < maxSubjects {
			i = int32(len(t.subjects))
			// The name may be borrowed from the request.
			name := strings.Clone(f.tenant)
			t.tenants[name] = i
			t.subjects = append(t.subjects, subject{tenant: name, plan: f.plan})
		}
		return i
	}
	i, ok := t.clients[f.client]
	if !ok && len(t.subjects) < maxSubjects {
		i = int32(len(t.subjects))
		t.clients[f.client] = i
		t.subjects = append(t.subjects, subject{client: f.client, plan: f.plan})
	}
	return i
}

// rules are the names of a policy's access rules.
func rules(c *policies.Compiled) map[string]bool {
	out := map[string]bool{}
	for i := range c.Access {
		out[edge.RuleName(&c.Access[i])] = true
	}
	return out
}
