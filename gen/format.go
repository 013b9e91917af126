package gen

import (
	"strings"

	"sluice/policies"
	"sluice/policies/denial"
	"sluice/policies/edge"
)

// format chooses what the body is made of.
func (b *builder) format() []block {
	format := newMap(word("$http_accept"), "sluice_format", "What the body is: a small page for those who ask for HTML, and not for JSON before it.")
	format.otherwise(word("plain"))
	format.line(own(`~*^(?:(?!\s*text/html|[^,]*json)[^,]*,)*+\s*text/html(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|\z))`), word("html"))

	grpc := newMap(own("$request_method:$http_content_type"), "sluice_grpc",
		"gRPC clients read a status of their own, in the headers of an answer that is 200 to HTTP.")
	grpc.otherwise(none())
	grpc.line(own(`~*^POST:(?<sluice_grpc_type>application/grpc(?:-web(?:-text)?)?(?:\+[a-z0-9._-]{1,32})?)\s*(?:;|\z)`), word("$sluice_grpc_type"))

	kind := newMap(own("$sluice_denied|$sluice_grpc|$sluice_format"), "sluice_content_type")
	kind.Volatile = true
	kind.otherwise(own(denial.ContentType(b.c.Responses.Body)))
	kind.line(ownRegex(`^\|`), none())
	kind.line(ownRegex(`^[0-9]+\|[^|]+\|`), word("$sluice_grpc"))
	kind.line(ownRegex(`\|html\z`), own(denial.PageType))
	return []block{format, grpc, kind}
}

// grpc are the status and the message that gRPC clients read.
func (b *builder) grpc() []block {
	const when = "$sluice_grpc:$sluice_denied"
	status := newMap(own(when), "sluice_grpc_status", "RESOURCE_EXHAUSTED, UNAUTHENTICATED, UNAVAILABLE, and PERMISSION_DENIED for all else.")
	status.otherwise(none())
	status.line(ownRegex(`^[^:]+:(?:402|429)\z`), word("8"))
	status.line(ownRegex(`^[^:]+:401\z`), word("16"))
	status.line(ownRegex(`^[^:]+:503\z`), word("14"))
	status.line(ownRegex(`^[^:]+:[0-9]`), word("7"))
	message := newMap(own(when), "sluice_grpc_message")
	message.otherwise(none())
	message.line(ownRegex(`^[^:]+:[0-9]`), (&text{}).v(b.spoken...).mustToken())
	status.Volatile, message.Volatile = true, true
	return []block{status, message}
}

// crossOrigin lets scripts of other origins read a denial of ours, unless the
// site says already who may read its answers. Both maps look at what is sent
// so far, and so are not volatile: the first look is the right one.
func (b *builder) crossOrigin() []block {
	const origin = `[a-z][a-z0-9+.-]{0,30}://[A-Za-z0-9.:\[\]_-]{1,253}|null`
	allow := newMap(own("$sluice_denied|$sent_http_access_control_allow_origin|$http_origin"), "sluice_cors_origin",
		"A denial may be read by scripts of any origin, without credentials, where your own headers say nothing of it.")
	allow.otherwise(none())
	allow.line(ownRegex(`^[0-9]+\|\|(?<sluice_origin>`+origin+`)\z`), word("$sluice_origin"))

	names := append([]string{"Retry-After"}, edge.LimitHeaders(b.c.Responses.Dialects)...)
	names = append(names, policies.HeaderLimit, policies.HeaderReason, policies.HeaderDegraded, "grpc-status", "grpc-message")
	expose := newMap(own("$sluice_denied|$sent_http_access_control_expose_headers|$http_origin"), "sluice_cors_expose")
	expose.otherwise(none())
	expose.line(ownRegex(`^[0-9]+\|\|(?:`+origin+`)\z`), own(strings.Join(names, ", ")))
	return []block{allow, expose}
}
