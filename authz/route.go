package authz

import (
	"bytes"

	"sluice/policies"
)

// route finds what the question is about. known tells whether the name in the
// path is a route of this policy; the route is nil when nothing fits.
//
// NGINX has chosen the location, so the name decides; of the routes that share
// the location, the first whose methods and hosts fit. When none does, and when
// the name is from another policy, the client's own URI is matched.
func (b *bound) route(req *Request, d *Decision) (r *boundRoute, known bool) {
	if req.forwarded {
		return b.match(req, d), true // nobody has chosen a location
	}
	named := b.policy.RouteNamed(req.Route)
	if named == nil {
		d.strange = true
		return b.match(req, d), false
	}
	if takesMethod(named, req.Method) {
		return &b.routes[named.Index], true
	}
	for _, o := range b.routes[named.Index].siblings {
		if takesMethod(o, req.Method) && (len(o.Hosts) == 0 || o.TakesHost(hostName(req.Host))) {
			return &b.routes[o.Index], true
		}
	}
	return b.match(req, d), true
}

// match finds a route as the rendered locations would. It allocates: requests
// come here only when the policy has no route for their method, or NGINX has
// another policy.
func (b *bound) match(req *Request, d *Decision) *boundRoute {
	path, ok := policies.NormalizePath(d.path[:0], req.URI)
	if !ok {
		return nil
	}
	d.path = path
	r := b.policy.Match(hostName(req.Host), string(req.Method), path)
	if r == nil {
		return nil
	}
	return &b.routes[r.Index]
}

// takesMethod is Route.TakesMethod for borrowed bytes. A question that names no
// method fits every route.
func takesMethod(r *policies.Route, method []byte) bool {
	if len(r.Methods) == 0 || len(method) == 0 {
		return true
	}
	for _, m := range r.Methods {
		if m == string(method) {
			return true
		}
	}
	return false
}

// hostName is a Host as routes have it: in lower case, without a port.
func hostName(host []byte) string {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && bytes.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return string(bytes.ToLower(host))
}
