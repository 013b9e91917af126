package gen

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"sluice/policies"
)

// placeholder is where a message has the seconds to wait.
const placeholder = "{retry_after}"

// languages are those that messages are in; the first is the default.
func (b *builder) languages() ([]policies.Language, map[policies.Language]string) {
	if len(b.c.Responses.Languages) == 0 {
		return []policies.Language{"en"}, map[policies.Language]string{"en": "Rate limit reached. Try again in " + placeholder + " s."}
	}
	return b.c.Responses.Languages, b.c.Responses.Messages
}

// sentences say in English what a denial is about that is no limit's, by its
// status and reason; the first that fits is said. They hold nothing that JSON,
// HTML or a header would want escaped.
func sentences() [][2]string {
	return [][2]string{
		{`^401:`, "A valid credential is needed."},
		{`^451:`, "This is not available where you are, for legal reasons."},
		{`:access\z`, "Your network or client is not allowed here."},
		{`:plan\z`, "Your plan does not include this."},
		{`:address\z`, "This credential may not be used from your address."},
		{`:disabled\z`, "This account is disabled."},
		{`:credential\z`, "This credential is not accepted here."},
		{`:too_large\z`, "This request costs more than its limit can ever hold."},
		{`^503:`, "The service cannot answer at the moment. Please try again."},
		{`^402:|:quota\z`, "The quota is used up."},
		{`^429:`, "There were too many requests."},
	}
}

// messages are the texts, by language and for each kind of body.
func (b *builder) messages() []block {
	languages, texts := b.languages()
	blocks := append([]block{b.languageChoice(languages)}, b.told(languages, texts)...)
	detail := wording{name: "sluice_detail", encode: jsonText, open: `,"detail":"`, close: `"`}
	switch b.c.Responses.Body {
	case policies.BodyText:
		detail.encode, detail.open, detail.close = func(s string) string { return s }, "", "\n"
	case policies.BodyJSON:
		detail.open = `,"message":"`
	}
	spoken := wording{name: "sluice_spoken", encode: percentEncode, most: maxSpoken}
	for _, w := range []struct {
		wording
		names *[]string
	}{{detail, &b.detail}, {paragraph(), &b.paragraph}, {spoken, &b.spoken}} {
		maps, names := b.message(w.wording, languages, texts)
		blocks, *w.names = append(blocks, maps...), names
	}
	if b.c.Responses.Body != policies.BodyText {
		blocks = append(blocks, b.members()...)
	}
	return blocks
}

// told chooses what is said: a message of the policy, which is about limits
// and mostly about waiting, or a sentence of ours.
func (b *builder) told(languages []policies.Language, texts map[policies.Language]string) []block {
	const why = "$sluice_denied:$sluice_reason"
	sentence := newMap(own(why), "sluice_sentence", "What is said where none of the messages fits, which are about limits.")
	sentence.otherwise(own("The request was refused."))
	for _, s := range sentences() {
		sentence.line(ownRegex(s[0]), own(s[1]))
	}
	limited := newMap(own(why), "sluice_limited")
	limited.otherwise(none())
	limited.line(ownRegex(`:(?:rate|window|quota|concurrency|retries|simulate|edge_rate|edge_conn)\z`), word("1"))
	limited.line(ownRegex(`^(?:402|429):\z`), word("1"))
	message := newMap(own("$sluice_limited:$sluice_language:$sluice_retry"), "sluice_message",
		"The language of the message that is told, empty for a sentence of ours. One that speaks of waiting is not told where waiting cannot help.")
	message.otherwise(none())
	for _, lang := range languages {
		key := "~^1:" + string(lang) + ":"
		if strings.Contains(texts[lang], placeholder) {
			key += "[0-9]"
		}
		message.line(b.take(Literal(key)), b.take(Quote(string(lang))))
	}
	told := newMap(word("$sluice_message"), "sluice_told_language")
	told.otherwise(word("$sluice_message"))
	told.line(none(), word("en"))
	header := newMap(own("$sluice_denied|$sluice_grpc"), "sluice_content_language")
	header.otherwise(none())
	header.line(ownRegex(`^[0-9]+\|\z`), word("$sluice_told_language"))
	blocks := []block{sentence, limited, message, told, header}
	for i := range blocks {
		blocks[i].Volatile = true
	}
	return blocks
}

// maxSpoken is the longest message, encoded, in the header of gRPC; a longer
// one gives way to a sentence of ours.
const maxSpoken = 1024

// wording is how a message stands in one kind of body.
type wording struct {
	name        string // of the variable
	encode      func(string) string
	open, close string
	tag         bool // open has the place of a language tag, %s
	most        int  // the longest, encoded; 0: any
}

// paragraph is the wording of the page.
func paragraph() wording {
	return wording{name: "sluice_paragraph", encode: html.EscapeString, open: `<p lang="%s">`, close: "</p>", tag: true}
}

// message is a message in all languages as a map, and the sentence of ours
// where there is none. One that is longer than NGINX's longest argument goes on
// in further variables; names are all of them.
func (b *builder) message(w wording, languages []policies.Language, texts map[policies.Language]string) (blocks []block, names []string) {
	pieces := make([][]*text, len(languages))
	most := 1
	for i, lang := range languages {
		if w.most > 0 && len(w.encode(texts[lang])) > w.most {
			continue
		}
		pieces[i] = w.text(string(lang), texts[lang]).split(maxToken - 100)
		most = max(most, len(pieces[i]))
	}
	for n := range most {
		name := w.name
		if n > 0 {
			name += strconv.Itoa(n + 1)
		}
		m := newMap(word("$sluice_message"), name)
		m.Volatile = true
		if n > 0 {
			m.otherwise(none())
		} else {
			m.otherwise((&text{}).lit(w.begin("en")).v("sluice_sentence").lit(w.close).mustToken())
		}
		for i, lang := range languages {
			if n < len(pieces[i]) {
				m.line(b.take(mapKey(string(lang))), b.take(pieces[i][n].token()))
				if len(texts) > 0 {
					m.Entries[len(m.Entries)-1].From = mark(policies.FieldPath("responses.messages", string(lang)))
				}
			}
		}
		blocks, names = append(blocks, m), append(names, name)
	}
	return blocks, names
}

func (w *wording) begin(lang string) string {
	if w.tag {
		return fmt.Sprintf(w.open, lang)
	}
	return w.open
}

// text is one message as interpolated text.
func (w *wording) text(lang, s string) *text {
	t := (&text{}).lit(w.begin(lang))
	for i, piece := range strings.Split(s, placeholder) {
		if i > 0 {
			t.v("sluice_retry")
		}
		t.lit(w.encode(piece))
	}
	return t.lit(w.close)
}

// percentEncode writes text as gRPC wants it in a header.
func percentEncode(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
