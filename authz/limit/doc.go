// Package limit counts: it decides whether a request fits into its limits, and
// charges it. It knows limits by name and number, and neither policies nor HTTP.
// It stands on floor 0 and imports nothing of ours.
//
// A decision goes like this:
//
//  1. The caller makes one Op for each limit that applies: the counter's key, the
//     numbers of the policy, the cost. Store.Take gets all of them at once.
//  2. The store reads its clock once, finds each bucket and brings it under the
//     policy's numbers (bucket.adopt).
//  3. If every enforced op fits, all are charged; if one does not, none is.
//     Somebody who is refused by one limit has paid for no other, and two limits
//     never disagree about how much has passed.
//  4. Each op is answered by a State, from which a client's headers are written,
//     and Take names the op that refused.
//
// # The algorithm
//
// A rate is a token bucket, as in Turner's leaky bucket as a meter ("New
// directions in communications", 1986) and ATM's generic cell rate algorithm
// (ITU-T I.371), kept as a level and a time rather than as one theoretical arrival
// time: a level can be clamped when a reload changes its size, shown as what is
// left, and charged with any cost.
//
// All numbers are integers: levels in millionths of a unit, times in
// microseconds, the refill a fraction in lowest terms. Fractions would drift
// apart between Go and Lua, and be lost where Redis turns a number into text. A
// product that is too large for an integer is divided piece by piece, exactly
// (mulDiv in Go, muldiv in Lua). What must be rounded is rounded against the
// client: levels down, waits up.
//
// A denial writes nothing. What has come of the next token stays with the time of
// the last write, so somebody who asks too often waits no longer than somebody
// who asks in time, and a storm of denials costs no write. The one exception is a
// bucket that was written with other numbers: time up to now counts at the old
// ones, and the new ones begin, or a tenant with a better plan would have to wait
// for the end of the old wait to get it.
//
// A bucket that is full is forgotten after a grace, and nothing depends on when: a
// full bucket is the same as one never used, also when its size is raised. A
// clock that steps back by no more than the grace gives nothing twice; while it
// is behind a bucket's time, this bucket gains nothing, and its waits say so.
//
// # The stores
//
// Memory is the store of one process: shards by tag, each with a lock and a table
// (table.go). A decision takes the locks of its tags in ascending order.
//
// Redis is the store of many: take.lua, one call for a decision, because Redis
// runs a script with nobody in between; on Redis' own clock, because those of
// the callers differ. Nothing that may have happened is sent again: a charge
// lost costs the caller's fail mode, a charge made twice costs the client.
//
// Both are held to the same answers by package limittest: by cases, and by random
// histories compared with a plain model step by step.
//
// A new kind of limit brings its own pure file beside bucket.go, its own first
// byte of the stored string and its own branch of take.lua's loop; steps 1 to 4
// stay as they are.
package limit
