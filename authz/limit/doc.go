// Package limit counts: it decides whether a request fits into its limits, and
// charges it. It knows limits by name and number, and neither policies nor HTTP.
// It stands on floor 0 and imports nothing of ours.
//
// A decision goes like this:
//
//  1. The caller makes one Op for each limit that applies: the kind, the counter's
//     key, the numbers of the policy, the cost. Store.Take gets all of them at once.
//  2. The store reads its clock once, finds each counter and brings it to now and
//     under the policy's numbers (bucket.adopt, window.roll, quota.roll).
//  3. If every enforced op fits, all are charged; if one does not, none is, but
//     for Retries. Somebody who is refused by one limit has paid for no other, and
//     two limits never disagree about how much has passed.
//  4. Each op is answered by a State, from which a client's headers are written,
//     and Take names the op that refused.
//  5. When the request has ended, Store.Settle gives its leases back and corrects
//     its costs, each at the place (State.Stamp) where Take counted them.
//
// # The kinds
//
// Rate, and Retries: a token bucket (bucket.go). It can be drawn below nothing by
// those who may be held until their tokens come, and keep a reserve for others.
//
// FixedWindow and SlidingWindow: two counters, of this window and the last one
// (window.go). LogWindow: when each unit came, and how many until then, so that any
// window is the difference of two totals (logbook.go).
//
// Quota: what was used in one period of a Calendar (quota.go, calendar.go). Stored
// is what was used and never what is left, so new numbers hold at once. What was
// used as overage is counted apart.
//
// Concurrency: a set of leases with names, each with its own end (lease.go). Who
// never gives his back is healed by time.
//
// An Op says all numbers each time, and stores keep no policy. Another length of a
// window, or another period, is another counter; other numbers are not.
//
// # The arithmetic
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
// Windows and quotas begin at times of the calendar, and never go back to one that is
// over: while the clock is behind, what has begun goes on, and waits say so. A log
// and a lease know the time of every charge.
//
// A command that comes twice, or late, grants nothing twice. A lease has a name. A
// quota remembers the names of requests for a minute, and so does every
// correction: a refund is the one step that gives. A rate charged twice costs the
// client a request, and no limit; a refund whose window is over gives nothing.
//
// A bucket that is full is forgotten after a grace, and nothing depends on when: a
// full bucket is the same as one never used, also when its size is raised. A
// clock that steps back by no more than the grace gives nothing twice; while it
// is behind a bucket's time, this bucket gains nothing, and its waits say so.
//
// # The stores
//
// Memory is the store of one process: shards by tag, each with a lock and a table
// (table.go). A decision takes the locks of its tags in ascending order. Every
// counter is five words beside its key; logs and leases have more elsewhere in
// their shard.
//
// Redis is the store of many: one script for every step (take.lua, and a file for
// each kind), one call for a decision, because Redis runs a script with nobody in
// between; on Redis' own clock, because those of the callers differ. Its clock has
// no calendar: the caller sends the beginnings of the periods around now, and
// Redis' clock chooses. Nothing that may have happened is sent again: a charge
// lost costs the caller's fail mode, a charge made twice costs the client.
//
// Embedded is a Memory that forgets nothing that was sold: quotas are also in one
// file (embedded_file.go). What changed is collected under the locks of the step
// (embedded_journal.go), one commit writes all that came during the last one, and a
// hard charge is answered after its commit.
//
// Soft stands in front of a store of many and counts soft quotas in each instance
// (soft_counter.go), as long as what the store does not know is within the
// instance's share; it writes the sums in batches that can be repeated
// (soft_flush.go).
//
// Leased stands in front of a store of many, too (leased.go). Of a rate that is hot it
// takes a share ahead of use, in the step that charges the request at hand, and spends
// it here (leased_take.go, leased_share.go); the next one is asked for before this one
// is used up (leased_ahead.go). The shared bucket is smaller by what can come while a
// share lives, so that what is spent late never adds up to more than the policy says.
//
// Notes (notes.go) are no counters: what operators say at run time, kept in the same
// place, for people's changes and never within a decision.
//
// Memory and Redis are held to the same answers by package limittest: by cases, and
// by random histories compared with a plain model step by step.
//
// A new kind of limit brings its own pure file beside bucket.go, its own form in
// form.go and branches in cell.go and settle.go, its own .lua file within other.lua,
// and its own part of limittest's model; steps 1 to 5 stay as they are.
package limit
