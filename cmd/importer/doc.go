// Package importer turns the limits of an existing NGINX site into a policy.
//
//  1. places: the locations of every server, each with what NGINX lets it
//     inherit, become routes; those that make no difference are left out.
//  2. limits: limit_req and limit_conn become edge limits. keys and cases say
//     what a zone counts, through the maps and geos that its key is made of.
//  3. access: allow, deny, and an if that returns 4xx become access rules.
//  4. client and authenticator: set_real_ip_from and auth_request.
//  5. write puts the draft down as YAML with the place that each line is from.
//
// What the language cannot say, or not so, is a note with file and line; no
// value is guessed in silence. The text is the result, not a policies.Policy:
// comments are half of it.
//
// Top floor: it belongs to the command line.
package importer
