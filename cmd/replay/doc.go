// Package replay runs access logs through a policy, at the log's own times: who
// would be denied, by what, and since when.
//
// A Log (package accesslog) gives requests in the order in which they began. Each
// becomes a trial.Request (request.go): with the client by the policy's own rules
// of trust, the headers that the policy looks at as far as the log says them, and
// the tenant whom a column of the log names (whose.go). A trial (package trial) is
// the same NGINX model and the same engine that explain and test ask; there is no
// second implementation of deciding here.
//
// What comes of each request is counted (tally.go, timeline.go, demand.go) in
// tables that grow with clients, tenants and routes, never with lines. At the end
// they become a Report (report.go): the JSON that --format json prints, which text
// (text.go) and a page with charts (page.go) show to people.
//
// With Options.Against every request runs through two policies, and the report
// says what the difference does to whom.
//
// A log says less than a client did. What it does not say, and the policy wants to
// know, is in the report's notes (notes.go): nothing is assumed in silence. What it
// says is not believed either: credentials are only ever handed to the engine,
// which hashes them; no query string is kept; what is shown of a path has numbers
// and whatever looks like a token replaced.
package replay
