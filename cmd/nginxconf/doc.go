// Package nginxconf reads NGINX configuration as it stands in files or in the
// output of `nginx -T`, so that a finding can name a file, a line and a column.
//
//  1. scan cuts text into words the way NGINX does: quotes, escapes, ${name}.
//  2. Parse builds directives with their blocks from the words.
//  3. ReadDump splits `nginx -T` output into its files, ReadFile starts from
//     a file; both follow includes, so that a Site is one tree with every
//     directive where it takes effect and the place where it was written.
//
// The reading is ours because no library does it well enough: a limiter that
// is reported as sound on the strength of half a file would be worse than no
// report. A test compares it with a library and says where that errs.
//
// Top floor: it belongs to the command line and imports nothing of ours.
package nginxconf
