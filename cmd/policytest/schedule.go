package policytest

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sluice/cmd/trial"
	"sluice/policies"
	"sluice/policies/edge"
)

// defaultStart is 0s where nobody says what it is: a Thursday, a new year.
func defaultStart() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// defaultClient is the client of requests that name none.
func defaultClient() netip.Addr { return netip.AddrFrom4([4]byte{203, 0, 113, 1}) }

// planned is one request of a test: the nth of its entry, counted from 0.
type planned struct {
	at    time.Time
	entry int
	n     int64
	of    netip.Addr // the client
}

// schedule are all requests of a test in the order of their times.
func schedule(t *policies.TestSpec, start time.Time) []planned {
	var out []planned
	at := start
	for i := range t.Requests {
		r := &t.Requests[i]
		if r.At != nil {
			at = start.Add(time.Duration(*r.At))
		}
		out = append(out, entry(r, i, at)...)
	}
	slices.SortStableFunc(out, func(a, b planned) int { return a.at.Compare(b.at) })
	return out
}

// entry are the requests of one entry.
func entry(r *policies.TestRequest, index int, at time.Time) []planned {
	times, clients, every := int64(1), int64(1), time.Duration(0)
	if r.Times != nil {
		times = int64(*r.Times)
	}
	if r.Clients != nil {
		clients = int64(*r.Clients)
	}
	if r.Every != nil {
		every = time.Duration(*r.Every)
	}
	client := defaultClient()
	if r.IP != nil {
		client = netip.Addr(*r.IP)
	}
	out := make([]planned, 0, times*clients)
	for range clients {
		for k := range times {
			out = append(out, planned{at: at.Add(time.Duration(k) * every), entry: index, n: int64(len(out)), of: client})
		}
		client = client.Next()
	}
	return out
}

// requests make trial requests of the entries of a file.
type requests struct{ cast *trial.Cast }

// prepare gives the policy the credentials that the tests show. What cannot be
// shown is a finding.
func prepare(f *policies.TestFile, c *policies.Compiled) (*requests, policies.Diagnostics) {
	var all []trial.Who
	var places []policies.Pos
	for i := range f.Tests {
		for j := range f.Tests[i].Requests {
			r := &f.Tests[i].Requests[j]
			all, places = append(all, whoOf(r)), append(places, r.Pos)
		}
	}
	cast, errs := trial.NewCast(c, all)
	var found policies.Diagnostics
	for i, err := range errs {
		if err != nil {
			found = append(found, policies.Diagnostic{Pos: places[i], Message: err.Error() + "; want an identity that the policy knows", Rule: "test"})
		}
	}
	return &requests{cast}, found
}

// whoOf is who an entry is.
func whoOf(r *policies.TestRequest) trial.Who {
	w := trial.Who{Key: string(r.Key), Tenant: string(r.Tenant), User: string(r.User)}
	if r.JWT != nil {
		w.Claims = make(map[string]string, len(r.JWT))
		for name, value := range r.JWT {
			w.Claims[string(name)] = string(value)
		}
	}
	return w
}

// request is one request of an entry.
func (q *requests) request(r *policies.TestRequest, p *planned) *trial.Request {
	host, target := r.URL.Split()
	if r.Host != "" {
		host = string(r.Host)
	}
	if host == "" {
		host = "localhost"
	}
	out := &trial.Request{
		Request: edge.Request{Method: string(r.Method), URI: target, Host: host, Country: r.Country, ASN: r.ASN},
		At:      p.at, Status: int(r.Answers),
	}
	if r.Costs != nil {
		cost := int64(*r.Costs)
		out.Cost = &cost
	}
	who := whoOf(r)
	q.cast.Show(&who, out)
	if r.Takes != nil {
		out.Takes = time.Duration(*r.Takes)
	}
	names := make([]policies.HeaderName, 0, len(r.Headers))
	for name := range r.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		out.Header = append(out.Header, edge.Field{Name: string(name), Value: string(r.Headers[name])})
	}
	peer := netip.Addr{}
	if r.Peer != nil {
		peer = netip.Addr(*r.Peer)
	}
	trial.From(q.cast.Policy(), &out.Request, p.of, peer)
	return out
}

// title is a request as people name it: GET /v1/search, key acme-web.
func (q *requests) title(r *policies.TestRequest) string {
	method := string(r.Method)
	if method == "" {
		method = "GET"
	}
	s := method + " " + trial.WithoutCredentials(q.cast.Policy(), string(r.URL))
	switch {
	case r.Tenant != "" && r.User != "":
		s += fmt.Sprintf(", %s of %s", r.User, r.Tenant)
	case r.Tenant != "":
		s += ", tenant " + string(r.Tenant)
	case r.Key != "":
		s += ", key " + string(r.Key)
	case r.JWT != nil:
		s += ", with a token"
	}
	if r.IP != nil {
		s += ", from " + netip.Addr(*r.IP).String()
	}
	return s
}
