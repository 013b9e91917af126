package lint

import "sluice/policies"

// Rules are the rules of this package, in the order in which a reader would
// ask for them. A test holds every one against a case.
func Rules() []policies.Rule {
	return []policies.Rule{
		{ID: "syntax", Says: "NGINX would not read the configuration."},
		{ID: "nginx-version", Says: "NGINX is too old for what is rendered."},
		{ID: "unread-include", Says: "A file is not there to be looked at."},
		{ID: "missing-http", Says: "Nothing includes sluice/http.conf."},
		{ID: "missing-server", Says: "A server has routes but not sluice/server.conf."},
		{ID: "misplaced-include", Says: "A rendered file stands in a block that it is not for."},
		{ID: "repeated-include", Says: "A rendered file is there twice, which NGINX refuses."},
		{ID: "repeated-directive", Says: "A location repeats a directive of its route, which NGINX refuses."},
		{ID: "no-route", Says: "A server takes Sluice in and protects nothing."},
		{ID: "map-hash-order", Says: "The size of NGINX's tables comes after the first map."},
		{ID: "reserved-name", Says: "A name or path is Sluice's own."},
		{ID: "satisfy-any", Says: "One of several may let in, where all must."},
		{ID: "second-auth-request", Says: "A location has an authenticator besides the service."},
		{ID: "auth-request-lost", Says: "An inherited authenticator ceases to hold in a protected location."},
		{ID: "server-rewrite", Says: "A server rewrites or answers the subrequest that asks the service."},
		{ID: "server-set", Says: "The subrequest sets a variable of the request anew."},
		{ID: "return-first", Says: "A protected location answers before anything is limited."},
		{ID: "rewrite-away", Says: "Requests leave a protected location before anything is limited."},
		{ID: "internal-location", Says: "A route stands where no client comes by itself."},
		{ID: "nested-location", Says: "A location inside a protected one is protected less."},
		{ID: "regex-shadows", Says: "An expression takes requests of a protected prefix."},
		{ID: "merge-slashes", Says: "A second slash goes past every location."},
		{ID: "error-page", Says: "A page of the site takes the place of denials, or never shows."},
		{ID: "error-page-dropped", Says: "Error pages of http { } cease to hold in a server."},
		{ID: "headers-dropped", Says: "Clients do not see the headers of limits."},
		{ID: "site-headers-dropped", Says: "Headers of http { } cease to be sent by a server."},
		{ID: "proxy-headers", Says: "A client's own X-Sluice headers reach the application."},
		{ID: "answer-dropped", Says: "What the site keeps of its authenticator's answer is lost."},
		{ID: "log-dropped", Says: "The service does not learn that requests have ended."},
		{ID: "limit-dropped", Says: "A limit of the site ceases to count in a protected location."},
		{ID: "limit-status", Says: "A limit answers as if the server were broken."},
		{ID: "client-key", Says: "A limit counts by what the client chooses."},
		{ID: "long-key", Says: "A limit does not count keys of this length."},
		{ID: "forwarded-key", Says: "A client writes its own address."},
		{ID: "real-ip-missing", Says: "All clients of a proxy share a counter."},
		{ID: "real-ip-wide", Says: "Everybody may name the client's address."},
		{ID: "real-ip-twice", Says: "Two places say who may name the client."},
		{ID: "unverified-cert", Says: "Clients are known by certificates that nobody asks for."},
		{ID: "underscores", Says: "Two headers are one variable."},
		{ID: "log-leak", Says: "A log holds credentials."},
		{ID: "uri-injection", Says: "A decoded path becomes part of a header."},
	}
}
