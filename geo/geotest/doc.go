// Package geotest writes small MMDB databases for tests, in the layouts of
// those that people have.
//
// Floor 0: it imports nothing of ours.
package geotest
