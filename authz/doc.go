// Package authz is the service that NGINX asks about requests: allow or deny,
// what is left, and when to come back.
//
// One question goes through it like this:
//
//  1. The server (server.go, conn.go; farewell.go is how it ends) reads the head of a
//     subrequest, and never a body. Request (request.go) is views into fasthttp's
//     buffers; nothing else reads incoming headers.
//  2. Engine.Decide (engine.go) loads the policy once: a bound (bind.go), which
//     Swap has built completely and published with one pointer.
//  3. The route comes from the path of the subrequest (route.go), the tenant and
//     plan from the first credential that is shown (identity.go: API keys;
//     jwt.go: signed tokens; certificate.go; person.go: who is believed by
//     another's word), the client from an address (address.go). Whom the
//     policy does not know may be in a directory (found.go, admit.go). Refusals that need
//     no counter leave here.
//  4. Every limit that applies becomes one op (charge.go) with the name of its
//     counter (keys.go). The store charges all of them or none. If it cannot, the
//     route's fail mode decides.
//  5. Decision (decision.go) is written as 204, 401 or 403 and headers
//     (answer.go, dialect.go). Denials are logged afterwards, by another
//     goroutine (denials.go).
//
// Proxies that are no NGINX ask at /authz (forward.go): there the service finds the
// client and the route by itself, and is also what NGINX would have been before it
// asks (gate.go): access rules and rates, by the same code that replays logs. Clients
// get its words there (forward_answer.go), by the same code that renders them.
//
// Applications ask by themselves at /v1/ (app.go, app_take.go). What a request holds
// until it ends, or has cost in the end, is remembered (pending.go) by its name and
// whom it was for (asker.go): NGINX's datagrams (datagram.go) or the application
// (app_end.go) tell of it, and completion.go settles it.
//
// Beside it stands the admin port (admin.go) for those who watch and run the service:
// who may ask is guard.go's matter, tokens.go knows them. There operators see what a
// tenant has used (usage.go, census.go), reset it, and give and take beside the policy
// (operate.go, operate_terms.go): every change is written down first (audit.go), and
// kept with the counters, where a Ledger (ledger.go) of each instance finds it;
// openapi.yaml describes all of it. They ask what would become of a request
// (admin_explain.go): an Onlooker (explain.go) decides it, on a store at which it only
// looks. Decisions are counted in tables of fixed size (metrics.go, tally.go,
// accounts.go, found_meters.go), which collector.go reads for Prometheus. A Reloader
// (reload.go) keeps the newest good policy in force, at a signal, at a request, and
// when Watch (watch.go) sees a file change.
//
// What a quota has come to is handed over by the decision that saw it (notice.go),
// and told to webhooks by a Notifier (notifier.go, event.go, webhook.go, spike.go):
// once, by whichever instance, and from the disk (spool.go) if it must wait.
//
// Rules of the house. Authz stands on floor 2: it imports policies, policies/edge, policies/denial, geo, and
// authz/limit, memo and directory, and never gen. The path of a decision takes no
// lock of its own, allocates nothing of its own, logs nothing and never calls
// back; what it needs is resolved when a policy is swapped in. Whatever goes wrong in it, a panic
// included, ends as a Decision. No byte of a credential, user or header value
// leaves it: not in a counter's name, an answer or a log line.
package authz
