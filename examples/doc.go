// Package examples holds complete policies that people start from: each is
// validated, rendered, tested by nginx -t and run by the tests of the verbs.
// Floor 0: it imports nothing of ours.
//
//	saas   an API sold in plans: keys, plans, weights, both fail modes; `make demo` runs it
//	app    the small application behind the demos
//	forward-auth  Caddy, Traefik and Envoy in the place of NGINX
//	client      a worker that asks before each job, and the client to copy
//	ci          a GitHub workflow, a GitLab pipeline and a git hook around a policy
//	prometheus  alerts on what the service shows, and their tests
//	grafana     a dashboard of it
//	systemd     units of the service and its sockets, and of rendering when the policy changes
package examples
