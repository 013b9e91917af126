package gen

import (
	"fmt"
	"html"
	"strconv"

	"sluice/policies"
)

// pageStyle is all the style of the page: dark and light, and readable on a phone.
const pageStyle = `:root{color-scheme:light dark;--ink:#1c2024;--dim:#5f6871;--line:#d9dee3;--back:#f6f7f9;--card:#fff;--link:#0a58ca}` +
	`@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--dim:#9aa4ae;--line:#343a41;--back:#15181b;--card:#1e2226;--link:#8ab4f8}}` +
	`*{box-sizing:border-box}body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--back);color:var(--ink);font:1rem/1.55 system-ui,sans-serif}` +
	`main{width:100%;max-width:34rem;padding:1.75rem 2rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem}` +
	`b{color:var(--dim);font-weight:600}h1{margin:.1em 0 .6em;font-size:1.6rem;line-height:1.2}p{margin:0 0 .8em;white-space:pre-line;overflow-wrap:anywhere}` +
	`p:last-child{margin:0}a{color:var(--link)}@media(max-width:30rem){main{padding:1.25rem}}`

// pageParts are texts that all pages share. What is longer than NGINX's
// longest argument stands in several variables.
func (b *builder) pageParts() []block {
	head := (&text{}).lit(`<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">` +
		`<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><style>` + pageStyle + `</style>`)
	blocks, names := b.constant("sluice_page_head", head)
	b.head = names
	url := b.c.Responses.SupportURL
	if url == "" {
		return blocks
	}
	plain := (&text{}).lit(`,"support":` + quoted(url))
	if b.c.Responses.Body == policies.BodyText {
		plain = (&text{}).lit(url + "\n")
	}
	more, names := b.constant("sluice_support", plain)
	b.support = names
	blocks = append(blocks, more...)
	safe := html.EscapeString(url)
	more, names = b.constant("sluice_support_link", (&text{}).lit(fmt.Sprintf(`<p><a href="%s">%s</a></p>`, safe, safe)))
	b.supportLink = names
	return append(blocks, more...)
}

// page is the small page for browsers.
func (b *builder) page(status int, title string) *text {
	t := (&text{}).lit(`<!doctype html><html lang="`).v("sluice_told_language").lit(`"><head>`).v(b.head...)
	t.lit(fmt.Sprintf(`<title>%d %s</title></head><body><main lang="en"><b>%d</b><h1>%s</h1>`, status, html.EscapeString(title), status, html.EscapeString(title)))
	t.v(b.paragraph...).v(b.supportLink...)
	return t.lit("</main></body></html>\n")
}

// constant is a text that is always the same, in as many variables as it takes.
func (b *builder) constant(name string, t *text) (blocks []block, names []string) {
	for i, piece := range t.split(maxToken - 100) {
		n := name
		if i > 0 {
			n += strconv.Itoa(i + 1)
		}
		m := newMap(none(), n)
		m.otherwise(b.take(piece.token()))
		blocks, names = append(blocks, m), append(names, n)
	}
	return blocks, names
}
