package edge

import (
	"regexp"
	"strings"

	"sluice/policies"
)

// asking is what the service is told of each request.
type asking struct {
	credentials []credential
	subjects    []subject
	certs       bool           // the client's certificate
	server      bool           // the server's name
	retried     *regexp.Regexp // nil: nobody counts retries
}

// credential is one place of credentials, for all sources that share it.
type credential struct {
	from    policies.Carrier
	name    string
	header  string   // in which it is sent
	schemes []string // each once
	bare    bool     // a source expects none
	most    int      // how long it may be, without its scheme
}

// subject is a value that a limit of the service counts by.
type subject struct {
	from         policies.Carrier
	name, header string
}

func newAsking(c *policies.Compiled) asking {
	a := asking{}
	if c.CountsRetries() {
		a.retried = regexp.MustCompile(Retried)
	}
	seen := map[string]bool{}
	if c.Identity != nil {
		for i := range c.Identity.Sources {
			a.credential(c, &c.Identity.Sources[i], seen)
		}
	}
	for _, d := range ServiceDims(c) {
		s := subject{name: d.Name}
		switch d.Kind {
		case policies.DimServer:
			a.server = true
			continue
		case policies.DimHeader:
			s.from, s.header = policies.CarrierHeader, policies.HeaderValuePrefix+d.Name
		case policies.DimCookie, policies.DimQuery:
			s.from = policies.CarrierCookie
			if d.Kind == policies.DimQuery {
				s.from = policies.CarrierQuery
			}
			s.header = CarriedName(s.from, d.Name)
		default:
			continue
		}
		if !seen[s.header] {
			seen[s.header] = true
			a.subjects = append(a.subjects, s)
		}
	}
	return a
}

func (a *asking) credential(c *policies.Compiled, s *policies.Source, seen map[string]bool) {
	if s.Kind == policies.SourceCert {
		a.certs = true
		return
	}
	cred := credential{from: s.Carrier, name: s.Name, header: s.Name, most: LongestCredential(c, s.Carrier, s.Name)}
	id := strings.ToLower(s.Name)
	if s.Carrier != policies.CarrierHeader {
		cred.header = CarriedName(s.Carrier, s.Name)
		id = cred.header
	}
	if seen[id] {
		return
	}
	seen[id] = true
	if s.Carrier == policies.CarrierHeader {
		cred.schemes, cred.bare = Schemes(c, s.Name)
	}
	a.credentials = append(a.credentials, cred)
}

// Schemes are those that sources expect in a header, each once, and whether one
// expects none.
func Schemes(c *policies.Compiled, header string) (schemes []string, bare bool) {
	seen := map[string]bool{}
	for i := range c.Identity.Sources {
		s := &c.Identity.Sources[i]
		switch {
		case s.Carrier != policies.CarrierHeader || !strings.EqualFold(s.Name, header):
		case s.Scheme == "":
			bare = true
		case !seen[strings.ToLower(s.Scheme)]:
			seen[strings.ToLower(s.Scheme)] = true
			schemes = append(schemes, s.Scheme)
		}
	}
	return schemes, bare
}

// LongestCredential is how long a credential in that place may be, in bytes and
// without its scheme: a token is longer than a key.
func LongestCredential(c *policies.Compiled, from policies.Carrier, name string) int {
	for i := range c.Identity.Sources {
		s := &c.Identity.Sources[i]
		same := s.Name == name || from == policies.CarrierHeader && strings.EqualFold(s.Name, name)
		if s.Kind == policies.SourceJWT && s.Carrier == from && same {
			return policies.MaxToken
		}
	}
	return policies.MaxCredential
}

// CarriedName is the header in which NGINX sends a cookie or a query parameter.
func CarriedName(from policies.Carrier, name string) string {
	if from == policies.CarrierCookie {
		return policies.HeaderCookiePrefix + name
	}
	return policies.HeaderQueryPrefix + name
}

// Asks tells whether the service is asked about a visit, and what NGINX does
// without an answer. A CORS preflight is not asked about.
func (m *Model) Asks(v *Visit) (policies.FailMode, bool) {
	if v.Location == nil || !m.asks[v.Location.Index] || preflight(v.Request) {
		return "", false
	}
	if m.c.Mode == policies.ModeShadow {
		return policies.FailOpen, true
	}
	return v.Location.OnStoreDown, true
}

func preflight(r *Request) bool {
	return r.Method == "OPTIONS" && r.Get("Origin") != "" && r.Get("Access-Control-Request-Method") != ""
}

// Tell appends what the service is told besides method, target, host, address,
// request id and policy: credentials and values, those that are not empty.
func (m *Model) Tell(dst []Field, v *Visit) []Field {
	put := func(name, value string) {
		if value != "" {
			dst = append(dst, Field{name, value})
		}
	}
	if v.Exempt {
		put(policies.HeaderExempt, "1")
	}
	for i := range m.ask.credentials {
		c := &m.ask.credentials[i]
		put(c.header, c.shown(v.Request.Value(c.from, c.name)))
	}
	if m.ask.certs {
		put(policies.HeaderCert, v.Request.Cert)
	}
	if m.ask.server {
		put(policies.HeaderServer, v.Server)
	}
	for i := range m.ask.subjects {
		s := &m.ask.subjects[i]
		if value := v.Request.Value(s.from, s.name); printable(value, policies.MaxValue) {
			put(s.header, value)
		}
	}
	if m.ask.retried != nil {
		if m.ask.isRetry(v.Request) {
			put(policies.HeaderRetry, "1")
		}
		if key := v.Request.Get("Idempotency-Key"); within(key, policies.MaxValue, func(c byte) bool { return c >= ' ' && c < 0x7f }) {
			put(policies.HeaderIdempotency, key)
		}
	}
	return dst
}

// Shows tells whether the client shows any credential that the service is told of,
// good or not. Where there is none, a chained authenticator is asked.
func (m *Model) Shows(v *Visit) bool {
	for i := range m.ask.credentials {
		c := &m.ask.credentials[i]
		if c.shown(v.Request.Value(c.from, c.name)) != "" {
			return true
		}
	}
	return m.ask.certs && v.Request.Cert != ""
}

// shown is what is sent of a credential: it as it came, `!` when it cannot be
// one, nothing when none of ours is there.
func (c *credential) shown(value string) string {
	authorization := c.from == policies.CarrierHeader && strings.EqualFold(c.name, "Authorization")
	switch {
	case value == "":
		return ""
	case c.from != policies.CarrierHeader:
		if visible(value, c.most) {
			return value
		}
		return policies.InvalidCredential
	}
	for _, scheme := range c.schemes {
		if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
			continue
		}
		rest, spaced := strings.CutPrefix(value[len(scheme):], " ")
		switch {
		case spaced && visible(rest, c.most):
			return value
		case authorization && (spaced || rest == ""):
			return policies.InvalidCredential
		}
	}
	switch {
	case (c.bare || len(c.schemes) == 0) && visible(value, c.most):
		return value
	case authorization: // another scheme is somebody else's business
		return ""
	}
	return policies.InvalidCredential
}

// isRetry tells whether the client says that this is a retry.
func (a *asking) isRetry(r *Request) bool {
	said := [...]string{r.Get("X-Retry-Attempt"), r.Get("Retry-Attempt"), r.Get("X-Stainless-Retry-Count")}
	if said == [3]string{} {
		return false
	}
	return a.retried.MatchString(strings.Join(said[:], "|"))
}

// Retried is what NGINX matches the three headers with by which clients number
// their attempts, joined by bars.
const Retried = `(?:^|\|)0*[1-9][0-9]{0,8}(?:\||\z)`
