package gen

import (
	"fmt"
	"strconv"
	"strings"

	"sluice/policies"
	"sluice/policies/denial"
)

// messages are the texts, by language and for each kind of body.
func (b *builder) messages() []block {
	languages, texts := denial.Messages(&b.c.Responses)
	blocks := append([]block{b.languageChoice(languages)}, b.told(languages, texts)...)
	detail := wording{name: "sluice_detail", Wording: denial.DetailWording(b.c.Responses.Body)}
	paragraph := wording{name: "sluice_paragraph", Wording: denial.ParagraphWording()}
	spoken := wording{name: "sluice_spoken", Wording: denial.Wording{Encode: percentEncode}, most: maxSpoken}
	for _, w := range []struct {
		wording
		names *[]string
	}{{detail, &b.detail}, {paragraph, &b.paragraph}, {spoken, &b.spoken}} {
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
	sentence.otherwise(own(denial.Other))
	for _, s := range denial.Sentences() {
		sentence.line(ownRegex(s.Pattern), own(s.Text))
	}
	limited := newMap(own(why), "sluice_limited")
	limited.otherwise(none())
	for _, pattern := range denial.Limited() {
		limited.line(ownRegex(pattern), word("1"))
	}
	message := newMap(own("$sluice_limited:$sluice_language:$sluice_retry"), "sluice_message",
		"The language of the message that is told, empty for a sentence of ours. One that speaks of waiting is not told where waiting cannot help.")
	message.otherwise(none())
	for _, lang := range languages {
		key := "~^1:" + string(lang) + ":"
		if denial.Waits(texts[lang]) {
			key += "[0-9]"
		}
		message.line(b.take(Literal(key)), b.take(Quote(string(lang))))
	}
	told := newMap(word("$sluice_message"), "sluice_told_language")
	told.otherwise(word("$sluice_message"))
	told.line(none(), word(string(denial.OwnLanguage)))
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
	denial.Wording
	name string // of the variable
	most int    // the longest, encoded; 0: any
}

// message is a message in all languages as a map, and the sentence of ours
// where there is none. One that is longer than NGINX's longest argument goes on
// in further variables; names are all of them.
func (b *builder) message(w wording, languages []policies.Language, texts map[policies.Language]string) (blocks []block, names []string) {
	pieces := make([][]*text, len(languages))
	most := 1
	for i, lang := range languages {
		if w.most > 0 && len(w.Encode(texts[lang])) > w.most {
			continue
		}
		pieces[i] = w.text(lang, texts[lang]).split(maxToken - 100)
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
			m.otherwise((&text{}).lit(w.Begin(denial.OwnLanguage)).v("sluice_sentence").lit(w.Close).mustToken())
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

// text is one message as interpolated text.
func (w *wording) text(lang policies.Language, s string) *text {
	t := (&text{}).lit(w.Begin(lang))
	for i, piece := range strings.Split(s, denial.Placeholder) {
		if i > 0 {
			t.v("sluice_retry")
		}
		t.lit(w.Encode(piece))
	}
	return t.lit(w.Close)
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
