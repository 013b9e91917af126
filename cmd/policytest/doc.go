// Package policytest runs the tests of a policy (policies.TestFile, DESIGN.md
// section 8) on package trial: with a clock of their own, through the edge and
// the service alike.
//
// Each test begins with all counters empty. Its requests are put in the order of
// their times, and of two at one time the one that stands first in the file comes
// first (schedule.go). What an entry expects must hold of each of its requests
// (expect.go). A test that fails is run once more with traces: time is its own, so
// it goes the same way, and Failure.Why explains what came.
//
// Coverage (coverage.go) tells what of the policy no request has touched.
package policytest
