package gen

import (
	"encoding/json"
	"fmt"
	"html"
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
		plain = (&text{}).lit(title + "\n").v(b.detail...)
		if b.c.Responses.SupportURL != "" {
			plain.lit(b.c.Responses.SupportURL + "\n")
		}
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
	if b.c.Responses.SupportURL != "" {
		t.lit(`,"support":` + quoted(b.c.Responses.SupportURL))
	}
	t.lit("}\n")
}

// page is the small page for browsers.
func (b *builder) page(status int, title string) *text {
	t := (&text{}).lit(`<!doctype html><html lang="`).v("sluice_language").lit(`"><meta charset="utf-8"><meta name="viewport" content="width=device-width">`)
	t.lit(fmt.Sprintf("<title>%d %s</title>", status, html.EscapeString(title)))
	t.lit("<style>body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:20vh auto;padding:0 1rem}</style>")
	t.lit(fmt.Sprintf("<h1>%s</h1>", html.EscapeString(title)))
	t.v(b.paragraph...)
	if url := b.c.Responses.SupportURL; url != "" {
		t.lit(fmt.Sprintf(`<p><a href="%s">%s</a></p>`, html.EscapeString(url), html.EscapeString(url)))
	}
	return t.lit("</html>\n")
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
