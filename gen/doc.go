// Package gen writes NGINX configuration: one compiled policy becomes files that
// a site includes.
//
// The way of a policy through it:
//
//  1. Render makes a builder, which walks the compiled policy once and turns it
//     into views (view.go): access rules become maps of flags (condition.go,
//     access.go), edge limits keys and zones (key.go, edge.go), credentials maps
//     that let only what could be one pass (ask.go), denials pages (denial.go),
//     routes locations in NGINX's own order of matching (locations.go).
//  2. Views hold tokens and no strings. Only the constructors of token.go and
//     text.go make tokens, and they quote and check: a value of a policy cannot
//     end the argument it stands in.
//  3. The templates of package templates are filled with the views. The result is
//     Files: names and bytes, the same for the same policy. Views carry the place
//     of the policy that they come from; templates put marks around what it gave,
//     and the marks become a table, Origins (origin.go), and are in no file.
//  4. The caller decides: Write puts them into a directory, Diff compares them with
//     one, Check lets a real NGINX read them, and what it refuses is looked up in
//     Origins.
//
// What NGINX does with the files was proven on real ones (1.22 and later); where
// it is odd, the comment beside the line says so.
//
// What they come to can be tried without an NGINX too: package policies/edge, which
// lies below and has the numbers that both need.
//
// Floor 2: it imports policies, policies/edge, policies/denial, templates and geo,
// never authz. What both must agree on is policies/wire.go; what both say of a
// denial, policies/denial.
package gen
