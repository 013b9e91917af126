package authz

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"sluice/policies"
)

// maxFields is how many header fields of a question are kept. NGINX sends one
// for each credential and each `per` value of the policy.
const maxFields = 256

// Request is one question. Its byte slices are borrowed from whoever filled it
// and hold until Reset; Decide keeps none of them.
type Request struct {
	// Mode is what NGINX does itself when the service is away: FailOpen or
	// FailClosed.
	Mode policies.FailMode
	// Route is the name of the route that NGINX chose.
	Route []byte
	// Method, URI (raw, with its query) and Host are those of the client's request.
	Method, URI, Host []byte
	// IP is the client's address, after trusted proxies.
	IP []byte
	// Policy is the hash of the policy that NGINX was rendered from.
	Policy []byte
	// Login tells that the site's own authenticator let the request pass, and
	// LoginUser and LoginTenant whom it named.
	Login                  bool
	LoginUser, LoginTenant []byte
	// ID is the client's request: NGINX's $request_id.
	ID []byte
	// Retry tells that the client says this is a retry.
	Retry bool
	// Idempotency is the client's Idempotency-Key.
	Idempotency []byte
	// NoRoom tells that the answer cannot be held: too many are. Then nothing is
	// taken ahead.
	NoRoom bool
	// Exempt tells that an access rule freed the client from all limits.
	Exempt bool

	// What an application says that asks by itself (POST /v1/take); no header sets it.
	app *appRequest

	forwarded bool // by a proxy that is no NGINX: nobody has chosen a route

	fields []field // credentials and values, in the order they came
}

// field is a header field whose meaning only the policy knows.
type field struct{ name, value []byte }

// Reset makes r empty and lets go of everything borrowed.
func (r *Request) Reset() {
	clear(r.fields)
	*r = Request{fields: r.fields[:0]}
}

// Read fills r from a subrequest of NGINX, which it borrows. It tells whether
// the path is one of ours: AuthPrefix, open or closed, a route.
func (r *Request) Read(from *fasthttp.RequestHeader) bool {
	r.Reset()
	if !r.readPath(from.RequestURI()) {
		return false
	}
	for name, value := range from.All() {
		r.Set(name, value)
	}
	return true
}

func (r *Request) readPath(uri []byte) bool {
	rest, ours := bytes.CutPrefix(uri, []byte(policies.AuthPrefix))
	if !ours {
		return false
	}
	if i := bytes.IndexByte(rest, '?'); i >= 0 {
		rest = rest[:i]
	}
	mode, route, _ := bytes.Cut(rest, []byte("/"))
	switch {
	case len(route) == 0 || bytes.IndexByte(route, '/') >= 0:
		return false
	case string(mode) == "open":
		r.Mode = policies.FailOpen
	case string(mode) == "closed":
		r.Mode = policies.FailClosed
	default:
		return false
	}
	r.Route = route
	return true
}

// Set puts in one header field, borrowing both slices. The name is in the form
// that fasthttp normalises to, such as X-Api-Key. Of two fields with one name
// the first counts.
func (r *Request) Set(name, value []byte) {
	switch string(name) {
	case policies.HeaderMethod:
		r.Method = value
	case policies.HeaderURI:
		r.URI = value
	case policies.HeaderHost:
		r.Host = value
	case policies.HeaderIP:
		r.IP = value
	case policies.HeaderPolicy:
		r.Policy = value
	case policies.HeaderLogin:
		r.Login = string(value) == "1"
	case policies.HeaderLoginUser:
		r.LoginUser = value
	case policies.HeaderLoginTenant:
		r.LoginTenant = value
	case policies.HeaderRequest:
		r.ID = value
	case policies.HeaderRetry:
		r.Retry = string(value) == "1"
	case policies.HeaderIdempotency:
		r.Idempotency = value
	case policies.HeaderExempt:
		r.Exempt = string(value) == "1"
	default:
		if len(r.fields) < maxFields {
			r.fields = append(r.fields, field{name, value})
		}
	}
}

// value finds a field by its normalised name; nil when it is absent or empty.
func (r *Request) value(name []byte) []byte {
	for i := range r.fields {
		if f := &r.fields[i]; bytes.Equal(f.name, name) && len(f.value) > 0 {
			return f.value
		}
	}
	return nil
}
