package gen

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"sluice/policies"
)

// placeholder is where a message has the seconds to wait.
const placeholder = "{retry_after}"

// Problem types of the IANA registry (draft-ietf-httpapi-ratelimit-headers).
const (
	problemQuota    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	problemCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// denials are the pages of denials and the maps that choose and fill them.
type denials struct {
	blocks []block
	pages  []page
}

// denyStatuses are all statuses that a denial can have here, in order. 444 is
// none: it closes the connection.
func (b *builder) denyStatuses() []int {
	statuses := policies.DenyStatuses()
	for _, r := range b.c.Access {
		if r.Verdict == policies.AccessDeny && r.Status != 444 {
			statuses = append(statuses, r.Status)
		}
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

func (b *builder) denials() denials {
	var d denials
	d.blocks = append(d.blocks, b.choice()...)
	d.blocks = append(d.blocks, b.reasons()...)
	d.blocks = append(d.blocks, b.format()...)
	d.blocks = append(d.blocks, b.messages()...)
	for _, status := range b.denyStatuses() {
		m := b.body(status)
		d.blocks = append(d.blocks, m)
		d.pages = append(d.pages, page{
			Location: statusPage(status),
			Status:   number(int64(status)),
			Body:     m.Variable,
		})
	}
	return d
}

func statusPage(status int) Token { return word("@sluice_" + strconv.Itoa(status)) }

// choice maps what happened to the page that says so.
func (b *builder) choice() []block {
	closed := newMap(own("$sluice_asked|$sluice_failed"), "sluice_closed",
		"The service is away, and the route fails closed.")
	closed.Volatile = true
	closed.otherwise(none())
	closed.line(ownRegex(`^/_sluice/closed/.*\|1\z`), word("1"))

	page := newMap(own("$sluice_refused|$sluice_closed|$sluice_status"), "sluice_page_403",
		"Which page answers a 403. One that is not ours keeps its status and meaning.")
	page.Volatile = true
	page.otherwise(word("@sluice_own_403"))
	for _, status := range b.denyStatuses() {
		page.line(ownRegex(fmt.Sprintf(`^%d\|`, status)), statusPage(status))
	}
	for _, status := range policies.DenyStatuses() {
		page.line(own("||"+strconv.Itoa(status)), statusPage(status))
	}
	page.line(ownRegex(`^\|1\|`), statusPage(503))

	edge := newMap(own("$sluice_edge_retry|$limit_req_status|$limit_conn_status"), "sluice_edge_reason",
		"An edge limit of ours refused. $sluice_edge_retry is set by our routes only.")
	edge.Volatile = true
	edge.otherwise(none())
	edge.line(ownRegex(`^[0-9]+\|REJECTED\|`), word("edge_rate"))
	edge.line(ownRegex(`^[0-9]+\|.*\|REJECTED\z`), word("edge_conn"))

	page429 := newMap(word("$sluice_edge_reason"), "sluice_page_429", "Which page answers a 429.")
	page429.Volatile = true
	page429.otherwise(statusPage(429))
	page429.line(none(), word("@sluice_own_429"))
	return []block{closed, page, edge, page429}
}

// reasons are why, and how long to wait. All of them are empty while
// $sluice_denied, which the pages set, is.
func (b *builder) reasons() []block {
	retry := newMap(own("$sluice_denied|$sluice_refused|$sluice_closed|$sluice_edge_reason"), "sluice_retry",
		"Seconds to wait, empty where waiting cannot help.")
	retry.otherwise(word("$sluice_retry_after"))
	retry.line(ownRegex(`^\|`), none())
	retry.line(ownRegex(`^[0-9]+\|[0-9]+\|`), none())
	retry.line(ownRegex(`\|1\|[a-z_]*\z`), word("1"))
	retry.line(ownRegex(`\|edge_rate\z`), word("$sluice_edge_retry"))
	retry.line(ownRegex(`\|edge_conn\z`), word("1"))

	reason := newMap(own("$sluice_denied|$sluice_refused|$sluice_closed|$sluice_edge_reason"), "sluice_reason")
	reason.otherwise(word("$sluice_service_reason"))
	reason.line(ownRegex(`^\|`), none())
	reason.line(ownRegex(`^[0-9]+\|[0-9]+\|`), word("access"))
	reason.line(ownRegex(`\|1\|[a-z_]*\z`), word("store_down"))
	reason.line(ownRegex(`\|edge_rate\z`), word("edge_rate"))
	reason.line(ownRegex(`\|edge_conn\z`), word("edge_conn"))

	limit := newMap(word("$sluice_denied"), "sluice_limit")
	limit.otherwise(word("$sluice_service_limit"))
	limit.line(none(), none())

	store := newMap(word("$sluice_denied"), "sluice_cache_control")
	store.otherwise(word("no-store"))
	store.line(none(), none())

	vary := newMap(word("$sluice_denied"), "sluice_vary")
	vary.otherwise(own("Accept, Accept-Language"))
	vary.line(none(), none())
	all := []block{retry, reason, limit, store, vary}
	for i := range all {
		all[i].Volatile = true
	}
	return all
}

// format chooses what the body is made of.
func (b *builder) format() []block {
	format := newMap(word("$http_accept"), "sluice_format", "What the body is: for browsers a small page.")
	format.otherwise(word("plain"))
	format.line(own("~*text/html"), word("html"))
	kind := newMap(own("$sluice_denied|$sluice_format"), "sluice_content_type")
	kind.Volatile = true
	kind.otherwise(own(map[policies.BodyFormat]string{
		policies.BodyProblem: "application/problem+json",
		policies.BodyJSON:    "application/json",
		policies.BodyText:    "text/plain; charset=utf-8",
	}[b.c.Responses.Body]))
	kind.line(ownRegex(`^\|`), none())
	kind.line(ownRegex(`\|html\z`), own("text/html; charset=utf-8"))
	return []block{format, kind}
}

// languages are those that messages are in; the first is the default.
func (b *builder) languages() ([]policies.Language, map[policies.Language]string) {
	if len(b.c.Responses.Languages) == 0 {
		return []policies.Language{"en"}, map[policies.Language]string{"en": "Try again in " + placeholder + " s."}
	}
	return b.c.Responses.Languages, b.c.Responses.Messages
}

// messages are the texts, by language and for each kind of body.
func (b *builder) messages() []block {
	languages, texts := b.languages()
	blocks := []block{b.languageChoice(languages)}
	detail := wording{name: "sluice_detail", encode: jsonText, open: `,"detail":"`, close: `"`}
	switch b.c.Responses.Body {
	case policies.BodyText:
		detail.encode, detail.open, detail.close = func(s string) string { return s }, "", "\n"
	case policies.BodyJSON:
		detail.open = `,"message":"`
	}
	paragraph := wording{name: "sluice_paragraph", encode: html.EscapeString, open: "<p>", close: "</p>"}
	maps, names := b.message(detail, languages, texts)
	blocks, b.detail = append(blocks, maps...), names
	maps, names = b.message(paragraph, languages, texts)
	blocks, b.paragraph = append(blocks, maps...), names
	if b.c.Responses.Body != policies.BodyText {
		blocks = append(blocks, b.members()...)
	}
	return blocks
}

// languageChoice finds the first language of the client's list that there is a
// message in: what stands before it is none of ours.
func (b *builder) languageChoice(languages []policies.Language) block {
	m := newMap(word("$http_accept_language"), "sluice_language", "The first language of the client's list that there is a message in.")
	m.otherwise(b.take(Quote(string(languages[0]))))
	longest := slices.SortedStableFunc(slices.Values(languages), func(a, b policies.Language) int { return len(b) - len(a) })
	tags := make([]string, len(longest))
	for i, lang := range longest {
		tags[i] = string(lang)
	}
	others := `(?:(?!\s*(?:` + strings.Join(tags, "|") + `)(?![a-z]))[^,]*,)*`
	for _, tag := range tags {
		m.line(b.take(Literal(`~*^`+others+`\s*`+tag+`(?![a-z])`)), b.take(Quote(tag)))
	}
	return m
}

// wording is how a message stands in one kind of body.
type wording struct {
	name        string // of the variable
	encode      func(string) string
	open, close string
}

// members are the parts of a JSON body that are not always there.
func (b *builder) members() []block {
	var out []block
	for _, m := range []struct{ name, source, open, close string }{
		{"sluice_member_retry", "sluice_retry", `,"retry_after":`, ""},
		{"sluice_member_limit", "sluice_limit", `,"limit":"`, `"`},
		{"sluice_member_reason", "sluice_reason", `,"reason":"`, `"`},
	} {
		bl := newMap(variable(m.source), m.name)
		bl.Volatile = true
		bl.otherwise((&text{}).lit(m.open).v(m.source).lit(m.close).mustToken())
		bl.line(none(), none())
		out = append(out, bl)
	}
	return out
}

// message is a message in all languages as a map: empty when it speaks of
// waiting and there is nothing to wait for. One that is longer than NGINX's
// longest argument goes on in further variables; names are all of them.
func (b *builder) message(w wording, languages []policies.Language, texts map[policies.Language]string) (blocks []block, names []string) {
	pieces := make([][]*text, len(languages))
	most := 0
	for i, lang := range languages {
		pieces[i] = w.text(texts[lang]).split(maxToken - 100)
		most = max(most, len(pieces[i]))
	}
	for n := range most {
		name := w.name
		if n > 0 {
			name += strconv.Itoa(n + 1)
		}
		m := newMap(own("$sluice_language:$sluice_retry"), name)
		m.Volatile = true
		m.otherwise(none())
		for i, lang := range languages {
			if n >= len(pieces[i]) {
				continue
			}
			key := "~^" + string(lang) + ":"
			if strings.Contains(texts[lang], placeholder) {
				key += "[0-9]"
			}
			m.line(b.take(Literal(key)), b.take(pieces[i][n].token()))
		}
		blocks, names = append(blocks, m), append(names, name)
	}
	return blocks, names
}

// text is one message as interpolated text.
func (w *wording) text(s string) *text {
	t := (&text{}).lit(w.open)
	for i, piece := range strings.Split(s, placeholder) {
		if i > 0 {
			t.v("sluice_retry")
		}
		t.lit(w.encode(piece))
	}
	return t.lit(w.close)
}

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
