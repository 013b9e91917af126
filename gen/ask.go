package gen

import (
	"fmt"
	"regexp"
	"strings"

	"sluice/policies"
	"sluice/policies/edge"
)

// asking is what the service is told in each subrequest.
type asking struct {
	headers []header
	blocks  []block
	seen    map[string]bool
	longest map[string]int // credentials, by the header that brings them, in bytes
	// shown are the names of headers that carry credentials.
	shown []string
	// credentials are the variables that hold them, empty when none is shown.
	credentials []string
}

// ask lists the headers of the subrequest. Nothing else is sent: a client's
// own X-Sluice-* never arrives.
func (b *builder) ask(exempting bool) asking {
	a := asking{seen: map[string]bool{}, longest: map[string]int{}}
	a.set(policies.HeaderMethod, word("$request_method"))
	a.set(policies.HeaderURI, word("$request_uri"))
	a.set(policies.HeaderHost, word("$host"))
	a.set(policies.HeaderIP, word("$remote_addr"))
	a.set(policies.HeaderRequest, word("$request_id"))
	a.set(policies.HeaderPolicy, b.take(Quote(b.c.Hash)))
	if exempting {
		a.set(policies.HeaderExempt, word("$sluice_exempt"))
	}
	if b.c.Identity != nil {
		for i := range b.c.Identity.Sources {
			b.credential(&a, &b.c.Identity.Sources[i])
		}
		from("identity.sources", a.blocks)
	}
	for _, d := range edge.ServiceDims(b.c) {
		if d.Kind == policies.DimServer {
			a.set(policies.HeaderServer, word("$server_name"))
			continue
		}
		b.subject(&a, d)
	}
	if b.c.CountsRetries() {
		b.retries(&a)
	}
	return a
}

// retries tells the service what the client says of retries: the attempt's
// number, by the names that clients give it, and the key that repetitions share.
func (b *builder) retries(a *asking) {
	m := newMap(join(isSet("http_x_retry_attempt"), part{lit: "|"}, isSet("http_retry_attempt"), part{lit: "|"}, isSet("http_x_stainless_retry_count")),
		"sluice_is_retry", "A retry, by its own word.")
	m.otherwise(none())
	m.line(ownRegex(edge.Retried), word("1"))
	key := newMap(word("$http_idempotency_key"), "sluice_idempotency")
	key.otherwise(none())
	key.line(ownRegex(fmt.Sprintf(`^[\x20-\x7e]{1,%d}\z`, policies.MaxValue)), word("$http_idempotency_key"))
	a.blocks = append(a.blocks, m, key)
	a.set(policies.HeaderRetry, word("$sluice_is_retry"))
	a.set(policies.HeaderIdempotency, word("$sluice_idempotency"))
}

func (a *asking) set(name string, value Token) {
	a.headers = append(a.headers, header{Name: word(name), Value: value})
}

// credential sends one credential through a map that lets only what could be
// one pass; all else is sent as invalid, not as missing.
func (b *builder) credential(a *asking, s *policies.Source) {
	switch {
	case s.Kind == policies.SourceCert:
		a.certificate()
		return
	case s.Carrier == policies.CarrierHeader:
		b.headerCredential(a, s.Name)
		return
	}
	name := edge.CarriedName(s.Carrier, s.Name)
	if a.seen[name] {
		return
	}
	a.seen[name] = true
	source := b.value(s.Carrier, s.Name)
	m := newMap(variable(source), "sluice_cred"+strings.TrimPrefix(source, "sluice"))
	m.otherwise(b.take(Quote(policies.InvalidCredential)))
	m.line(none(), none())
	a.longest[name] = edge.LongestCredential(b.c, s.Carrier, s.Name)
	m.line(ownRegex(tokenOf(a.longest[name])), variable(source))
	a.blocks = append(a.blocks, m)
	a.credentials = append(a.credentials, m.name())
	a.headers = append(a.headers, header{Name: b.take(headerName(name)), Value: m.Variable})
}

