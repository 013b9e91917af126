package gen

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"sluice/policies"
)

// Problem types of the IANA registry (draft-ietf-httpapi-ratelimit-headers).
const (
	problemQuota    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	problemCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// body is the body of a denial with one status.
func (b *builder) body(status int) block {
	m := newMap(word("$sluice_format"), "sluice_body_"+strconv.Itoa(status))
	m.Volatile = true
	title := statusTitle(status)
	var plain *text
	switch b.c.Responses.Body {
	case policies.BodyText:
		plain = (&text{}).lit(title + "\n").v(b.detail...).v(b.support...)
	case policies.BodyJSON:
		plain = (&text{}).lit(fmt.Sprintf(`{"error":%s,"status":%d`, quoted(title), status))
		b.finishJSON(plain)
	default:
		plain = (&text{}).lit(fmt.Sprintf(`{"type":%s,"title":%s,"status":%d`, quoted(problemType(status)), quoted(title), status))
		b.finishJSON(plain)
	}
	m.otherwise(b.take(plain.token()))
	m.line(word("html"), b.take(b.page(status, title).token()))
	return m
}

// finishJSON adds the members that all JSON bodies have.
func (b *builder) finishJSON(t *text) {
	t.v(b.detail...)
	t.v("sluice_member_retry", "sluice_member_limit", "sluice_member_reason")
	t.v(b.support...).lit("}\n")
}

// members are the parts of a JSON body that are not always there.
func (b *builder) members() []block {
	limit := `,"limit":"${name}"`
	if b.c.Responses.Body == policies.BodyProblem {
		limit += `,"violated-policies":["${name}"]`
	}
	var out []block
	for _, m := range []struct{ name, source, form string }{
		{"sluice_member_retry", "sluice_retry", `,"retry_after":${name}`},
		{"sluice_member_limit", "sluice_limit", limit},
		{"sluice_member_reason", "sluice_reason", `,"reason":"${name}"`},
	} {
		t := &text{}
		for i, lit := range strings.Split(m.form, "${name}") {
			if i > 0 {
				t.v(m.source)
			}
			t.lit(lit)
		}
		bl := newMap(variable(m.source), m.name)
		bl.Volatile = true
		bl.otherwise(t.mustToken())
		bl.line(none(), none())
		out = append(out, bl)
	}
	return out
}

func problemType(status int) string {
	switch status {
	case 402, 429:
		return problemQuota
	case 503:
		return problemCapacity
	}
	return "about:blank"
}

func statusTitle(status int) string {
	switch {
	case status == 402:
		return "Quota Exhausted"
	case http.StatusText(status) != "":
		return http.StatusText(status)
	}
	return "Refused"
}

// jsonText is the inside of a JSON string.
func jsonText(s string) string {
	q := quoted(s)
	return q[1 : len(q)-1]
}

// quoted is a JSON string.
func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("BUG: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}
