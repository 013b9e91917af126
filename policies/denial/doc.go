// Package denial is what clients read of a denial: a problem in JSON, a line of
// text, or a small page for browsers, in the language they like best of those that
// the policy has.
//
// It is said in two places: by NGINX, in which package gen writes it down as maps
// and pages, and by the service, which answers other proxies itself (Writer). Both
// take their words from here: the sentences and messages (words.go), the parts of
// each body and their order (form.go, page.go). What NGINX chooses by regular
// expressions a Writer chooses by code (choose.go); the tests of gen hold the two
// together, byte for byte, on a real NGINX.
//
// Floor 1: it imports policies.
package denial
