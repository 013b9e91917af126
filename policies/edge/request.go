package edge

import (
	"net/netip"
	"strings"

	"sluice/policies"
)

// Request is a client's request as it reaches NGINX. A Model keeps it from Enter
// to Leave; it must not change meanwhile.
type Request struct {
	// Peer is who connected; invalid for a unix socket.
	Peer netip.Addr
	// Method is as it was sent; empty: GET. URI is the request target, raw, with its
	// query. Host is that of the request, with or without a port.
	Method, URI, Host string
	// Header are the fields in the order in which they came.
	Header []Field
	// Cert is the client's certificate, if it is verified: as PEM, escaped as a part
	// of a URI.
	Cert string
	// Country and ASN say where the client is and win over any database: a country's
	// code, or unknown or private. Empty and 0: look it up.
	Country policies.Country
	ASN     policies.ASN
}

// Field is one header field.
type Field struct{ Name, Value string }

// Get is the value of a header as $http_NAME has it: that of the first field.
// Names with an underscore never arrive: NGINX drops them.
func (r *Request) Get(name string) string {
	for i := range r.Header {
		if f := &r.Header[i]; len(f.Name) == len(name) && strings.EqualFold(f.Name, name) && strings.IndexByte(f.Name, '_') < 0 {
			return strings.Trim(f.Value, " ")
		}
	}
	return ""
}

// all are the values of a header that may come in several lines.
func (r *Request) all(name string) []string {
	var out []string
	for i := range r.Header {
		if f := &r.Header[i]; strings.EqualFold(f.Name, name) {
			out = append(out, strings.Trim(f.Value, " "))
		}
	}
	return out
}

// cookies are all Cookie fields as one, as $http_cookie has them.
func (r *Request) cookies() string {
	first, more := "", false
	for i := range r.Header {
		if !strings.EqualFold(r.Header[i].Name, "Cookie") {
			continue
		}
		if more = first != ""; more {
			return strings.Join(r.all("Cookie"), "; ")
		}
		first = strings.Trim(r.Header[i].Value, " ")
	}
	return first
}

// Value is one value of a request as it was sent, empty when it is absent. Of
// several the first counts.
func (r *Request) Value(from policies.Carrier, name string) string {
	switch from {
	case policies.CarrierQuery:
		return queryValue(r.URI, name)
	case policies.CarrierCookie:
		return cookieValue(r.cookies(), name)
	}
	return r.Get(name)
}

// queryValue is what a query parameter says, not decoded. A fragment, which no
// client should send, ends the query.
func queryValue(uri, name string) string {
	if i := strings.IndexByte(uri, '#'); i >= 0 {
		uri = uri[:i]
	}
	_, rest, found := strings.Cut(uri, "?")
	for found {
		var part string
		part, rest, found = strings.Cut(rest, "&")
		if value, ok := cutName(part, name); ok {
			return value
		}
	}
	return ""
}

// cookieValue is the value of the first cookie of this name.
func cookieValue(cookies, name string) string {
	for rest, found := cookies, true; found; {
		var part string
		part, rest, found = strings.Cut(rest, ";")
		if value, ok := cutName(strings.TrimLeft(part, " "), name); ok {
			return value
		}
	}
	return ""
}

// cutName cuts NAME= off.
func cutName(part, name string) (string, bool) {
	if len(part) > len(name) && part[len(name)] == '=' && part[:len(name)] == name {
		return part[len(name)+1:], true
	}
	return "", false
}

// printable tells whether a value has 1 to so many bytes and none of a control
// character: `^[^\x00-\x1f\x7f]{1,N}\z`.
func printable(s string, most int) bool {
	return within(s, most, func(c byte) bool { return c >= ' ' && c != 0x7f })
}

// visible is the same of visible ASCII: `^[\x21-\x7e]{1,N}\z`.
func visible(s string, most int) bool {
	return within(s, most, func(c byte) bool { return c > ' ' && c < 0x7f })
}

func within(s string, most int, fits func(byte) bool) bool {
	if s == "" || len(s) > most {
		return false
	}
	for i := range len(s) {
		if !fits(s[i]) {
			return false
		}
	}
	return true
}
