// Package geo knows where addresses are: the country, the continent and the
// autonomous system, out of MMDB databases.
//
//   - OpenCountries and OpenASNs read a database into memory (database.go), of
//     any layout of layout.go, and walk it once: a damaged one is found then.
//   - Countries.Lookup and ASNs.Lookup answer for one address, without allocating.
//   - Countries.Table, Countries.ContinentTable and ASNs.Table (table.go) turn the
//     part of a database that a policy names into the fewest prefixes that say it
//     (trie.go, shrink.go).
//
// Every answer has three states: known, unknown and private. Private is what is
// no public address (address.go), and is never taken for unknown; unknown is a
// public address that the database lacks, or of which it says what is no
// country, such as EU or A1. An IPv4 address is looked up as such in whatever
// form of IPv6 it comes, so no answer depends on how a database aliases those.
//
// Databases and tables are read-only once made, and safe to share.
//
// Floor 1: it imports policies only.
package geo
