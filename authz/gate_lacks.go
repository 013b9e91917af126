package authz

import (
	"fmt"
	"slices"

	"sluice/policies"
)

// ForwardStatus says how questions of proxies that are no NGINX go.
type ForwardStatus struct {
	Asked bool `json:"asked"` // one came since the start
	// NotApplied is what the policy in force says and nobody does for them; never nil.
	NotApplied []string `json:"not_applied"`
}

func (e *Engine) forwardStatus() ForwardStatus {
	s := ForwardStatus{Asked: e.gate.state.Load() != nil, NotApplied: []string{}}
	if b := e.state.Load(); b != nil {
		s.NotApplied = append(s.NotApplied, e.places.Load().lacks(b.policy)...)
	}
	return s
}

// lacks are what a policy says that does not hold at forwardPath: what takes an NGINX,
// or a database that is not here.
func (p *Places) lacks(c *policies.Compiled) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for i := range c.Access {
		r := &c.Access[i]
		name := r.Name
		if name == "" {
			name = fmt.Sprint("rule ", i+1)
		}
		p.lacksClients(&r.Clients, "access rule "+name, say)
	}
	for i := range c.Edge {
		l := &c.Edge[i]
		what := "edge limit " + l.Name
		if l.Connections > 0 {
			say("%s counts connections, and nobody tells when one ends: it does not apply", what)
			continue
		}
		p.lacksClients(l.Only, what, say)
		p.lacksClients(l.Except, what, say)
		for _, d := range l.Per {
			if d.Kind == policies.DimCountry && p.tables.Countries == nil || d.Kind == policies.DimASN && p.tables.ASNs == nil {
				say("%s counts by %s, and there is no database: all clients are counted as one; want serve --%s-db FILE", what, d.Kind, d.Kind)
			}
		}
	}
	return append(out, lacksNGINX(c)...)
}

// lacksClients tells which of a set of clients cannot be known.
func (p *Places) lacksClients(s *policies.ClientSet, what string, say func(string, ...any)) {
	if s == nil {
		return
	}
	if p.tables.Countries == nil && (len(s.Countries) > 0 || len(s.Continents) > 0 || s.UnknownCountry) {
		say("%s means countries, and there is no database: every public client is in an unknown one; want serve --country-db FILE", what)
	}
	if p.tables.ASNs == nil && (len(s.ASNs) > 0 || s.UnknownASN) {
		say("%s means autonomous systems, and there is no database: every public client is in an unknown one; want serve --asn-db FILE", what)
	}
}

// lacksNGINX are what only NGINX can do, or tell of.
func lacksNGINX(c *policies.Compiled) []string {
	var out []string
	if c.Identity != nil {
		for i := range c.Identity.Sources {
			if c.Identity.Sources[i].Kind == policies.SourceCert {
				out = append(out, "identity: a client's certificate is NGINX's to verify: nobody has one")
			}
		}
		if c.Identity.Login != nil {
			out = append(out, "identity: your own authenticator is NGINX's to ask: nobody is logged in")
		}
	}
	if c.Settles() {
		out = append(out, "the end of a request is told by nobody: a place of `concurrency` is held for its lease, and `cost_from` and `count: {status: ...}` stay at the estimate, unless the application posts to /v1/release")
	}
	return out
}

// introduce says once, to whoever reads the log, what a new gate lacks.
func (e *Engine) introduce(s, before *gateState) {
	if before != nil && slices.Equal(s.lacks, before.lacks) || len(s.lacks) == 0 {
		return
	}
	e.log.Warn("asked at "+forwardPath+", where some of the policy does not apply", "policy", s.bound.policy.Hash, "not_applied", s.lacks)
}
