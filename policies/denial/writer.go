package denial

import (
	"regexp"
	"strconv"
	"strings"

	"sluice/policies"
)

// Denial is what a body is about.
type Denial struct {
	Status        int
	Reason, Limit string // the words of headers; empty where there are none
	Retry         int64  // seconds to wait; 0: waiting cannot help
}

// Body is what a client gets to read.
type Body struct {
	Type     string // Content-Type
	Language policies.Language
	Text     []byte
}

// Writer writes the bodies of one policy. It is safe for concurrent use.
type Writer struct {
	responses *policies.Responses
	texts     map[policies.Language]string
	chooser   chooser
	sentences []sentence
	limited   []*regexp.Regexp
	detail    Wording
	paragraph Wording
}

type sentence struct {
	pattern *regexp.Regexp
	text    string
}

// NewWriter makes the Writer of a compiled policy's responses.
func NewWriter(r *policies.Responses) *Writer {
	languages, texts := Messages(r)
	w := &Writer{
		responses: r, texts: texts, chooser: newChooser(languages),
		detail: DetailWording(r.Body), paragraph: ParagraphWording(),
	}
	for _, s := range Sentences() {
		w.sentences = append(w.sentences, sentence{regexp.MustCompile(s.Pattern), s.Text})
	}
	for _, pattern := range Limited() {
		w.limited = append(w.limited, regexp.MustCompile(pattern))
	}
	return w
}

// Write is the body of a denial for a client that sends such an Accept and
// Accept-Language.
func (w *Writer) Write(d Denial, accept, acceptLanguage string) Body {
	said := w.choose(d, acceptLanguage)
	out := Body{Type: ContentType(w.responses.Body), Language: said.language}
	form := Plain(w.responses.Body, d.Status)
	if WantsPage(accept) {
		out.Type, form = PageType, Page(d.Status)
	}
	for _, p := range form {
		out.Text = append(out.Text, w.part(p, d, said)...)
	}
	return out
}

// said is a message of the policy, or a sentence of ours.
type said struct {
	language policies.Language
	text     string
	own      bool
}

func (w *Writer) choose(d Denial, acceptLanguage string) said {
	why := strconv.Itoa(d.Status) + ":" + d.Reason
	lang := w.chooser.of(acceptLanguage)
	for _, limited := range w.limited {
		if limited.MatchString(why) && (d.Retry > 0 || !Waits(w.texts[lang])) {
			return said{language: lang, text: w.texts[lang]}
		}
	}
	for _, s := range w.sentences {
		if s.pattern.MatchString(why) {
			return said{language: OwnLanguage, text: s.text, own: true}
		}
	}
	return said{language: OwnLanguage, text: Other, own: true}
}

func (w *Writer) part(p Part, d Denial, s said) string {
	switch p.Slot {
	case Detail:
		return s.in(&w.detail, d.Retry)
	case Paragraph:
		return s.in(&w.paragraph, d.Retry)
	case Retry:
		if d.Retry > 0 {
			return w.member(p.Slot, strconv.FormatInt(d.Retry, 10))
		}
		return ""
	case Limit:
		return w.member(p.Slot, d.Limit)
	case Reason:
		return w.member(p.Slot, d.Reason)
	case Support:
		return SupportText(w.responses.Body, w.responses.SupportURL)
	case SupportLink:
		return PageLink(w.responses.SupportURL)
	case Language:
		return string(s.language)
	case Head:
		return PageHead()
	}
	return p.Text
}

func (w *Writer) member(slot Slot, value string) string {
	if value == "" {
		return ""
	}
	return strings.Join(Member(slot, w.responses.Body), value)
}

// in is what is said, in a wording.
func (s said) in(w *Wording, retry int64) string {
	if s.own {
		return w.Begin(s.language) + s.text + w.Close
	}
	return w.Begin(s.language) + strings.ReplaceAll(w.Encode(s.text), w.Encode(Placeholder), strconv.FormatInt(retry, 10)) + w.Close
}
