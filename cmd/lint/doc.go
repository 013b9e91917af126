// Package lint finds what in a site's NGINX configuration would open or break
// the limiter, or would be broken by it.
//
//  1. Run looks at a nginxconf.Site, best one read from `nginx -T`: whether it
//     has adopted Sluice, which servers and locations are protected, and what
//     the rendered files say.
//  2. Checks, a file for each subject, report findings in the form that
//     policies have, so that all verbs print alike. A check says in its comment
//     what was seen on a real NGINX.
//  3. Before Sluice is adopted every server counts as one to be protected, and
//     what would be in the way is a warning.
//
// What the rendered files state for themselves (proxy_cache, error pages, limits
// and body sizes of the server around the subrequest) is not reported.
//
// Top floor: it belongs to the command line.
package lint
