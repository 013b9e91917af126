package denial

import (
	"fmt"
	"html"
)

// PageType is the content type of the page.
const PageType = "text/html; charset=utf-8"

// pageStyle is all the style of the page: dark and light, and readable on a phone.
const pageStyle = `:root{color-scheme:light dark;--ink:#1c2024;--dim:#5f6871;--line:#d9dee3;--back:#f6f7f9;--card:#fff;--link:#0a58ca}` +
	`@media(prefers-color-scheme:dark){:root{--ink:#e8eaed;--dim:#9aa4ae;--line:#343a41;--back:#15181b;--card:#1e2226;--link:#8ab4f8}}` +
	`*{box-sizing:border-box}body{margin:0;min-height:100vh;display:grid;place-items:center;padding:1rem;background:var(--back);color:var(--ink);font:1rem/1.55 system-ui,sans-serif}` +
	`main{width:100%;max-width:34rem;padding:1.75rem 2rem;background:var(--card);border:1px solid var(--line);border-radius:.75rem}` +
	`b{color:var(--dim);font-weight:600}h1{margin:.1em 0 .6em;font-size:1.6rem;line-height:1.2}p{margin:0 0 .8em;white-space:pre-line;overflow-wrap:anywhere}` +
	`p:last-child{margin:0}a{color:var(--link)}@media(max-width:30rem){main{padding:1.25rem}}`

// PageHead is what stands in Head: the same on all pages.
func PageHead() string {
	return `<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">` +
		`<meta name="color-scheme" content="light dark"><meta name="robots" content="noindex"><style>` + pageStyle + `</style>`
}

// PageLink is what stands in SupportLink for a policy's URL; empty for none.
func PageLink(url string) string {
	if url == "" {
		return ""
	}
	safe := html.EscapeString(url)
	return fmt.Sprintf(`<p><a href="%s">%s</a></p>`, safe, safe)
}

// Page is the small page for browsers, of a denial with one status.
func Page(status int) Form {
	title := html.EscapeString(Title(status))
	return Form{
		fixed(`<!doctype html><html lang="`), {Slot: Language}, fixed(`"><head>`), {Slot: Head},
		fixed(fmt.Sprintf(`<title>%d %s</title></head><body><main lang="en"><b>%d</b><h1>%s</h1>`, status, title, status, title)),
		{Slot: Paragraph}, {Slot: SupportLink}, fixed("</main></body></html>\n"),
	}
}
