// Package trial tries requests on a policy, the whole way and at any time: what
// NGINX does with them (package policies/edge), and what the service decides (package
// authz, with a store of limits on a clock of its own). There is no second
// implementation of deciding: what runs is what runs in production.
//
// explain, test and replay stand on it:
//
//	t, err := trial.New(compiled, trial.Options{Start: start})
//	t.Submit(&trial.Request{At: start, Request: edge.Request{…}}, func(o *trial.Outcome) { … })
//	t.Drain()
//
// Time moves only with requests: Submit takes it to Request.At, never back. What
// falls due until then comes first: requests that limit_req holds go on, and
// those that take their time (Request.Takes) end, which frees connections and
// leases and settles what their status does not count. So requests must come in
// the order of their times. Submit answers at once, but for a request that the
// edge holds: that one's answer comes when time has come so far, or with Drain.
//
// Without a Request.Trace nothing is recorded, and a request costs about two
// microseconds. With one every step is, those that did not apply included.
//
// What a trial does not have: full zones, the deny cache (a denial that it keeps
// tells the same, with an older Retry-After), a service or a store that is away,
// and places of clients without a database.
package trial
