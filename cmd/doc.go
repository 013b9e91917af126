// Package cmd is the command line: one file a verb, on the top floor.
//
// Run reads the arguments, runs a verb, and returns the exit status; nothing
// below it exits, prints on its own, or reads the environment. A verb is a
// constructor that only reads flags (newRenderCmd) and a function that does
// the work (runRender) on an options struct. Results go to standard output,
// findings that are the result too; errors go to standard error.
//
// Exit statuses are those of DESIGN: 0 fine, 1 the answer is no, 2 wrong
// usage, 3 it could not be done.
package cmd
