package policies

// schemaTestWords are schemaWords for a file of policy tests.
func schemaTestWords() map[string]string {
	return map[string]string{
		"TestFile.policy": "The policy, relative to this file: policy.yaml by default.",
		"TestFile.start":  "What 0s is in tests that do not say it themselves.",
		"TestFile.tests":  "The tests; each begins with all counters empty.",

		"TestSpec.name":     "What holds.",
		"TestSpec.start":    "What 0s is in this test.",
		"TestSpec.requests": "What comes, and what is to become of it.",

		"TestRequest.at":      "When it comes; by default when the one before began to come.",
		"TestRequest.times":   "So many of them: 1 by default.",
		"TestRequest.every":   "How far they are apart; by default they come at once.",
		"TestRequest.clients": "From so many addresses, counted up from ip, each of which sends them all.",
		"TestRequest.ip":      "The client: 203.0.113.1 by default.",
		"TestRequest.peer":    "Who connects, when it is a proxy and not the client himself.",
		"TestRequest.country": "Where the client is, as the database would say.",
		"TestRequest.asn":     "Whose network the client is in, as the database would say.",
		"TestRequest.key":     "The id of a key of the policy, which it shows.",
		"TestRequest.tenant":  "The tenant who is logged in at the site's own authenticator.",
		"TestRequest.user":    "The tenant's user who is logged in.",
		"TestRequest.jwt":     "The claims of a good token, which it shows.",
		"TestRequest.method":  "GET by default.",
		"TestRequest.url":     "A path with its query, or a whole URL.",
		"TestRequest.host":    "The host it asks for.",
		"TestRequest.headers": "Headers that it brings.",
		"TestRequest.takes":   "How long the application needs: no time by default.",
		"TestRequest.answers": "What the application answers: 200 by default.",
		"TestRequest.costs":   "What the request has cost in the end, for a route with cost_from.",
		"TestRequest.expect":  "What is to become of each of them; all of it must hold.",

		"ExpectSpec.status":      "What the client gets.",
		"ExpectSpec.limit":       "The limit or access rule that refuses.",
		"ExpectSpec.reason":      "Why it is refused.",
		"ExpectSpec.by":          "Who refuses.",
		"ExpectSpec.remaining":   "What is left of limits, by name.",
		"ExpectSpec.retry_after": "When to come again, in seconds; 0: no such header.",
		"ExpectSpec.delay":       "How long it is held, at the edge and in the service.",
		"ExpectSpec.headers":     "Headers of the answer: a value, present or absent.",
		"ExpectSpec.route":       "The route it goes by.",
		"ExpectSpec.plan":        "The plan it goes by.",
		"ExpectSpec.tenant":      "Whose it is.",
		"ExpectSpec.shadow":      "Why it would be refused, but for mode: shadow.",
		"ExpectSpec.allowed":     "How many of all these requests pass.",
	}
}