// certificate sends the client's certificate when NGINX has verified it.
func (a *asking) certificate() {
	whole := newMap(word("$ssl_client_verify"), certVariable, "The client's certificate, if it is verified.")
	whole.otherwise(none())
	whole.line(word("SUCCESS"), word("$ssl_client_escaped_cert"))
	short := newMap(word("$ssl_client_verify"), certPrintVariable)
	short.otherwise(none())
	short.line(word("SUCCESS"), word("$ssl_client_fingerprint"))
	a.blocks = append(a.blocks, whole, short)
	a.credentials = append(a.credentials, certPrintVariable)
	a.set(policies.HeaderCert, whole.Variable)
}

// The certificate, and the short word that stands for it in keys.
const (
	certVariable      = "sluice_cert"
	certPrintVariable = "sluice_cert_print"
)

// headerCredential is credential for a header, with the schemes of all sources
// that share it.
func (b *builder) headerCredential(a *asking, name string) {
	if a.seen[strings.ToLower(name)] {
		return
	}
	a.seen[strings.ToLower(name)] = true
	a.shown = append(a.shown, name)
	source := b.value(policies.CarrierHeader, name)
	m := newMap(variable(source), "sluice_cred_header_"+headerIdent(name))
	schemes, bare := edge.Schemes(b.c, name)
	most := edge.LongestCredential(b.c, policies.CarrierHeader, name)
	a.longest[name] = most
	authorization := strings.EqualFold(name, "Authorization")
	switch {
	case authorization:
		// Another scheme is somebody else's business.
		m.otherwise(none())
	default:
		m.otherwise(b.take(Quote(policies.InvalidCredential)))
		m.line(none(), none())
	}
	for _, scheme := range schemes {
		m.line(b.take(Literal("~*^"+regexp.QuoteMeta(scheme)+" "+tokenOf(most)[1:])), variable(source))
		if authorization {
			m.line(b.take(Literal("~*^"+regexp.QuoteMeta(scheme)+`(?: |\z)`)), b.take(Quote(policies.InvalidCredential)))
		}
	}
	if bare || len(schemes) == 0 {
		m.line(ownRegex(tokenOf(most)), variable(source))
	}
	a.blocks = append(a.blocks, m)
	a.credentials = append(a.credentials, m.name())
	a.headers = append(a.headers, header{Name: b.take(headerName(name)), Value: m.Variable})
}

// tokenOf matches visible ASCII up to a length, and nothing else: so no two
// values, which NGINX since 1.23 joins with a comma and a space.
func tokenOf(most int) string { return fmt.Sprintf(`^[\x21-\x7e]{1,%d}\z`, most) }

// subject sends one value that a limit of the service counts by. One that is
// too long counts as missing; its expression is the service's to apply.
func (b *builder) subject(a *asking, d policies.Dim) {
	var source, name string
	switch d.Kind {
	case policies.DimHeader:
		source, name = b.value(policies.CarrierHeader, d.Name), policies.HeaderValuePrefix+d.Name
	case policies.DimCookie:
		source, name = b.value(policies.CarrierCookie, d.Name), edge.CarriedName(policies.CarrierCookie, d.Name)
	case policies.DimQuery:
		source, name = b.value(policies.CarrierQuery, d.Name), edge.CarriedName(policies.CarrierQuery, d.Name)
	default:
		return
	}
	if a.seen[name] {
		return
	}
	a.seen[name] = true
	v := "sluice_value_" + strings.TrimPrefix(source, "sluice_")
	if d.Kind == policies.DimHeader {
		v = "sluice_value_header_" + headerIdent(d.Name)
	}
	m := newMap(variable(source), v)
	m.otherwise(none())
	m.line(ownRegex(fmt.Sprintf(`^[^\x00-\x1f\x7f]{1,%d}\z`, policies.MaxValue)), variable(source))
	a.blocks = append(a.blocks, m)
	a.headers = append(a.headers, header{Name: b.take(headerName(name)), Value: m.Variable})
}
