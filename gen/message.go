package gen

import (
	"html"
	"slices"
	"strconv"
	"strings"

	"sluice/policies"
)

// placeholder is where a message has the seconds to wait.
const placeholder = "{retry_after}"

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
