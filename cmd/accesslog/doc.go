// Package accesslog reads NGINX access logs fast, and gives their requests back
// in the order in which they began.
//
// A log goes through it like this:
//
//  1. A Format (format.go) says how lines are written: the text of a log_format
//     directive, compiled into variables and what stands between them (line.go),
//     or JSON with keys of anybody's choice (json.go). Without one the first lines
//     of each file tell (detect.go).
//  2. Each source (source.go) is opened, unpacked if it is compressed, and cut into
//     batches at line ends (cut.go). Workers parse batches side by side (read.go):
//     an Entry is spans into its batch, so a line costs no memory of its own.
//  3. The batches of one source come back in their order, sources are merged by
//     time, and a queue (queue.go) sorts entries by when their request began: NGINX
//     writes a line when a request ends.
//
// Logs are written by people's clients: nothing in a line is believed. A line that
// cannot be read is counted with its place and the reason, never with its text:
// it may hold a credential.
package accesslog
