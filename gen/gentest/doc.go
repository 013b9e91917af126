// Package gentest starts a real NGINX for tests: on loopback only, with all of
// its files inside of a directory of the test, ended with the test.
//
// Start and Test run one; FreePort, WriteFiles and Hermetic help to write what
// it reads; Authz and App are the two servers behind it.
//
// Floor 0: it imports nothing of ours.
package gentest
