// Package directory finds tenants that live in Redis: as many as one likes, of
// whom none is in the policy, and who come and go without a reload.
//
// The layout, which whoever sells plans writes and this package only reads:
//
//	sluice:key:HEX     a hash for each API key; HEX is its SHA-256, 64 lower-case digits
//	  tenant           whose it is (required)
//	  id               what logs call it, unique (required)
//	  plan             its own plan; absent: its tenant's
//	  simulate         the limit that it always meets, charging nothing
//	  disabled         1 or 0
//	  cidrs            networks that it counts from, with spaces or commas between; absent: anywhere
//	sluice:tenant:ID   a hash for each tenant
//	  plan             a plan of the policy (required)
//	  claim            what tokens and logins call it; absent: its ID
//	  disabled         1 or 0
//	  cidrs            as above, for all of its credentials
//	  name             for people; nobody reads it here
//	  override:LIMIT:NUMBER  a number of its own for a limit of its plan, as policies write
//	                   it: rate 100/s, burst 400, wait 250ms, window 5/1m, quota 500/day,
//	                   overage 50, concurrency 3, retries 60/m
//	  grant:LIMIT:FROM:UNTIL  units besides a quota, from one day to another, both included:
//	                   250000, and a reason behind it if there is one
//	sluice:claim:TEXT  a hash for each claim that is not its tenant's ID
//	  tenant           whose it is (required); he must say the same claim
//	sluice:cert:HEX    a hash for each client certificate; HEX is the SHA-256 of its DER
//	  tenant           whose it is (required)
//
// For example:
//
//	HSET sluice:tenant:umbrella plan pro override:speed:burst 400 cidrs "192.0.2.0/24"
//	HSET sluice:key:0f3a...c9 tenant umbrella id umbrella-web
//
// IDs are letters, digits, dots, dashes and underscores, 64 at most. A field that
// is not listed makes the record unusable: a misspelt `disabled` must not let
// anybody in. So does what the policy in force lacks or would refuse, which only it
// can say (policies.Compiled.Admit). Each is told to the log once, and counted. Nothing
// secret is in there: a key is known by its hash alone.
//
// What was read is believed for a minute, and that a key is nobody's for five
// seconds. Who changes a record says so, and it is read anew at once:
//
//	PUBLISH sluice:tenants key:HEX       or tenant:ID, claim:TEXT, cert:HEX, or * for everything
//
// While nobody listens to that channel, because Redis is away or forbids it, what
// was read is believed for a second only. While Redis is away those whom it had
// known are known on; of others nothing can be said (an error that wraps
// limit.ErrUnavailable), and the fail mode of the route decides.
//
// Find, Claimed and Certified (directory.go) are on the path of decisions: what is
// known they find in tables of fixed size, without a lock or an allocation. What is
// not is read (read.go) within the decision's deadline, behind a breaker, by so many
// at once. Records are taken apart in record.go and made in write.go. Run (listen.go)
// listens to changes.
package directory
