package denial

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"strings"

	"sluice/policies"
)

// Problem types of the IANA registry (draft-ietf-httpapi-ratelimit-headers).
const (
	problemQuota    = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	problemCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// Slot is a place in a form. What stands there is complete, with its name and quotes
// where it has them, or nothing.
type Slot uint8

// The slots.
const (
	Fixed       Slot = iota // the part's own text
	Detail                  // the message or sentence, in a Wording
	Retry                   // members of JSON: the seconds to wait,
	Limit                   // the limit that refused,
	Reason                  // and why
	Support                 // where to ask for more
	Language                // of the message, as a tag
	Head                    // of the page
	Paragraph               // the message on the page
	SupportLink             // on the page
)

// Part is a piece of a body.
type Part struct {
	Slot Slot
	Text string // of Fixed
}

// Form is a body in its order.
type Form []Part

func fixed(s string) Part { return Part{Text: s} }

// Plain is the body for programs of a denial with one status.
func Plain(format policies.BodyFormat, status int) Form {
	title := Title(status)
	start := fmt.Sprintf(`{"type":%s,"title":%s,"status":%d`, quoted(problemType(status)), quoted(title), status)
	switch format {
	case policies.BodyText:
		return Form{fixed(title + "\n"), {Slot: Detail}, {Slot: Support}}
	case policies.BodyJSON:
		start = fmt.Sprintf(`{"error":%s,"status":%d`, quoted(title), status)
	}
	return Form{fixed(start), {Slot: Detail}, {Slot: Retry}, {Slot: Limit}, {Slot: Reason}, {Slot: Support}, fixed("}\n")}
}

// ContentType is that of a plain body.
func ContentType(format policies.BodyFormat) string {
	switch format {
	case policies.BodyText:
		return "text/plain; charset=utf-8"
	case policies.BodyJSON:
		return "application/json"
	}
	return "application/problem+json"
}

// Title names a status.
func Title(status int) string {
	switch {
	case status == 402:
		return "Quota Exhausted"
	case http.StatusText(status) != "":
		return http.StatusText(status)
	}
	return "Refused"
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

// Member is what stands in a slot of JSON, cut where the value is: none of these
// values wants to be escaped.
func Member(slot Slot, format policies.BodyFormat) []string {
	switch {
	case slot == Retry:
		return []string{`,"retry_after":`, ``}
	case slot == Reason:
		return []string{`,"reason":"`, `"`}
	case format == policies.BodyProblem:
		return []string{`,"limit":"`, `","violated-policies":["`, `"]`}
	}
	return []string{`,"limit":"`, `"`}
}

// Wording is how a message stands in one kind of body.
type Wording struct {
	Encode      func(string) string // of the message's own text
	Open, Close string
	Tagged      bool // Open has the place of a language tag, %s
}

// Begin is Open for a message in a language.
func (w *Wording) Begin(lang policies.Language) string {
	if w.Tagged {
		return fmt.Sprintf(w.Open, lang)
	}
	return w.Open
}

// DetailWording is that of Detail.
func DetailWording(format policies.BodyFormat) Wording {
	switch format {
	case policies.BodyText:
		return Wording{Encode: func(s string) string { return s }, Close: "\n"}
	case policies.BodyJSON:
		return Wording{Encode: jsonText, Open: `,"message":"`, Close: `"`}
	}
	return Wording{Encode: jsonText, Open: `,"detail":"`, Close: `"`}
}

// ParagraphWording is that of Paragraph.
func ParagraphWording() Wording {
	return Wording{Encode: html.EscapeString, Open: `<p lang="%s">`, Close: "</p>", Tagged: true}
}

// SupportText is what stands in Support for a policy's URL; empty for none.
func SupportText(format policies.BodyFormat, url string) string {
	switch {
	case url == "":
		return ""
	case format == policies.BodyText:
		return url + "\n"
	}
	return `,"support":` + quoted(url)
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
