// Package edge is what NGINX does with the files that package gen writes, in Go:
// who the client is, which location takes the request, what the access rules
// say, and what limit_req and limit_conn make of it. With it a request can be
// tried without an NGINX, and at any time one likes.
//
// A request goes through a Model as it goes through the phases of NGINX:
//
//  1. Enter finds the client (policies.Compiled.ClientAddress), the server and the
//     location (location.go), and the access rules' answer (access.go). They work
//     in the rewrite phase: what they refuse no limit counts.
//  2. It then asks limit_req (bucket.go): leaky buckets in milliseconds and
//     thousandths of a request, with every rounding of NGINX 1.22. A request may
//     be held; the caller lets that time pass.
//  3. Connect asks limit_conn (conn.go), which counts what is under way.
//  4. Asks and Tell say whether the service is asked, and in which words (ask.go).
//  5. Leave ends the request, and frees what limit_conn counted.
//
// Time is the caller's: it never looks at a clock. A Model keeps as many buckets
// as there are clients that still matter (bucket.go); zones are never full in it,
// where NGINX forgets its oldest state, unless Bound says how much it may hold. It is
// not safe for concurrent use, but for Arrive, the half of Enter that counts nothing.
//
// What the renderer must compute as well stands in numbers.go and in Asks, and
// gen uses it: nothing is computed twice.
//
// Floor 1, beside geo, below gen and authz: it imports policies and geo.
package edge
