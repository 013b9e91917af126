// Package memo remembers what was found out, so that it is found out once and
// not for every request: a table of fixed size, whose readers take no lock and
// allocate nothing.
package memo
