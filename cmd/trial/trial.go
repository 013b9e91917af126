package trial

import (
	"io"
	"log/slog"
	"net/netip"
	"strconv"
	"time"
	"unsafe"

	"github.com/valyala/fasthttp"

	"sluice/authz"
	"sluice/authz/limit"
	"sluice/geo"
	"sluice/policies"
	"sluice/policies/edge"
)

// Options are the choices of a Trial; the zero value is good.
type Options struct {
	// Start is when the clock begins; zero: the beginning of 2026, UTC.
	Start time.Time
	// Geo are the databases that say where clients are.
	Geo geo.Tables
	// Store keeps the counters; nil: memory on the trial's clock. Another one has its
	// own clock, and then Sleep must let time pass until what it is told.
	Store limit.Store
	Sleep func(until time.Time)
	// Live is an engine of a running service whose counters, tenants and changes the
	// trial sees as they are now, and leaves so; instead of Store and Deadline.
	Live *authz.Engine
	// Deadline is how long a decision may wait for the store; 0: for ever.
	Deadline time.Duration
	// Login tells that the site's own authenticator, where the policy has one, refuses
	// whom no Request.Login names. Without it such requests show nothing.
	Login bool
	// MaxKeys is how many counters memory keeps; 0: limit.MemoryOptions' own number.
	MaxKeys int
	// Log is told what nobody asked for; nil: nobody is.
	Log *slog.Logger
}

// Trial is one NGINX and one service with a policy. It is not safe for
// concurrent use.
type Trial struct {
	policy *policies.Compiled
	edge   *edge.Model
	engine *authz.Engine
	store  limit.Store
	sleep  func(time.Time)
	login  bool // the policy has an authenticator, which is asked
	live   bool // counters of the service are those of a running one
	now    time.Time
	events events
	free   *flight
	serial uint64
	visit  *edge.Visit // of the question that is asked
	out    Outcome
	fields []edge.Field
	told   []string          // headers of limits
	names  map[string][]byte // of headers, as they arrive at the service
}

// New makes a Trial that nothing has happened to. It fails when the service
// cannot enforce the policy.
func New(c *policies.Compiled, o Options) (*Trial, error) {
	t := newTrial(c, edge.New(c, o.Geo), o)
	if t.live = o.Live != nil; t.live {
		t.engine = o.Live.Onlooker(t.engineOptions(o))
	} else {
		t.engine = authz.New(t.store, t.engineOptions(o))
	}
	if err := t.engine.Swap(c); err != nil {
		return nil, err
	}
	return t, nil
}

// Fresh is a Trial of the same policy and databases that nothing has happened to.
// It costs next to nothing, where New gets the policy ready.
func (t *Trial) Fresh(o Options) *Trial {
	f := newTrial(t.policy, t.edge.Fresh(), o)
	f.engine = t.engine.Fresh(f.store, f.engineOptions(o))
	return f
}

