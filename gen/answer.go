package gen

import (
	"slices"
	"strings"

	"sluice/policies"
	"sluice/policies/edge"
)

// answers are the values kept of the service's answer. A second pass of the
// same request (an internal redirect) asks nothing and brings nothing: an empty
// value keeps the one before, which is why each goes through a map.
func (b *builder) answers() (blocks []block, vars []header) {
	done := newMap(answered(policies.HeaderDecision), "sluice_done_next",
		"The subrequest that was allowed: the guard against a second charge in one request.")
	done.Volatile = true
	done.otherwise(none())
	done.line(word("allow"), word("$uri"))
	done.line(none(), word("$sluice_done"))
	blocks = append(blocks, done)
	vars = append(vars, keep("sluice_done", "sluice_done_next"), keep("sluice_asked", "uri"), keep("sluice_deny_cache", "upstream_cache_status"))
	for _, kept := range b.kept() {
		m := newMap(kept.source, kept.name+"_next")
		m.Volatile = true
		m.otherwise(kept.source)
		m.line(none(), variable(kept.name))
		blocks = append(blocks, m)
		vars = append(vars, keep(kept.name, kept.name+"_next"))
	}
	failed := newMap(word("$sluice_authz_status"), "sluice_failed", "The service did not answer, or with an error.")
	failed.Volatile = true
	failed.otherwise(none())
	failed.line(ownRegex(`5[0-9][0-9]\z`), word("1"))

	degraded := newMap(own("$sluice_asked|$sluice_authz_status|$sluice_decision|$sluice_failed$sluice_service_degraded"), "sluice_degraded",
		"1: nothing was decided, the fail mode was. An answer that names no decision is not the service's.")
	degraded.Volatile = true
	degraded.otherwise(none())
	degraded.line(ownRegex(`^/_sluice/.*\|1+\z`), word("1"))
	degraded.line(ownRegex(`^/_sluice/[^|]*\|[^|]+\|\|`), word("1"))
	return append(blocks, failed, degraded), vars
}

// keptValue is one value of the answer and the variable it is kept in.
type keptValue struct {
	name   string
	source Token
}

func (b *builder) kept() []keptValue {
	kept := []keptValue{
		{"sluice_decision", answered(policies.HeaderDecision)},
		{"sluice_status", answered(policies.HeaderStatus)},
		{"sluice_retry_after", answered("Retry-After")},
		{"sluice_service_limit", answered(policies.HeaderLimit)},
		{"sluice_service_reason", answered(policies.HeaderReason)},
		{"sluice_service_degraded", answered(policies.HeaderDegraded)},
		{"sluice_tenant", answered(policies.HeaderTenant)},
		{"sluice_plan", answered(policies.HeaderPlan)},
		{"sluice_priority", answered(policies.HeaderPriority)},
		{"sluice_authz_status", word("$upstream_status")},
		{"sluice_www_authenticate", answered("WWW-Authenticate")},
	}
	for _, name := range edge.LimitHeaders(b.c.Responses.Dialects) {
		kept = append(kept, keptValue{"sluice_" + strings.ToLower(strings.ReplaceAll(name, "-", "_")), answered(name)})
	}
	return kept
}

func answered(name string) Token { return headerVariable("upstream_http_", name) }

func keep(name, next string) header { return header{Name: word(name), Value: variable(next)} }

// clientHeaders are all headers of ours at the client: those of limits on every
// answer, the rest on denials, where their variables are not empty.
func (b *builder) clientHeaders() []header {
	var out []header
	for _, name := range edge.LimitHeaders(b.c.Responses.Dialects) {
		out = append(out, header{word(name), headerVariable("sluice_", name)})
	}
	out = append(out, header{word(policies.HeaderDegraded), word("$sluice_degraded")})
	if b.asked {
		out = append(out, header{word("WWW-Authenticate"), word("$sluice_challenge")})
	}
	return append(out,
		header{word("Retry-After"), word("$sluice_retry")},
		header{word(policies.HeaderLimit), word("$sluice_limit")},
		header{word(policies.HeaderReason), word("$sluice_reason")},
		header{word("Content-Type"), word("$sluice_content_type")},
		header{word("Cache-Control"), word("$sluice_cache_control")},
		header{word("Content-Language"), word("$sluice_content_language")},
		header{word("Vary"), word("$sluice_vary")},
		header{word("Access-Control-Allow-Origin"), word("$sluice_cors_origin")},
		header{word("Access-Control-Expose-Headers"), word("$sluice_cors_expose")},
		header{word("grpc-status"), word("$sluice_grpc_status")},
		header{word("grpc-message"), word("$sluice_grpc_message")},
	)
}

// hidden are the headers of the application that ours replace, and those that tell
// only us what a request has cost: the location is that of all routes that share
// the match.
func (b *builder) hidden(r *policies.Route) []Token {
	var out []Token
	for _, name := range append(edge.LimitHeaders(b.c.Responses.Dialects), policies.HeaderDegraded, policies.HeaderLimit, policies.HeaderReason) {
		out = append(out, word(name))
	}
	for _, name := range b.c.CostHeaders() {
		if slices.ContainsFunc(b.c.Routes, func(o policies.Route) bool { return o.CostHeader == name && r.SameMatch(&o) }) {
			out = append(out, b.take(headerName(name)))
		}
	}
	return out
}

// costs are the headers that tell the cost of a request, and what holds them when
// it has ended.
func (b *builder) costs() []header {
	var out []header
	for _, name := range b.c.CostHeaders() {
		out = append(out, header{b.take(headerName(name)), headerVariable("upstream_http_", name)})
	}
	return out
}

// appHeaders are what the application is told. Each is always set, so a
// client's own never arrives; each credential is sent once, as NGINX read it.
func (b *builder) appHeaders(a asking) []header {
	out := []header{
		{word(policies.HeaderTenant), word("$sluice_tenant")},
		{word(policies.HeaderPlan), word("$sluice_plan")},
		{word(policies.HeaderPriority), word("$sluice_priority")},
	}
	if b.c.Reports() > 0 {
		out = append(out, header{word(policies.HeaderRequest), word("$request_id")}) // what a cost is reported for
	}
	for _, name := range a.shown {
		out = append(out, header{b.take(headerName(name)), headerVariable("http_", name)})
	}
	return out
}
