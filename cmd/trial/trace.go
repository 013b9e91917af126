package trial

import (
	"net/url"
	"strings"

	"sluice/authz"
	"sluice/policies"
	"sluice/policies/edge"
)

// Trace is every step of one request, those included that did not apply. It
// stays when the outcome is gone.
type Trace struct {
	Outcome Outcome
	// Visit is the request at the edge, Edge what its rules and limits said.
	Visit edge.Visit
	Edge  edge.Trace
	// Preflight tells that the service would have been asked, but for a preflight.
	Preflight bool
	// Upgrade tells that it asks for another protocol, as WebSockets do.
	Upgrade bool
	// Shown tells of each source of credentials whether there was one.
	Shown []bool
	// Charges are what the limits of the service said, in the order of enforcement.
	Charges []authz.Charge
	// Header are the headers of ours that the client gets.
	Header []edge.Field
	// Method and URI are the request's, without credentials.
	Method, URI string
}

func (t *Trial) trace(f *flight, o *Outcome) {
	into := f.req.Trace
	into.Outcome, into.Visit = *o, f.visit
	into.Outcome.flight, into.Outcome.Request = nil, nil
	into.Visit.Request, into.Visit.Trace = nil, nil
	into.Method, into.URI = f.req.Method, WithoutCredentials(t.policy, f.req.URI)
	into.Upgrade = f.req.Get("Upgrade") != ""
	into.Preflight = o.Location != nil && !o.Asked && !o.Denied && edge.Asks(t.policy, o.Location)
	if o.Asked {
		into.Shown = t.engine.Shown(&f.question)
	}
	into.Charges, into.Header = o.Charges(nil), o.Header()
}

// WithoutCredentials is a target whose credentials are dots: it can be shown.
func WithoutCredentials(c *policies.Compiled, uri string) string {
	path, query, found := strings.Cut(uri, "?")
	if !found || c.Identity == nil {
		return uri
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		for j := range c.Identity.Sources {
			if s := &c.Identity.Sources[j]; s.Carrier == policies.CarrierQuery && sameName(name, s.Name) {
				parts[i] = name + "=…"
			}
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// sameName compares as people would: whoever writes k%65y for key means it.
func sameName(said, name string) bool {
	plain, err := url.QueryUnescape(said)
	return strings.EqualFold(said, name) || err == nil && strings.EqualFold(plain, name)
}