func newTrial(c *policies.Compiled, m *edge.Model, o Options) *Trial {
	t := &Trial{names: map[string][]byte{}, policy: c, edge: m, store: o.Store, sleep: o.Sleep, now: o.Start, told: edge.LimitHeaders(c.Responses.Dialects)}
	t.login = o.Login && c.Identity != nil && c.Identity.Login != nil
	if t.now.IsZero() {
		t.now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	if t.store == nil {
		t.store = limit.NewMemory(limit.MemoryOptions{Now: t.Now, MaxKeys: o.MaxKeys})
	}
	return t
}

func (t *Trial) engineOptions(o Options) authz.Options {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return authz.Options{Places: t.places(), Deadline: o.Deadline, Now: t.Now, Log: o.Log, Jitter: func() float64 { return 0 }}
}

// places say where the client of the question is, as the edge sees it.
func (t *Trial) places() authz.Places {
	return authz.Places{
		Country: func(netip.Addr) policies.Country { return t.edge.Place(t.visit).Country },
		ASN:     func(netip.Addr) (policies.ASN, geo.State) { return t.edge.ASN(t.visit) },
	}
}

// Now is the trial's time.
func (t *Trial) Now() time.Time { return t.now }

// Policy is the policy that is tried.
func (t *Trial) Policy() *policies.Compiled { return t.policy }

// Met tells whether the edge limit, an index of the policy's, was asked about any
// request yet.
func (t *Trial) Met(edgeLimit int) bool { return t.edge.Met(edgeLimit) }

// Submit lets a request come, and tells its outcome to done: at once, or, when
// the edge holds it, when time has come so far.
func (t *Trial) Submit(req *Request, done func(*Outcome)) {
	t.Advance(req.At)
	f := t.take()
	f.req, f.done = req, done
	f.visit.Request, f.visit.Trace = &req.Request, nil
	if req.Trace != nil {
		*req.Trace = Trace{}
		f.visit.Trace = &req.Trace.Edge
	}
	if req.Key != nil {
		f.uri, f.header = req.URI, req.Header
		req.Key.show(&req.Request)
	}
	t.edge.Enter(&f.visit, t.now)
	switch v := &f.visit; {
	case v.Verdict == edge.Bad:
		t.deny(f, ByNGINX, 400)
	case v.Verdict == edge.Access:
		t.deny(f, ByAccess, v.Refused)
	case v.Verdict == edge.EdgeRate && !v.Shadow:
		t.deny(f, ByEdge, 429)
	default:
		f.noteShadow()
		if v.Delay > 0 {
			t.events.push(event{at: t.now.Add(v.Delay), flight: f, goesOn: true})
			return
		}
		t.goOn(f)
	}
}

// Run is Submit for one request alone: time moves until its outcome is known.
func (t *Trial) Run(req *Request, done func(*Outcome)) {
	told := false
	t.Submit(req, func(o *Outcome) { told = true; done(o) })
	for !told {
		t.next()
	}
}

// Advance lets time pass until then, and what falls due happen.
func (t *Trial) Advance(until time.Time) {
	for len(t.events) > 0 && !t.events[0].at.After(until) {
		t.next()
	}
	t.goTo(until)
}

// Drain lets time pass until nothing is under way.
func (t *Trial) Drain() {
	for len(t.events) > 0 {
		t.next()
	}
}

// goTo moves the clock, never back.
func (t *Trial) goTo(to time.Time) {
	if !to.After(t.now) {
		return
	}
	if t.sleep != nil {
		t.sleep(to)
	}
	t.now = to
}

// next lets happen what is due first.
func (t *Trial) next() {
	e := t.events.pop()
	t.goTo(e.at)
	if e.goesOn {
		t.goOn(e.flight)
		return
	}
	t.end(e.flight)
}

// goOn is what comes after limit_req: limit_conn, then the service.
func (t *Trial) goOn(f *flight) {
	t.edge.Connect(&f.visit)
	if f.visit.Verdict == edge.EdgeConn && !f.visit.Shadow {
		t.deny(f, ByEdge, 429)
		return
	}
	f.noteShadow()
	if mode, asked := t.edge.Asks(&f.visit); asked {
		if t.fields = t.edge.Tell(t.fields[:0], &f.visit); t.login && f.req.Login == nil && !t.edge.Shows(&f.visit) {
			t.deny(f, ByLogin, 401)
			return
		}
		t.ask(f, mode)
	}
	if f.asked && f.decision.Verdict == authz.Deny {
		t.deny(f, ByService, f.decision.Status)
		return
	}
	t.pass(f)
}

// ask asks the service, as NGINX does.
func (t *Trial) ask(f *flight, mode policies.FailMode) {
	f.asked = true
	v, q := &f.visit, &f.question
	q.Reset()
	q.Mode, q.Route = mode, bytesOf(v.Location.Name)
	q.Method, q.URI, q.Host = bytesOf(v.Request.Method), bytesOf(v.Request.URI), bytesOf(v.Host)
	if v.Request.Method == "" {
		q.Method = bytesOf("GET")
	}
	f.address = f.address[:0]
	if v.Client.IsValid() {
		f.address = v.Client.AppendTo(f.address)
	}
	q.IP, q.Policy = f.address, bytesOf(t.policy.Hash)
	if q.ID = bytesOf(f.req.ID); len(q.ID) == 0 {
		t.serial++
		f.id = strconv.AppendUint(f.id[:0], t.serial, 10)
		q.ID = f.id
	}
	if l := f.req.Login; l != nil {
		q.Login, q.LoginUser, q.LoginTenant = true, bytesOf(l.User), bytesOf(l.Tenant)
	}
	for i := range t.fields {
		q.Set(t.nameOf(t.fields[i].Name), bytesOf(t.fields[i].Value))
	}
	t.visit = v
	t.engine.Decide(q, &f.decision)
	t.visit = nil
}

// deny tells a request's outcome that ends here.
func (t *Trial) deny(f *flight, by By, status int) {
	t.edge.Leave(&f.visit)
	t.tell(f, by, status)
	t.put(f)
}

// pass tells a request's outcome that reaches the application, and lets it take
// its time.
func (t *Trial) pass(f *flight) {
	status := f.req.Status
	if status == 0 {
		status = 200
	}
	f.status, f.costs, f.cost = status, f.req.Costs, f.req.Cost
	takes := f.req.Takes
	if f.asked {
		takes += f.decision.Delay
	}
	t.tell(f, ByNobody, status)
	f.req = nil
	if takes > 0 && (f.visit.Holds() || f.settles(t.policy)) {
		t.events.push(event{at: t.now.Add(takes), flight: f})
		return
	}
	t.end(f)
}

// end frees what a request held, and tells the service of it.
func (t *Trial) end(f *flight) {
	t.edge.Leave(&f.visit)
	if f.settles(t.policy) {
		q := &f.question
		c := authz.Completion{ID: string(q.ID), Path: policies.AuthPath(q.Mode, string(q.Route)), Status: f.status, Costs: f.costs}
		t.tellCost(f, &c)
		// What the store does not take is what it would not take from a datagram
		// either: leases expire by themselves, charges stay.
		_, _ = t.engine.Complete(c)
	}
	t.put(f)
}

// tellCost tells what the request has cost in the end: by a header of the answer,
// or by a report, as the route wants it.
func (t *Trial) tellCost(f *flight, c *authz.Completion) {
	r := t.policy.RouteNamed(bytesOf(f.decision.Route))
	switch {
	case f.cost == nil || r == nil:
	case r.CostHeader != "":
		c.Costs = map[string]string{r.CostHeader: strconv.FormatInt(*f.cost, 10)}
	case r.CostReport > 0:
		_, _ = t.engine.Report(authz.Report{ID: c.ID, Route: string(f.question.Route), Cost: *f.cost})
	}
}

// nameOf is a header's name as it arrives at the service.
func (t *Trial) nameOf(name string) []byte {
	out, known := t.names[name]
	if !known {
		out = fasthttp.AppendNormalizedHeaderKey(nil, name)
		t.names[name] = out
	}
	return out
}

// bytesOf are the bytes of a string, which the service only reads.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
